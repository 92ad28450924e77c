"""The web page of a decision: complete in itself, and nothing in it comes alive."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from client.errors import CannotWrite
from client.page import WHOLE, decision_page, write_page

HOSTILE = "<script>alert('x')</script>\"'><img src=//evil.example onerror=alert(1)>&amp;\x00\u202e"
VOID = {"meta", "br", "img", "link"}


class Page(HTMLParser):
    """The elements and the text of a page; an element that is not closed where it should be raises."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every element of a name."""
        return [attributes for name, attributes in self.tags if name == tag]


def item(source: str, text: str, confidence: float = 0.9) -> dict[str, Any]:
    start = source.index(text)
    return {"text": text, "start": start, "end": start + len(text), "confidence": confidence, "coverage": 1.0}


def span(source: str, text: str, confidence: float = 0.9) -> dict[str, Any]:
    return {"type": "span", "found": True, **item(source, text, confidence), "reads": 1}


def test_pieces_are_marked_with_question_and_confidence_in_title_and_beside() -> None:
    source = "Invoice R-7 of Acme"
    page = Page(decision_page({"model": "m", "answers": {"number": span(source, "R-7", 0.98)}}, source))
    (mark,) = page.named("mark")
    assert mark == {"class": "c0", "title": "number 0.98"}
    assert "Invoice R-7number 0.98 of Acme" in page.text


def test_overlapping_pieces_share_a_striped_stretch() -> None:
    source = "Invoice R-7 of Acme"
    answers = {"a": span(source, "Invoice R-7"), "b": span(source, "R-7 of")}
    marks = Page(decision_page({"answers": answers}, source)).named("mark")
    assert [mark["title"] for mark in marks] == ["a 0.90", "b 0.90, a 0.90", "b 0.90"]
    assert "linear-gradient(var(--c1) 0.0% 50.0%, var(--c0) 50.0% 100.0%)" in str(marks[1]["style"])


def test_the_legend_names_every_span_question_and_what_it_found() -> None:
    source = "red, blue, red"
    found = {"type": "spans", "found": True, "items": [item(source, "red"), item(source, "blue")], "reads": 2}
    lost = {"type": "span", "found": False, "text": None, "confidence": None, "reads": 4}
    page = Page(decision_page({"answers": {"colours": found, "size": lost}}, source))
    assert [one["class"] for one in page.named("span") if "swatch" in str(one["class"])] == [
        "swatch c0",
        "swatch c1",
    ]
    assert "not found" in page.text


def test_label_answers_are_bars() -> None:
    answers = {
        "urgent": {"type": "noul", "noul": 0.25},
        "team": {"type": "choice", "choice": "a", "probabilities": {"a": 0.7, "b": 0.3}},
        "later": None,
    }
    page = Page(decision_page({"answers": answers}, "s"))
    bars = [one["style"] for one in page.named("div") if one.get("class") == "bar"]
    assert bars == ["width: 25.00%", "width: 70.00%", "width: 30.00%"]
    assert "skipped" in page.text
    assert "Found in the text" not in page.text


def test_hostile_text_stays_text_wherever_it_stands() -> None:
    source = f"{HOSTILE} value {HOSTILE}"
    answers = {
        HOSTILE: span(source, HOSTILE) | {"resolved": {HOSTILE: 0.9, "value": 0.1}},
        "inner": span(source, "value"),
        "wrong": span(source, "value") | {"text": HOSTILE},
        "choice": {"type": "choice", "choice": HOSTILE, "probabilities": {HOSTILE: 1.0}},
        "score": {"type": "score", "score": 0.0, "legend": {"0": HOSTILE}, "probabilities": {"0": 1.0}},
    }
    body = {"model": HOSTILE, "answers": answers, "diagnostics": {"reads": [{"engine": HOSTILE}]}}
    page = Page(decision_page(body, source))
    assert {tag for tag, _ in page.tags} <= {
        *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "table", "tr", "th", "td"),
        *("div", "span", "mark", "bdi", "br"),
    }
    names = {name for _, attributes in page.tags for name in attributes}
    assert names <= {"lang", "charset", "name", "content", "http-equiv", "class", "style", "title", "dir"}
    assert page.text.count("<script>alert('x')</script>") >= 8
    assert not {"\x00", "\u202e"} & set(page.text)


def test_a_page_loads_nothing_and_forbids_to() -> None:
    source = decision_page({"answers": {"q": span("a b", "a")}}, "a b")
    for loading in ("src=", "href=", "url(", "@import", "<script", "<link", "http://", "https://"):
        assert loading not in source
    assert "default-src 'none'; style-src 'unsafe-inline'" in source
    assert "prefers-color-scheme: dark" in source


def test_a_very_long_text_is_shortened_and_says_so() -> None:
    state = "word " * WHOLE + "R-7"
    text = Page(decision_page({"answers": {"q": span(state, "R-7")}}, state)).text
    assert "characters left out" in text
    assert len(text) < 2000


def test_a_page_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match="nowhere"):
        write_page(tmp_path / "nowhere" / "page.html", {"answers": {}}, "")
