"""Request bodies: read within a limit, decompressed within it too, decoded as strict JSON.

BodyError
├── TooLarge       the body is over the limit (413)
├── BadEncoding    an unknown Content-Encoding (415), or one that does not decode (400)
└── BadJson        not JSON, or nested too deeply (422)
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import zstandard
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from planner.json_depth import MAX_DEPTH, is_too_deep

REQUEST_PART = "request"
MOST_PARTS = 64


class BodyError(Exception):
    """Base of what can be wrong with a body; `status` is the HTTP status that says so."""

    status = 400


class TooLarge(BodyError):
    """The body is larger than the server takes."""

    status = 413

    def __init__(self, limit: int) -> None:
        super().__init__(f"the body is larger than {limit} bytes (CANVASS_MAX_BODY_BYTES)")


class BadEncoding(BodyError):
    """The body's Content-Encoding is not served, or its bytes are not of that encoding."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class BadJson(BodyError):
    """The body is not JSON by RFC 8259, or nested more deeply than the server takes."""

    status = 422


@dataclass(frozen=True, slots=True)
class Body:
    """A request's body: the decoded JSON, the bytes that it was written in, and the other parts of a form."""

    value: Any
    content: bytes
    parts: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes in all."""
        return len(self.content) + sum(map(len, self.parts.values()))


async def read_body(request: Request, limit: int, depth: int = MAX_DEPTH) -> Body:
    """A request's body of at most `limit` bytes: JSON no deeper than `depth`, or a form whose part `request`
    is such JSON. Raises a BodyError.
    """
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        return await read_json(request, limit, depth)
    content = _decompressed(await _content(request, limit), request.headers.get("content-encoding"), limit)
    parts = await _parts(request.headers, content, limit)
    if REQUEST_PART not in parts:
        raise BadJson(f"the form has no part {REQUEST_PART!r} with the JSON of the request")
    asked = parts.pop(REQUEST_PART)
    return Body(_strict(asked, depth), asked, parts)


async def _parts(headers: Headers, content: bytes, limit: int) -> dict[str, bytes]:
    async def whole() -> AsyncGenerator[bytes, None]:
        yield content

    try:
        parser = MultiPartParser(
            headers, whole(), max_files=MOST_PARTS, max_fields=MOST_PARTS, max_part_size=limit
        )
        form = await parser.parse()
        found: dict[str, bytes] = {}
        for name, part in form.multi_items():
            if name in found:
                raise BadJson(f"the form has two parts {name!r}")
            found[name] = await part.read() if isinstance(part, UploadFile) else part.encode()
    except MultiPartException as error:
        raise BadJson(f"the form cannot be read: {error.message}") from error
    except (UnicodeError, LookupError) as error:
        raise BadJson(f"the form is not in the charset that it names: {error}") from error
    return found


async def read_json(request: Request, limit: int, depth: int = MAX_DEPTH) -> Body:
    """A request's body of at most `limit` bytes of JSON no deeper than `depth`, compressed or not.

    Raises a BodyError.
    """
    return decoded(await read_content(request, limit), depth)


async def read_content(request: Request, limit: int) -> bytes:
    """A request's body of at most `limit` bytes, decompressed. Raises a BodyError."""
    return _decompressed(await _content(request, limit), request.headers.get("content-encoding"), limit)


def decoded(content: bytes, depth: int = MAX_DEPTH) -> Body:
    """A body of JSON no deeper than `depth`. Raises BadJson."""
    return Body(_strict(content, depth), content)


def _strict(content: bytes, depth: int) -> Any:
    too_deep = f"the body is nested more than {depth} deep (CANVASS_MAX_JSON_DEPTH)"
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        # orjson stops at 1024 levels, and says so in words only.
        raise BadJson(
            too_deep if "depth limit" in str(error) else f"the body is not JSON: {error}"
        ) from error
    if is_too_deep(value, content, depth):
        raise BadJson(too_deep)
    return value


async def _content(request: Request, limit: int) -> bytes:
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > limit:
            raise TooLarge(limit)
    return bytes(content)


def _decompressed(content: bytes, encoding: str | None, limit: int) -> bytes:
    name = (encoding or "identity").strip().lower()
    if name not in _DECODERS:
        raise BadEncoding(f"Content-Encoding {name!r} is not served; {', '.join(_DECODERS)} are", 415)
    try:
        plain = _DECODERS[name](content, limit + 1)
    except (zlib.error, zstandard.ZstdError, EOFError) as error:
        raise BadEncoding(f"the body is not {name}: {error}") from error
    if len(plain) > limit:
        raise TooLarge(limit)
    return plain


def _gunzip(content: bytes, most: int) -> bytes:
    """Every member of a gzip stream, up to `most` bytes."""
    plain = b""
    while content and len(plain) < most:
        decoder = zlib.decompressobj(wbits=31)
        plain += decoder.decompress(content, most - len(plain))
        if not decoder.eof and len(plain) < most:
            raise EOFError("the stream ends early")
        content = decoder.unused_data
    return plain


def _unzstd(content: bytes, most: int) -> bytes:
    """Every frame of a zstd stream, up to `most` bytes."""
    plain = bytearray()
    decompressor = zstandard.ZstdDecompressor()
    with decompressor.stream_reader(content, read_across_frames=True) as reader:
        while len(plain) < most and (piece := reader.read(most - len(plain))):
            plain += piece
    # The reader does not tell a whole stream from one cut short, so frames are walked to their ends.
    while len(plain) < most and content:
        frame = decompressor.decompressobj()
        frame.decompress(content)
        if not frame.eof:
            raise EOFError("the stream ends early")
        content = frame.unused_data
    return bytes(plain)


_DECODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "identity": lambda content, most: content,
    "gzip": _gunzip,
    "zstd": _unzstd,
}
