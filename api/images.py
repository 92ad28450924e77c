"""Images of a request: found in the body or its parts, and checked.

What an image claims to be counts for nothing: its bytes say its format (puremagic). Pillow then reads it
frame by frame, and what it says of a frame's size is looked at before the frame is unpacked, so that a
picture of a billion pixels in a few bytes is refused. Every frame is unpacked: one that was cut short looks
whole until then.
"""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count

import puremagic
from PIL import Image, UnidentifiedImageError

from api.body import FormField
from api.refusals import Refusal
from api.settings import ApiSettings
from planner.dialects.image_fields import (
    NOTHING,
    EncodedImage,
    InlineImage,
    PartImage,
    Sent,
    Shown,
)
from planner.errors import Invalid, Location

FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP", "image/gif": "GIF"}
"""Media types that are taken, and Pillow's names of them."""

AT_ONCE = 2
"""Images that a process unpacks at a time: one of 50 million pixels takes 200 MB meanwhile."""

# Pillow's own limit holds for a whole process and tells no setting; this process opens images only here,
# under limits of its own.
Image.MAX_IMAGE_PIXELS = None

_threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="images")


@dataclass(frozen=True, slots=True)
class _Image:
    loc: Location
    content: bytes


@dataclass(frozen=True, slots=True)
class Found:
    """The images of a request: where they are shown, and their bytes by SHA-256 (hex), for the store."""

    shown: Shown = NOTHING
    contents: Mapping[str, bytes] = field(default_factory=dict)


async def images_of(sent: Sent, parts: Mapping[str, bytes], settings: ApiSettings) -> Found:
    """The images that a body brings, with its parts, checked. Raises Invalid or Refusal."""
    if not (sent.assets or sent.listed):
        return Found()
    number = len(sent.assets) + len(sent.listed)
    if number > settings.max_images:
        loc = sent.listed[-1][0][:1] if sent.listed else ("assets",)
        message = f"{number} images; the server takes {settings.max_images} (CANVASS_MAX_IMAGES)"
        raise Invalid(loc, message, kind="too_many_images", given=number)
    placed = {name: _asset(("assets", name), asset, parts) for name, asset in sent.assets.items()}
    after = [_listed(loc, image) for loc, image in sent.listed]
    found = [*placed.values(), *after]
    loop = asyncio.get_running_loop()
    await asyncio.gather(*(loop.run_in_executor(_threads, _check, one, settings) for one in found))
    digests = [sha256(one.content).hexdigest() for one in found]
    shown = Shown(dict(zip(placed, digests, strict=False)), tuple(digests[len(placed) :]))
    return Found(shown, dict(zip(digests, (one.content for one in found), strict=True)))


def _asset(loc: Location, asset: InlineImage | PartImage, parts: Mapping[str, bytes]) -> _Image:
    if isinstance(asset, InlineImage):
        return _Image(loc, _decoded((*loc, "data_base64"), asset.data_base64))
    if asset.part not in parts:
        raise Invalid(
            (*loc, "part"), f"the body has no part {asset.part!r}", kind="missing_part", given=asset.part
        )
    content = parts[asset.part]
    if isinstance(content, FormField):
        message = f"the part {asset.part!r} is a field, not a file: it has no filename"
        raise Invalid((*loc, "part"), message, kind="no_file", given=asset.part)
    return _Image(loc, content)


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
        raise _too_large(found.loc, f"{size} bytes", limit, "CANVASS_MAX_IMAGE_BYTES")
    try:
        media_type = puremagic.from_string(found.content, mime=True)
    except (puremagic.PureError, ValueError) as error:
        raise Invalid(found.loc, "these bytes are no image", kind="no_image") from error
    if media_type not in FORMATS:
        message = f"this is {media_type}; {', '.join(FORMATS)} are taken"
        raise Invalid(found.loc, message, kind="image_format", given=media_type)
    try:
        _unpack(found, FORMATS[media_type], settings)
    except Refusal:
        raise
    except UnidentifiedImageError as error:
        # What it says is where the bytes lie in memory.
        raise Invalid(found.loc, f"the image does not decode as {media_type}", kind="no_image") from error
    # Pillow's plugins raise what damaged bytes happen to break (IndexError, struct.error, ...); nothing else
    # runs in there, and whatever it is, the image does not decode.
    except Exception as error:
        raise Invalid(found.loc, f"the image does not decode: {error}", kind="no_image") from error


def _unpack(found: _Image, format: str, settings: ApiSettings) -> None:
    """Unpack every frame of an image, within the limits. Raises Refusal, and whatever Pillow does."""
    file = io.BytesIO(found.content)
    with Image.open(file, formats=[format]) as image:
        _check_pixels(found.loc, image.width * image.height, settings)
        # The checksums of a PNG; afterwards the image can no longer be read.
        image.verify()
    file.seek(0)
    pixels = 0
    with Image.open(file, formats=[format]) as image:
        for frame in _frames(image):
            if frame > settings.max_image_frames:
                limit = settings.max_image_frames
                raise _too_large(found.loc, f"more than {limit} frames", limit, "CANVASS_MAX_IMAGE_FRAMES")
            pixels += image.width * image.height
            _check_pixels(found.loc, pixels, settings)
            image.load()


def _frames(image: Image.Image) -> Iterator[int]:
    """The numbers of an image's frames, from 1; each is sought, and not yet unpacked."""
    for frame in count():
        try:
            image.seek(frame)
        except EOFError:
            return
        yield frame + 1


def _check_pixels(loc: Location, pixels: int, settings: ApiSettings) -> None:
    if pixels > settings.max_image_pixels:
        raise _too_large(loc, f"{pixels} pixels", settings.max_image_pixels, "CANVASS_MAX_IMAGE_PIXELS")


def _too_large(loc: Location, has: str, limit: int, setting: str) -> Refusal:
    path = ".".join(map(str, loc))
    return Refusal(413, "image_too_large", f"{path}: an image of {has}; the server takes {limit} ({setting})")
