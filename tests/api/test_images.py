"""Images as they come in: unpacked whole, within limits that are told, whatever their bytes hold."""

from __future__ import annotations

import asyncio
import base64
import io
import struct
import zlib
from time import perf_counter
from typing import Any

import pytest
from PIL import Image

from api.body import FormField
from api.images import Found, images_of
from api.refusals import Refusal
from api.settings import ApiSettings
from planner.dialects.image_fields import EncodedImage, InlineImage, PartImage, Sent
from planner.errors import Invalid, Location

LOC = ("input", 0, "content", 1, "image_url")


def coded(image: bytes) -> str:
    return base64.b64encode(image).decode()


def look(*images: bytes, loc: Location = LOC, **limits: Any) -> Found:
    sent = Sent(listed=tuple((loc, f"data:image/png;base64,{coded(image)}") for image in images))
    return asyncio.run(images_of(sent, {}, ApiSettings.model_construct(**limits)))


def picture(format: str, size: tuple[int, int] = (20, 20), frames: int = 1) -> bytes:
    """A picture that compresses badly: cut short, it lacks something."""
    noise = [
        Image.effect_noise(size, 90 + frame).convert("P" if format == "GIF" else "RGB")
        for frame in range(frames)
    ]
    out = io.BytesIO()
    more: dict[str, Any] = {"save_all": True, "append_images": noise[1:]} if frames > 1 else {}
    noise[0].save(out, format, **more)
    return out.getvalue()


def png_that_says(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")


def gif_of(frames: int) -> bytes:
    """One pixel, so many times."""
    frame = b"\x2c\0\0\0\0\1\0\1\0\x80\0\0\0\xff\xff\xff\2\2\x44\1\0"
    return b"GIF89a\x01\x00\x01\x00\x00\x00\x00" + frame * frames + b";"


@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "GIF"])
@pytest.mark.parametrize("frames", [1, 3])
def test_whole_images_are_taken_and_cut_ones_refused(format: str, frames: int) -> None:
    image = picture(format, frames=1 if format == "JPEG" else frames)
    assert len(look(image).contents) == 1
    for kept in (12, len(image) // 2, len(image) - 20):
        with pytest.raises(Invalid) as refused:
            look(image[:kept])
        assert (refused.value.loc, refused.value.kind) == (LOC, "no_image")
        assert "0x" not in refused.value.message


DAMAGED = (
    # Found by fuzzing: Pillow's GIF plugin raises OSError, struct.error and IndexError at these.
    (
        "R0lGODdhCgAKAIEAAAAAAAAAAAEAAAAAAOIo2WUfuasmlACPwiwAAAAACgAKAAAIEgABCBxIsEjGoMGDrv3P3Xns0ggTKlzIsGHC"
        "gAAh+QQBAAABACwAAAAACgAKioEBAAAAAAAAAIAAAAAIEgABCBxIsKDBgwgTKlzIsGHCgAAh+QQBAAABACwAAAAACgAK/78PAIEC"
        "AAAAAAAIfwABCBxIsKDBgwgTKlxMyLBhwoAAf/kEAQAAAABEKiwAAAAACgAKAIEDAAAAAAAAAAAAAAAIEgABCBxIsKABgwgTAVzI"
        "sGHCQAB/"
    ),
    (
        "R0lGODdhCgAKAIEAAAAAAAAAAAAAAAAAACwAAAAACgAKAAAIEgABCBxIsKDBgwgTKlzIsGHCgAAh+QEALAAAAAAKAAoAgQEAAAAA"
        "AAAAAAAAAAgSAAEIHEiwoMGDCBMqXMiwYcKAACH5BAEAAAEALAAAAAAKAAoAgQIAAAAAAAAAAAAAAAgSAAEIHEiwoMGDCBMqXMiw"
        "YcKAACH5BAEAAAEALAAAAAAKAAoAgQMAAAAAAAAAAAAAAAgSAAEIHEiwoMGDCBMqXMiwYcKAADs="
    ),
    "R0lGODdhFAAUAIAAAAAAAAAAxCwAAAAAFAAUAH+AIgABCBxIsKDBgwgTKlzIsKHDhxAjSpxIsaLFixgzatxoMegAp/DkLFoRuzs=",
)


@pytest.mark.parametrize("number", range(len(DAMAGED)))
def test_a_damaged_image_is_refused_whatever_it_breaks(number: int) -> None:
    with pytest.raises(Invalid, match="does not decode") as refused:
        look(base64.b64decode(DAMAGED[number]))
    assert refused.value.loc == LOC


def test_the_setting_alone_says_how_many_pixels_are_too_many() -> None:
    with pytest.raises(Refusal) as refused:
        look(png_that_says(10_000, 10_000))
    assert refused.value.status == 413
    assert refused.value.message == (
        "input.0.content.1.image_url: an image of 100000000 pixels; the server takes 50000000 "
        "(CANVASS_MAX_IMAGE_PIXELS)"
    )
    for size in (10_000, 20_000):
        # Over Pillow's own limits, of 89 and 179 million: only what it is missing is wrong with it.
        with pytest.raises(Invalid, match="truncated"):
            look(png_that_says(size, 20_000), max_image_pixels=500_000_000)


def test_all_frames_count_before_they_are_unpacked() -> None:
    with pytest.raises(Refusal, match="1200 pixels; the server takes 1000"):
        look(picture("GIF", frames=3), max_image_pixels=1000)
    assert look(gif_of(5), max_image_frames=5).contents
    with pytest.raises(Refusal, match=r"more than 5 frames.*CANVASS_MAX_IMAGE_FRAMES"):
        look(gif_of(6), max_image_frames=5)


def test_a_great_many_frames_are_not_even_counted() -> None:
    many = gif_of(480_000)
    start = perf_counter()
    with pytest.raises(Refusal, match="more than 1000 frames"):
        look(many)
    assert perf_counter() - start < 0.5


def test_a_part_of_a_form_is_a_file() -> None:
    image = picture("PNG")
    settings = ApiSettings.model_construct()
    sent = Sent(assets={"<p>": PartImage(part="photo")})
    assert asyncio.run(images_of(sent, {"photo": image}, settings)).shown.images
    parts = {"photo": FormField(image)}
    with pytest.raises(Invalid, match="is a field, not a file") as refused:
        asyncio.run(images_of(sent, parts, settings))
    assert refused.value.loc == ("assets", "<p>", "part")


def test_base64_is_told_by_its_path() -> None:
    listed: Sent = Sent(listed=((("images", 0), EncodedImage(base64="!!")),))
    inline = Sent(assets={"<p>": InlineImage(data_base64="!!")})
    for sent, loc in ((listed, ("images", 0, "base64")), (inline, ("assets", "<p>", "data_base64"))):
        with pytest.raises(Invalid) as refused:
            asyncio.run(images_of(sent, {}, ApiSettings.model_construct()))
        assert refused.value.loc == loc
