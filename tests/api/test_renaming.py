"""An alias in a body: the served name takes its place, and no other byte changes."""

from __future__ import annotations

import json
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.renaming import in_fields, in_form, in_json

ALIAS, NAME = "jev-latest", "a/served-model"

AWKWARD = [
    b'{"model":"jev-latest"}',
    b' {  "model" :  "jev-latest" , "seed" : 123456789012345678901234567890 } \n',
    b'{"a":{"model":"jev-latest"},"model":"jev-latest","b":[1.0,1e2,-0.0,"\\u00fc"]}',
    b'{"m\\u006fdel":"jev-latest","x":"\xc3\xbc\xf0\x9f\x98\x80"}',
    b'{"messages":[{"content":"\\"model\\":\\"jev-latest\\""}],"model":"jev\\u002dlatest"}',
    b'{"model":"other","model":"jev-latest"}',
]


@pytest.mark.parametrize("content", AWKWARD)
def test_json_keeps_its_bytes_but_for_the_name(content: bytes) -> None:
    renamed = in_json(content, ALIAS, NAME)
    assert json.loads(renamed) == {**json.loads(content), "model": NAME}
    # What stands before and behind is what stood there.
    cut = renamed.rindex(NAME.encode())
    behind = renamed[cut + len(NAME) + 1 :]
    assert content.endswith(behind)
    assert content.startswith(renamed[: cut - 1])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), VALUES), st.integers(0, 5), st.booleans())
def test_any_object_is_renamed_in_its_place(body: dict[str, object], indent: int, ascii_only: bool) -> None:
    body = {**body, "model": ALIAS}
    content = json.dumps(body, indent=indent or None, ensure_ascii=ascii_only).encode()
    renamed = json.dumps({**body, "model": NAME}, indent=indent or None, ensure_ascii=ascii_only)
    assert in_json(content, ALIAS, NAME) == renamed.encode()


def test_a_line_of_fields_keeps_the_others() -> None:
    content = b"a=%20x&model=jev%2Dlatest&supermodel=jev-latest&b=model=jev-latest&model=other"
    renamed = in_fields(content, ALIAS, NAME)
    assert renamed == (b"a=%20x&model=a%2Fserved-model&supermodel=jev-latest&b=model=jev-latest&model=other")
    assert parse_qs(renamed.decode())["model"] == [NAME, "other"]


FORM = (
    b'--b\r\ncontent-disposition: form-data; name="file"; filename="model"\r\n\r\njev-latest\r\n'
    b'--b\r\nX-A: 1\r\nContent-Disposition: form-data; name="model"\r\nX-B: 2\r\n\r\nMODEL\r\n'
    b'--b\r\nContent-Disposition: form-data; name="prompt"\r\n\r\nname="model"\r\n\r\njev-latest\r\n--b--\r\n'
)


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=b", 'Multipart/form-data; boundary="b"'])
def test_a_form_keeps_its_other_parts(kind: str) -> None:
    content = FORM.replace(b"MODEL", ALIAS.encode())
    assert in_form(content, ALIAS, NAME, content_type=kind) == FORM.replace(b"MODEL", NAME.encode())
    twice = content.replace(b"--b--\r\n", b"") + content
    renamed = in_form(twice, ALIAS, NAME, content_type=kind)
    assert renamed == twice.replace(
        b"\r\n\r\njev-latest\r\n--b\r\nContent", b"\r\n\r\na/served-model\r\n--b\r\nContent"
    )
    other = FORM.replace(b"MODEL", b"other")
    assert in_form(other, ALIAS, NAME, content_type=kind) == other
