"""The messages of a chat: flattened to text for the template, images to their hashes."""

import base64
import hashlib
from typing import Any

from engine.checks import Body
from engine.errors import BadRequest


def read_messages(body: Body) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Messages with plain string contents, and the SHA-256 (hex) of every image in their order."""
    value = body.get("messages")
    if not isinstance(value, list) or not value:
        raise BadRequest("messages must be a list of at least one message", "messages")
    images: list[str] = []
    messages = [_message(message, f"messages[{index}]", images) for index, message in enumerate(value)]
    return messages, tuple(images)


def _message(message: Any, where: str, images: list[str]) -> dict[str, Any]:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise BadRequest(f"{where} must be an object with a role", where)
    content = message.get("content")
    if isinstance(content, list):
        parts = [_part(part, f"{where}.content[{index}]", images) for index, part in enumerate(content)]
        # vLLM joins the text parts of a message by newlines when a template wants plain strings.
        content = "\n".join(part for part in parts if part)
    if content is not None and not isinstance(content, str):
        raise BadRequest(f"{where}.content must be a string or a list of parts", f"{where}.content")
    return {**message, "content": content or ""}


def _part(part: Any, where: str, images: list[str]) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and isinstance(part.get("text"), str):
        return str(part["text"])
    if kind == "image_url" and isinstance(part.get("image_url"), dict):
        images.append(_image_hash(part["image_url"].get("url"), where))
        return ""
    raise BadRequest(f"{where} must be a text or image_url part", where)


def _image_hash(url: Any, where: str) -> str:
    if not isinstance(url, str) or not url.startswith("data:") or ";base64," not in url:
        raise BadRequest(
            f"{where}.image_url.url must be a data: URL in base64: this engine fetches nothing", where
        )
    try:
        content = base64.b64decode(url.split(";base64,", 1)[1], validate=True)
    except ValueError as error:
        raise BadRequest(f"{where}.image_url.url is no base64: {error}", where) from error
    return hashlib.sha256(content).hexdigest()
