"""A model's name in a body by another name, and nothing else of the body changed.

Engines know their served names; a client may send an alias.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from urllib.parse import quote_plus, unquote_plus

from python_multipart.multipart import MultipartParser, parse_options_header

MODEL = "model"

Rename = Callable[[bytes, str, str], bytes]
"""From a body, the alias in it and a served name to the body by that name."""

_KEY = re.compile(r"[ \t\r\n,]*(?=\")")
_COLON = re.compile(r"[ \t\r\n]*:[ \t\r\n]*")
_FIELD = re.compile(rb"(?<![^&])model=([^&]*)")


def in_json(content: bytes, alias: str, name: str) -> bytes:
    """The content of a JSON object; of a key that comes twice, the last counts."""
    text, decoder = content.decode(), json.JSONDecoder()
    place, found = text.index("{") + 1, (0, 0)
    while key := _KEY.match(text, place):
        spelled, place = decoder.raw_decode(text, key.end())
        colon = _COLON.match(text, place)
        assert colon is not None, "the content was decoded before"
        _, place = decoder.raw_decode(text, colon.end())
        if spelled == MODEL:
            found = (colon.end(), place)
    return f"{text[: found[0]]}{json.dumps(name)}{text[found[1] :]}".encode()


def in_fields(content: bytes, alias: str, name: str) -> bytes:
    """The content of a form that is one line of fields."""

    def renamed(field: re.Match[bytes]) -> bytes:
        same = unquote_plus(field[1].decode("latin-1")) == alias
        return b"model=" + quote_plus(name).encode() if same else field[0]

    return _FIELD.sub(renamed, content)


def in_form(content: bytes, alias: str, name: str, *, content_type: str) -> bytes:
    """The content of a form in parts."""
    found: list[tuple[int, int]] = []
    headers: dict[bytes, bytes] = {}
    field, value, is_model = b"", b"", False

    def begin() -> None:
        nonlocal is_model
        headers.clear()
        is_model = False

    def named(data: bytes, start: int, end: int) -> None:
        nonlocal field
        field += data[start:end]

    def valued(data: bytes, start: int, end: int) -> None:
        nonlocal value
        value += data[start:end]

    def ended() -> None:
        nonlocal field, value
        headers[field.lower()] = value
        field, value = b"", b""

    def finished() -> None:
        nonlocal is_model
        _, options = parse_options_header(headers.get(b"content-disposition"))
        is_model = options.get(b"name") == MODEL.encode()

    def given(data: bytes, start: int, end: int) -> None:
        # The content is given in one piece, so places in it are places in the whole.
        if is_model and content[start:end] == alias.encode():
            found.append((start, end))

    _, options = parse_options_header(content_type)
    parser = MultipartParser(
        options[b"boundary"],
        {
            "on_part_begin": begin,
            "on_header_field": named,
            "on_header_value": valued,
            "on_header_end": ended,
            "on_headers_finished": finished,
            "on_part_data": given,
        },
    )
    parser.write(content)
    starts, ends = [start for start, _ in found], [end for _, end in found]
    rest = zip((0, *ends), (*starts, len(content)), strict=True)
    return name.encode().join(content[start:end] for start, end in rest)
