"""Images of a request: found in the body or its parts, and checked.

What an image claims to be counts for nothing: its bytes say its format (puremagic), and Pillow reads its
header, so that a picture of a billion pixels in a few bytes is refused before anything unpacks it.
"""

from __future__ import annotations

import asyncio
import base64
import io
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import puremagic
from PIL import Image, UnidentifiedImageError
from pydantic import TypeAdapter

from api.refusals import Refusal
from api.settings import ApiSettings
from planner.dialects.image_fields import (
    NOTHING,
    Assets,
    EncodedImage,
    Images,
    InlineImage,
    Shown,
)
from planner.errors import Invalid, Location

FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP", "image/gif": "GIF"}
"""Media types that are taken, and Pillow's names of them."""

_ASSETS: TypeAdapter[Assets] = TypeAdapter(Assets)
_IMAGES: TypeAdapter[Images] = TypeAdapter(Images)


@dataclass(frozen=True, slots=True)
class _Image:
    loc: Location
    content: bytes


@dataclass(frozen=True, slots=True)
class Found:
    """The images of a request: where they are shown, and their bytes by SHA-256 (hex), for the store."""

    shown: Shown = NOTHING
    contents: Mapping[str, bytes] = field(default_factory=dict)


async def images_of(body: Any, parts: Mapping[str, bytes], settings: ApiSettings) -> Found:
    """The images of a body and its parts, checked. Raises pydantic's ValidationError, Invalid or Refusal."""
    if not isinstance(body, dict) or not (body.get("assets") or body.get("images")):
        return Found()
    assets = _ASSETS.validate_python(body.get("assets") or {})
    listed = _IMAGES.validate_python(body.get("images") or [])
    placed = {name: _asset(("assets", name), asset, parts) for name, asset in assets.items()}
    after = [_listed(("images", place), image) for place, image in enumerate(listed)]
    found = [*placed.values(), *after]
    if len(found) > settings.max_images:
        message = f"{len(found)} images; the server takes {settings.max_images} (CANVASS_MAX_IMAGES)"
        raise Invalid(found[-1].loc[:1], message, kind="too_many_images", given=len(found))
    await asyncio.gather(*(asyncio.to_thread(_check, one, settings) for one in found))
    digests = [sha256(one.content).hexdigest() for one in found]
    shown = Shown(dict(zip(placed, digests, strict=False)), tuple(digests[len(placed) :]))
    return Found(shown, dict(zip(digests, (one.content for one in found), strict=True)))


def _asset(loc: Location, asset: Any, parts: Mapping[str, bytes]) -> _Image:
    if isinstance(asset, InlineImage):
        return _Image(loc, _decoded((*loc, "data_base64"), asset.data_base64))
    if asset.part not in parts:
        raise Invalid(
            (*loc, "part"), f"the body has no part {asset.part!r}", kind="missing_part", given=asset.part
        )
    return _Image(loc, parts[asset.part])


def _listed(loc: Location, image: str | EncodedImage) -> _Image:
    if isinstance(image, EncodedImage):
        return _Image(loc, _decoded((*loc, "base64"), image.base64))
    head, comma, data = image.partition(";base64,")
    if not (head.startswith("data:") and comma):
        raise Invalid(loc, "an image is a data URL in base64: nothing is fetched here", kind="no_data_url")
    return _Image(loc, _decoded(loc, data))


def _decoded(loc: Location, data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except ValueError as error:
        # binascii.Error is one; a text that is not ASCII raises a plain one.
        raise Invalid(loc, f"this is no base64: {error}", kind="no_base64") from error


def _check(found: _Image, settings: ApiSettings) -> None:
    """Raise Refusal or Invalid for bytes that are no image, or too large a one."""
    size, limit = len(found.content), settings.max_image_bytes
    if size > limit:
        message = f"an image of {size} bytes; the server takes {limit} (CANVASS_MAX_IMAGE_BYTES)"
        raise Refusal(413, "image_too_large", message)
    try:
        media_type = puremagic.from_string(found.content, mime=True)
    except (puremagic.PureError, ValueError) as error:
        raise Invalid(found.loc, "these bytes are no image", kind="no_image") from error
    if media_type not in FORMATS:
        message = f"this is {media_type}; {', '.join(FORMATS)} are taken"
        raise Invalid(found.loc, message, kind="image_format", given=media_type)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(found.content), formats=[FORMATS[media_type]]) as image:
                pixels = image.width * image.height * getattr(image, "n_frames", 1)
                _check_pixels(pixels, settings)
                image.verify()
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise Refusal(413, "image_too_large", str(error)) from error
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise Invalid(found.loc, f"the image does not decode: {error}", kind="no_image") from error


def _check_pixels(pixels: int, settings: ApiSettings) -> None:
    if pixels > settings.max_image_pixels:
        limit = settings.max_image_pixels
        message = f"an image of {pixels} pixels; the server takes {limit} (CANVASS_MAX_IMAGE_PIXELS)"
        raise Refusal(413, "image_too_large", message)
