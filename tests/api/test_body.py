"""Bodies: what stands in a few bytes may not take long, nor much, nor change on its way in."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
import zlib
from collections.abc import Callable

import pytest
import zstandard
from starlette.requests import Request
from starlette.types import Message

from api.body import MOST_MEMBERS, BadEncoding, BadJson, Body, TooLarge, read_body

LIMIT = 4 * 2**20


def request(content: bytes, **headers: str) -> Request:
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]

    async def receive() -> Message:
        return {"type": "http.request", "body": content, "more_body": False}

    return Request({"type": "http", "method": "POST", "headers": named}, receive)


def read(content: bytes, **headers: str) -> Body:
    return asyncio.run(read_body(request(content, **headers), LIMIT))


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "X-GZIP": gzip.compress,
    "zstd": zstandard.compress,
}


@pytest.mark.parametrize("encoding", COMPRESS)
def test_a_compressed_body_is_what_was_compressed(encoding: str) -> None:
    body = {"text": "x" * 100_000, "n": [1, 2.5, None]}
    assert read(COMPRESS[encoding](json.dumps(body).encode()), content_encoding=encoding).value == body


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_body_in_several_parts_is_put_together(encoding: str) -> None:
    compress = COMPRESS[encoding]
    content = compress(b'{"a"') + compress(b"") + compress(b": 1}") + compress(b" ") * (MOST_MEMBERS - 3)
    assert read(content, content_encoding=encoding).value == {"a": 1}


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_body_of_very_many_parts_is_refused_at_once(encoding: str) -> None:
    content, since = COMPRESS[encoding](b"") * 130_000, time.perf_counter()
    with pytest.raises(BadEncoding, match="more than 1000"):
        read(content, content_encoding=encoding)
    assert time.perf_counter() - since < 2


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("ahead", [b"", b"{}"])
def test_a_body_over_the_limit_is_refused_before_all_of_it_is_there(encoding: str, ahead: bytes) -> None:
    compress = COMPRESS[encoding]
    with pytest.raises(TooLarge):
        read((compress(ahead) if ahead else b"") + compress(b" " * 2**28), content_encoding=encoding)
    assert read(compress(b" " * (LIMIT - 2) + b"{}"), content_encoding=encoding).value == {}


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("broken", ["cut", "garbage behind", "plain"])
def test_a_body_that_is_not_of_its_encoding_is_refused(encoding: str, broken: str) -> None:
    whole = COMPRESS[encoding](b'{"a": 1}')
    content = {"cut": whole[:-1], "garbage behind": whole + b"garbage", "plain": b'{"a": 1}'}[broken]
    with pytest.raises(BadEncoding) as refused:
        read(content, content_encoding=encoding)
    assert refused.value.status == 400


def test_an_unknown_encoding_is_415_and_names_those_that_are_served() -> None:
    with pytest.raises(BadEncoding, match="identity, gzip, x-gzip, zstd") as refused:
        read(b"{}", content_encoding="br")
    assert refused.value.status == 415


def test_the_loop_goes_on_while_a_large_body_is_decompressed() -> None:
    content = gzip.compress(b"[" + b",".join([b"1234567"] * 100_000) + b"]")

    async def worst_pause() -> float:
        worst, reading = 0.0, asyncio.create_task(read_body(request(content, content_encoding="gzip"), LIMIT))
        while not reading.done():
            since = time.perf_counter()
            await asyncio.sleep(0)
            worst = max(worst, time.perf_counter() - since)
        assert len((await reading).value) == 100_000
        return worst

    since = time.perf_counter()
    zlib.decompress(content, wbits=31)
    alone = time.perf_counter() - since
    assert min(asyncio.run(worst_pause()) for _ in range(3)) < max(0.5, 50 * alone)


LONG = 123456789012345678901234567890


@pytest.mark.parametrize("number", [LONG, -LONG, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**307])
def test_a_whole_number_of_any_size_is_itself(number: int) -> None:
    found = read(b'{"n": %d, "f": 1.5, "e": 1e3}' % number).value
    assert found == {"n": number, "f": 1.5, "e": 1000.0}
    assert (type(found["n"]), type(found["f"]), type(found["e"])) == (int, float, float)


@pytest.mark.parametrize("wrong", ["NaN", "Infinity", "1e400", "1" * 400, "01", '"\\ud800"', "[1,]"])
def test_what_is_no_json_is_refused_beside_a_large_number(wrong: str) -> None:
    with pytest.raises(BadJson):
        read(b"[%d, %b]" % (LONG, wrong.encode()))


def test_depth_is_looked_at_beside_a_large_number() -> None:
    with pytest.raises(BadJson, match="nested more than 100 deep"):
        read(b"[" * 1000 + b"%d" % LONG + b"]" * 1000)


def test_the_parts_of_a_form_are_read_and_its_json_too() -> None:
    form = (
        b'--b\r\nContent-Disposition: form-data; name="request"\r\n\r\n{"n": %d}\r\n'
        b'--b\r\nContent-Disposition: form-data; name="a"; filename="a.png"\r\n\r\nxyz\r\n--b--\r\n' % LONG
    )
    body = read(form, content_type="Multipart/Form-Data; boundary=b")
    assert (body.value, dict(body.parts)) == ({"n": LONG}, {"a": b"xyz"})
    with pytest.raises(BadJson, match="two parts"):
        read(form[: form.index(b"--b--")] + form, content_type="multipart/form-data; boundary=b")
