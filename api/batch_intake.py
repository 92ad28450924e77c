"""Taking a batch in: what was posted becomes lines, and lines become pieces in the store.

A file is spooled to disk by the form parser and read from there, so that memory holds one piece of it. Lines
are not looked at here: a bad one fails alone, when it is fed (workers/batch_lines.py).
"""

from __future__ import annotations

import asyncio
import csv
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from io import TextIOWrapper
from typing import Any, BinaryIO, Self

import orjson
from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from api.body import BadJson, read_json
from api.refusals import Refusal
from api.settings import ApiSettings
from planner.json_depth import is_too_deep
from planner.json_numbers import exact, exact_json
from workers.batch_lines import bad_line, good_line
from workers.store.batches import Batches, Piece

PIECE_LINES = 500
PIECE_BYTES = 256 * 1024
"""Size from which on a piece takes no further line."""

READ_BYTES = 1 << 20

FILE_TYPES = {
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "csv": "csv",
    "application/jsonl": "jsonl",
    "application/x-ndjson": "jsonl",
    "application/ndjson": "jsonl",
    "text/csv": "csv",
}
"""What a file holds, by the end of its name or by its content type."""


@dataclass(frozen=True, slots=True)
class Posted:
    """A batch as it was posted: its request, the lines of its states, and a digest of both.

    `lines` reads from the file as it is used, which is for one time and any thread.
    """

    request: dict[str, Any]
    lines: Iterator[bytes]
    digest: str


async def read_posted(request: Request, settings: ApiSettings) -> Posted:
    """What was posted, as JSON or as a form. Raises a BodyError or Refusal."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "multipart/form-data":
        body = await read_json(request, settings.max_body_bytes, settings.max_json_depth)
        value = _object(body.value)
        states = value.pop("states", None)
        if not isinstance(states, list) or not states:
            raise Refusal(422, "invalid_request", "states: a list of at least one state")
        return Posted(value, _json_lines(states), blake2b(body.content).hexdigest())
    return await _read_form(request, settings)


async def store_lines(batches: Batches, id: str, lines: Iterator[bytes], most: int) -> tuple[int, int]:
    """Keep the lines of a batch; how many there are, and in how many pieces. Raises Refusal or StoreError,
    and then keeps none.
    """
    total = pieces = 0
    try:
        while cut := await asyncio.to_thread(_cut, lines):
            await batches.put_piece(id, pieces, Piece(total, cut))
            total, pieces = total + len(cut), pieces + 1
            if total > most:
                raise Refusal(
                    413, "too_many_states", f"a batch holds {most} states at most (CANVASS_MAX_BATCH_STATES)"
                )
        if not total:
            raise Refusal(422, "invalid_request", "file: it holds no state")
    except BaseException:
        await batches.drop_pieces(id, pieces)
        raise
    return total, pieces


def _cut(lines: Iterator[bytes]) -> tuple[bytes, ...]:
    """The lines of the next piece; none at the end."""
    cut: list[bytes] = []
    size = 0
    for line in lines:
        cut.append(line)
        size += len(line)
        if len(cut) >= PIECE_LINES or size >= PIECE_BYTES:
            break
    return tuple(cut)


async def _read_form(request: Request, settings: ApiSettings) -> Posted:
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Refusal(415, "bad_encoding", "a form is taken without Content-Encoding")
    stream = _limited(request.stream(), settings.max_batch_bytes)
    most = settings.max_body_bytes
    try:
        parser = MultiPartParser(request.headers, stream, max_files=2, max_fields=2, max_part_size=most)
        form = await parser.parse()
    except MultiPartException as error:
        raise Refusal(422, "bad_form", f"the form cannot be read: {error.message}") from error
    except UnicodeError as error:
        raise Refusal(422, "bad_form", f"the form is not in the charset that it names: {error}") from error
    if form.keys() != {"request", "file"}:
        raise Refusal(422, "bad_form", "a form has two parts, `request` (JSON) and `file`")
    file = form["file"]
    if not isinstance(file, UploadFile):
        raise Refusal(422, "bad_form", "file: the part needs a file name that ends in .jsonl or .csv")
    asked = form["request"]
    content = await asked.read(most + 1) if isinstance(asked, UploadFile) else asked.encode()
    if len(content) > most:
        raise Refusal(413, "body_too_large", f"request: larger than {most} bytes (CANVASS_MAX_BODY_BYTES)")
    try:
        value = _object(orjson.loads(content))
    except orjson.JSONDecodeError as error:
        raise BadJson(f"request: not JSON: {error}") from error
    if is_too_deep(value, content, depth := settings.max_json_depth):
        raise BadJson(f"request: nested more than {depth} deep (CANVASS_MAX_JSON_DEPTH)")
    if "states" in value:
        raise Refusal(422, "invalid_request", "states: they are in the file; leave them out of the request")
    binary = file.file
    lines = _csv_lines(binary, most) if _file_type(file) == "csv" else _jsonl_lines(binary, most)
    return Posted(exact(value, content), lines, await asyncio.to_thread(_digest, content, binary))


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Refusal(422, "invalid_request", "the request is no JSON object")
    if "state" in value:
        raise Refusal(422, "invalid_request", "state: a batch has `states`")
    return value


def _file_type(file: UploadFile) -> str:
    suffix = (file.filename or "").rpartition(".")[2].lower()
    kind = (file.content_type or "").partition(";")[0].strip().lower()
    found = FILE_TYPES.get(suffix) or FILE_TYPES.get(kind)
    if found is None:
        raise Refusal(422, "bad_file", "file: its name must end in .jsonl, .ndjson or .csv")
    return found


def _digest(request: bytes, file: BinaryIO) -> str:
    digest = blake2b(b"%d:" % len(request) + request)
    while block := file.read(READ_BYTES):
        digest.update(block)
    file.seek(0)
    return digest.hexdigest()


async def _limited(stream: AsyncGenerator[bytes, None], most: int) -> AsyncGenerator[bytes, None]:
    size = 0
    async for block in stream:
        size += len(block)
        if size > most:
            message = f"the form is larger than {most} bytes (CANVASS_MAX_BATCH_BYTES)"
            raise Refusal(413, "body_too_large", message)
        yield block


def _json_lines(states: Iterable[Any]) -> Iterator[bytes]:
    for state in states:
        named = isinstance(state, dict) and "state" in state and state.keys() <= {"custom_id", "state"}
        yield good_line(exact_json(state if named else {"state": state}))


def _jsonl_lines(file: BinaryIO, most: int) -> Iterator[bytes]:
    """One line per line that is not blank. One longer than `most` bytes is bad."""
    start = b"\xef\xbb\xbf"
    while line := file.readline(most + 2):
        if len(line) > most and not line.endswith(b"\n"):
            while (rest := file.readline(READ_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield bad_line("too_long", f"the line is longer than {most} bytes (CANVASS_MAX_BODY_BYTES)")
            continue
        content, start = line.removeprefix(start).strip(), b""
        if content:
            yield good_line(content)


class RowTooLong(Exception):
    """A row of a CSV file takes more than is read of one."""


class _RowText:
    """The text of a CSV file for its reader, line by line: `most` characters of it for one row.

    What would be more is skipped to the end of its line, so that memory holds no row that is longer.
    """

    def __init__(self, text: TextIOWrapper, most: int) -> None:
        self._text = text
        self._most = most
        self._left = most

    def begin_row(self) -> None:
        """Have the next line count as the first of a row."""
        self._left = self._most

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        line = self._text.readline(self._left + 1)
        self._left -= len(line)
        if self._left < 0:
            while line and not line.endswith(("\n", "\r")):
                line = self._text.readline(READ_BYTES)
            raise RowTooLong
        if not line:
            raise StopIteration
        return line


def _csv_lines(file: BinaryIO, most: int) -> Iterator[bytes]:
    """One line per row after the header. Raises Refusal for a header that names no state."""
    csv.field_size_limit(most)
    text = TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="")
    source = _RowText(text, most)
    rows = csv.reader(source)
    try:
        header = next(rows, [])
    except (csv.Error, RowTooLong) as error:
        raise Refusal(422, "bad_file", f"file: its header is no CSV: {error or 'it is too long'}") from error
    if len(set(header)) != len(header) or not set(header) - {"custom_id"}:
        raise Refusal(422, "bad_file", "file: its header must name a `state` or other columns, each once")
    while True:
        source.begin_row()
        try:
            row = next(rows)
        except StopIteration:
            text.detach()
            return
        except csv.Error as error:
            yield bad_line("invalid_csv", f"the row is no CSV: {error}")
            continue
        except RowTooLong:
            message = f"the row is longer than {most} characters (CANVASS_MAX_BODY_BYTES)"
            yield bad_line("too_long", message)
            continue
        if row:
            yield _csv_line(header, row)


def _csv_line(header: Sequence[str], row: Sequence[str]) -> bytes:
    fields = dict(zip(header, row, strict=False))
    custom_id = fields.pop("custom_id", None) or None
    try:
        if len(row) != len(header):
            message = f"the row has {len(row)} fields, the header {len(header)}"
            return bad_line("invalid_csv", message, custom_id)
        return good_line(orjson.dumps({"custom_id": custom_id, "state": fields.get("state", fields)}))
    except orjson.JSONEncodeError:
        return bad_line("invalid_csv", "the row is not UTF-8")
