"""Request bodies: read within a limit, decompressed within it too, decoded as strict JSON.

What takes long is done in a thread: a body of megabytes must not hold up every other request.

BodyError
├── TooLarge       the body is over the limit (413)
├── BadEncoding    an unknown Content-Encoding (415), or one that does not decode (400)
├── BadForm        a form that cannot be read (422)
└── BadJson        not JSON, or nested too deeply (422)
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson
import zstandard
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from planner.json_depth import MAX_DEPTH, is_too_deep
from planner.json_numbers import exact

REQUEST_PART = "request"
MOST_PARTS = 64

MOST_MEMBERS = 1000
"""Members of a gzip body, frames of a zstd one: a client sends one."""

LONG_BYTES = 65_536
"""Size of a body from which on its JSON is decoded in a thread. What is compressed always is."""

PIECE_BYTES = 1024
"""Of a compressed body, decompressed at a time: it stands for at most 32 MiB, whatever the encoding."""


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


class BadForm(BadJson):
    """The body is a form that cannot be read, or one without what it must have."""


class FormField(bytes):
    """A part of a form that is no file: it came without a filename, so it was read as text."""


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
    if not is_form(request.headers):
        return await read_json(request, limit, depth)
    parts: dict[str, bytes] = {}
    for name, part in await read_form(request.headers, await read_content(request, limit), limit):
        if name in parts:
            raise BadForm(f"the form has two parts {name!r}")
        parts[name] = part
    if REQUEST_PART not in parts:
        raise BadForm(f"the form has no part {REQUEST_PART!r} with the JSON of the request")
    # Of its own class it is no bytes to what decodes it.
    asked = bytes(parts.pop(REQUEST_PART))
    return Body((await decoded(asked, depth)).value, asked, parts)


def is_form(headers: Headers) -> bool:
    """Whether a body is a form in parts, by its content type."""
    return headers.get("content-type", "").lower().startswith("multipart/form-data")


async def read_form(
    headers: Headers, content: bytes, limit: int, most: int = MOST_PARTS
) -> list[tuple[str, bytes]]:
    """The parts of a form in their order, at most so many files and fields. Raises BadForm."""

    async def whole() -> AsyncGenerator[bytes, None]:
        yield content

    try:
        parser = MultiPartParser(headers, whole(), max_files=most, max_fields=most, max_part_size=limit)
        form = await parser.parse()
        found = [
            (name, await part.read() if isinstance(part, UploadFile) else FormField(part.encode()))
            for name, part in form.multi_items()
        ]
        await form.close()
    except MultiPartException as error:
        raise BadForm(f"the form cannot be read: {error.message}") from error
    except (UnicodeError, LookupError) as error:
        raise BadForm(f"the form is not in the charset that it names: {error}") from error
    return found


async def read_json(request: Request, limit: int, depth: int = MAX_DEPTH) -> Body:
    """A request's body of at most `limit` bytes of JSON no deeper than `depth`, compressed or not.

    Raises a BodyError.
    """
    return await decoded(await read_content(request, limit), depth)


async def read_content(request: Request, limit: int) -> bytes:
    """A request's body of at most `limit` bytes, decompressed. Raises a BodyError."""
    content = await _content(request, limit)
    encoding = (request.headers.get("content-encoding") or "identity").strip().lower()
    if encoding == "identity" or not content:
        return content
    return await asyncio.to_thread(_decompressed, content, encoding, limit)


async def decoded(content: bytes, depth: int = MAX_DEPTH) -> Body:
    """A body of JSON no deeper than `depth`. Raises BadJson."""
    if len(content) < LONG_BYTES:
        return Body(_strict(content, depth), content)
    return Body(await asyncio.to_thread(_strict, content, depth), content)


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
    return exact(value, content)


async def _content(request: Request, limit: int) -> bytes:
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > limit:
            raise TooLarge(limit)
    return bytes(content)


def _decompressed(content: bytes, name: str, limit: int) -> bytes:
    if name not in _DECODERS:
        names = ", ".join(("identity", *_DECODERS))
        raise BadEncoding(f"Content-Encoding {name!r} is not served; {names} are", 415)
    try:
        plain = _plain(content, limit + 1, _DECODERS[name])
    except (zlib.error, zstandard.ZstdError, EOFError) as error:
        raise BadEncoding(f"the body is not {name}: {error}") from error
    if len(plain) > limit:
        raise TooLarge(limit)
    return plain


class _Decoder(Protocol):
    """Decompresses one member of a stream."""

    @property
    def eof(self) -> bool:
        """Whether the member's end was met."""

    @property
    def unused_data(self) -> bytes:
        """What was given beyond it."""

    def decompress(self, data: bytes, /) -> bytes:
        """All that more of the stream stands for."""


def _plain(content: bytes, most: int, make: Callable[[], _Decoder]) -> bytes:
    """Every member of a compressed stream, up to `most` bytes or a little over.

    The stream is given in small pieces: what one stands for is bounded then, whatever it says of itself, and
    so is what is copied at the end of a member.
    """
    plain, place = bytearray(), 0
    for _ in range(MOST_MEMBERS):
        decoder = make()
        while not decoder.eof and len(plain) < most:
            if place >= len(content):
                raise EOFError("the stream ends early")
            piece = content[place : place + PIECE_BYTES]
            plain += decoder.decompress(piece)
            place += len(piece)
        place -= len(decoder.unused_data)
        if place >= len(content) or len(plain) >= most:
            return bytes(plain)
    raise BadEncoding(f"the body has more than {MOST_MEMBERS} compressed parts")


def _gunzip() -> _Decoder:
    return zlib.decompressobj(wbits=31)


def _unzstd() -> _Decoder:
    return zstandard.ZstdDecompressor().decompressobj()


_DECODERS: dict[str, Callable[[], _Decoder]] = {"gzip": _gunzip, "x-gzip": _gunzip, "zstd": _unzstd}
