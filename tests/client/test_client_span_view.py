"""Span answers in a terminal: the answers, the marked text, the plan."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console, RenderableType

from client.plan_view import SPANS_SHOWN, plan_view, window_lines
from client.span_view import ITEMS_SHOWN, WHOLE, text_view
from client.view import decision_view


def shown(renderable: RenderableType, *, color: bool = False) -> str:
    out = StringIO()
    console = Console(file=out, width=160, force_terminal=color, color_system="truecolor" if color else None)
    console.print(renderable)
    return out.getvalue()


def span(source: str, text: str, confidence: float = 0.9, **fields: Any) -> dict[str, Any]:
    start = source.index(text)
    place = {"text": text, "start": start, "end": start + len(text)}
    sure = {"confidence": confidence, "coverage": 0.987, "reads": 1}
    return {"type": "span", "found": True, **place, **sure, **fields}


def missing() -> dict[str, Any]:
    none = dict.fromkeys(("text", "start", "end", "confidence", "coverage"))
    return {"type": "span", "found": False, **none, "reads": 4}


def read(id: str, kind: str, **fields: Any) -> dict[str, Any]:
    _, group, _, draw, attempt = id.split("/")
    place = {"id": id, "kind": kind, "wave": int(attempt), "stage": 0, "questions": [group]}
    return {**place, "draw": int(draw), "attempt": int(attempt), "seed": int(attempt), "ms": 2.0} | fields


INVOICE = "Invoice R-7 of Acme Ltd. for 5 €"


def test_each_piece_stands_in_the_text_with_its_question_and_confidence() -> None:
    answers = {"number": span(INVOICE, "R-7", 0.98), "vendor": span(INVOICE, "Acme Ltd.", 0.5)}
    text = shown(text_view(INVOICE, answers))
    assert "Invoice ⟦R-7⟧(number 0.98) of ⟦Acme Ltd.⟧(vendor 0.50) for 5 €" in text
    assert "Text: 32 characters" in text


def test_each_question_has_a_colour_of_its_own() -> None:
    answers = {"number": span(INVOICE, "R-7"), "vendor": span(INVOICE, "Acme Ltd.")}
    text = shown(text_view(INVOICE, answers), color=True)
    assert "\x1b[30;43mR-7" in text
    assert "\x1b[30;46mAcme Ltd." in text


def test_pieces_that_overlap_keep_their_own_brackets() -> None:
    answers = {"whole": span(INVOICE, "R-7 of Acme", 0.9), "vendor": span(INVOICE, "Acme Ltd.", 0.8)}
    assert "⟦R-7 of ⟦Acme⟧(whole 0.90) Ltd.⟧(vendor 0.80)" in shown(text_view(INVOICE, answers))


def test_a_long_text_says_how_much_of_it_is_left_out() -> None:
    source = "word " * WHOLE + "R-7" + " word" * WHOLE
    text = shown(text_view(source, {"number": span(source, "R-7")}))
    assert "Text: 12,003 characters, 11,8" in text
    assert text.count("characters left out") == 2
    assert "⟦R-7⟧(number 0.90)" in text


def test_offsets_that_do_not_fit_are_told_and_not_drawn() -> None:
    text = shown(text_view(INVOICE, {"number": span(INVOICE, "R-7") | {"start": 0}}))
    assert "Wrong offsets: number: 'R-7' does not stand at 0 to 11" in text
    assert "⟦" not in text


def test_a_text_cannot_steer_the_terminal_but_keeps_its_lines() -> None:
    source = "a\x1b[2J\rb\r\n\tR-7\u202e [red]x[/]"
    text = shown(text_view(source, {"q": span(source, "R-7")}))
    assert "a\\x1b[2J\\rb\n" in text
    assert "\\u202e [red]x[/]" in text


def test_the_table_tells_place_coverage_reads_windows_and_what_was_chosen_between() -> None:
    settled = span(INVOICE, "R-7", reads=9, windows=4, resolved={"R-7": 0.75, "5 €": 0.25})
    text = shown(decision_view({"answers": {"number": settled, "discount": missing()}}, INVOICE))
    assert "8 to 11" in text
    assert "coverage 0.987" in text
    assert "9 reads, 4 windows" in text
    assert "chosen between: R-7 75.0 %" in text
    assert "not found" in text
    assert "4 reads" in text


def test_a_list_shows_its_pieces_and_counts_the_rest() -> None:
    source = " ".join(f"item{n:02}" for n in range(ITEMS_SHOWN + 3))
    items = [span(source, f"item{n:02}") for n in range(ITEMS_SHOWN + 3)]
    text = shown(decision_view({"answers": {"all": {"type": "spans", "found": True, "items": items}}}))
    assert f"{ITEMS_SHOWN + 3} pieces" in text
    assert "and 3 more pieces" in text
    assert "confidence 0.900" in text


def test_a_decision_without_span_questions_shows_no_text() -> None:
    assert "Text:" not in shown(decision_view({"answers": {"q": {"type": "noul", "noul": 1}}}, "state"))


def test_windows_that_were_read_alike_share_a_line_and_retries_name_their_seeds() -> None:
    reads = [read(f"0/s0/{window}/0/0", "span") for window in range(5)]
    reads += [read("0/s0/3/0/1", "span"), read("0/s0/choose/0/0", "choose", wave=2)]
    assert window_lines(reads) == [
        "windows 0 to 2, 4: attempt 0 (seed 0)",
        "window 3: attempts 0 (seed 0), 1 (seed 1)",
        "choose between windows (seed 0, wave 2)",
    ]


def test_a_list_names_its_draws() -> None:
    reads = [read(f"0/s0/0/{draw}/0", "list", seed=4 * draw) for draw in range(2)]
    assert window_lines(reads) == ["window 0: draws 0 (seed 0), 1 (seed 4)"]


def test_hundreds_of_span_reads_take_a_line_for_each_question() -> None:
    reads = [
        read(f"0/s{n}/{w}/0/0", "span", engine="http://e:1")
        for n in range(SPANS_SHOWN + 2)
        for w in range(40)
    ]
    diagnostics = {"spans": ["s0", "s1"], "reads": reads, "waves": 1, "timing": {"total_ms": 3.0}}
    text = shown(plan_view(diagnostics))
    assert "Plan: 1 wave, 1,040 reads (1,040 for spans, 40 windows), 1 engine, 3.0 ms" in text
    assert "beside the stages: s0, s1" in text
    assert text.count("windows 0 to 39: attempt 0 (seed 0)") == SPANS_SHOWN
    assert "and 2 more questions" in text


def test_the_plan_counts_retries_and_choices() -> None:
    reads = [read("0/s0/0/0/0", "span"), read("0/s0/1/0/0", "span"), read("0/s0/1/0/1", "span")]
    reads.append(read("0/s0/choose/0/0", "choose"))
    diagnostics = {
        "spans": ["s0"],
        "reads": reads,
        "waves": 3,
        "timing": {"queued_ms": None, "total_ms": 3.0},
    }
    assert "4 reads (3 for spans, 2 windows, 1 retry, 1 to choose)" in shown(plan_view(diagnostics))


def test_label_reads_keep_their_rows_beside_span_reads() -> None:
    reads = [read("0/0/0/0/0", "label", questions=["urgent"]), read("0/s0/0/0/0", "span")]
    text = shown(plan_view({"stages": [["urgent"]], "spans": ["s0"], "reads": reads, "waves": 1}))
    assert "urgent" in text
    assert "window 0: attempt 0 (seed 0)" in text
