"""What a decision looks like in a terminal."""

from io import StringIO
from typing import Any

from rich.console import Console, RenderableType

from client.cells import short_state
from client.plan_view import READS_SHOWN
from client.view import OPTIONS_SHOWN, decision_view, parts


def shown(renderable: RenderableType) -> str:
    out = StringIO()
    Console(file=out, width=160).print(renderable)
    return out.getvalue()


def choice(probabilities: dict[str, float], **fields: Any) -> dict[str, Any]:
    best = max(probabilities, key=probabilities.__getitem__)
    return {"type": "choice", "choice": best, "probabilities": probabilities, "confidence": 0.5} | fields


def body(answers: dict[str, Any], **diagnostics: Any) -> dict[str, Any]:
    return {"model": "m", "answers": answers, "usage": {}, "diagnostics": diagnostics}


def read(number: int) -> dict[str, Any]:
    place = {"id": str(number), "wave": 0, "stage": 0, "questions": ["q"], "draw": number, "seed": number}
    return place | {
        "engine": "http://e:1",
        "ms": 1.25,
        "attempts": 1,
        "prompt_tokens": 90,
        "cached_tokens": 64,
    }


def test_a_noul_shows_its_probability_of_yes() -> None:
    text = shown(decision_view(body({"refund": {"type": "noul", "noul": 0.813, "label_mass": 0.97}})))
    assert "refund" in text
    assert "yes" in text
    assert "p(yes)" in text
    assert "81.3 %" in text
    assert "0.970" in text


def test_a_choice_lists_its_options_the_most_probable_first() -> None:
    answer = choice({"billing": 0.2, "technical": 0.7, "sales": 0.1})
    assert [part.label for part in parts(answer)] == ["technical", "billing", "sales"]


def test_a_choice_of_many_options_shows_the_first_and_counts_the_rest() -> None:
    answer = choice({f"option-{n:02}": (20 - n) / 210 for n in range(20)})
    text = shown(decision_view(body({"q": answer})))
    assert f"option-{OPTIONS_SHOWN - 1:02}" in text
    assert f"option-{OPTIONS_SHOWN:02}" not in text
    assert f"and {20 - OPTIONS_SHOWN} more" in text


def test_a_score_shows_every_level_in_order_with_its_legend() -> None:
    answer = {
        "type": "score",
        "score": 1.9,
        "legend": {"0": "calm", "1": {"text": "busy"}, "2": "on fire"},
        "probabilities": {"0": 0.0004, "1": 0.0996, "2": 0.9},
        "confidence": 0.8,
    }
    text = shown(decision_view(body({"urgency": answer})))
    assert "1.90 of 2" in text
    assert text.index("0 calm") < text.index('1 {"text":"busy"}') < text.index("2 on fire")
    assert "< 0.1 %" in text


def test_a_skipped_question_says_why() -> None:
    text = shown(
        decision_view(body({"thanks": None}, skipped={"thanks": "'kind' is 'outage', not 'praise'"}))
    )
    assert "skipped" in text
    assert "'kind' is 'outage', not 'praise'" in text


def test_fields_under_an_x_are_read_too() -> None:
    text = shown(decision_view({"answers": {"q": {"type": "noul", "noul": 0.2, "x_label_mass": 0.321}}}))
    assert "0.321" in text


def test_several_draws_show_how_far_they_agree() -> None:
    answer = choice({"a": 0.6, "b": 0.4}, draws=4, agreement=0.75, stderr=0.0312)
    text = shown(decision_view(body({"q": answer})))
    assert "4 draws" in text
    assert "75 % agree" in text
    assert "± 0.031" in text


def test_the_plan_counts_stages_waves_reads_draws_and_engines() -> None:
    text = shown(
        decision_view(
            body(
                {"q": {"type": "noul", "noul": 0.5}},
                stages=[["q"], ["r", "s"]],
                waves=2,
                reads=[read(0), read(1)],
                questions={"q": {"draws": 2}, "r": {"draws": 1}},
                timing={"queued_ms": 1.5, "total_ms": 42.25},
            )
        )
    )
    assert "Plan: 2 stages, 2 waves, 2 reads, 1 to 2 draws, 1 engine, 42.2 ms (1.5 ms queued)" in text
    assert "stage 1: r, s" in text
    assert "http://e:1" in text


def test_a_plan_of_many_reads_shows_the_first_and_counts_the_rest() -> None:
    text = shown(decision_view(body({}, reads=[read(number) for number in range(READS_SHOWN + 5)])))
    assert "and 5 more reads" in text


def test_names_that_look_like_markup_are_shown_as_they_are() -> None:
    text = shown(decision_view(body({"[red]": choice({"[/]": 0.9, "[bold]b": 0.1})})))
    assert "[red]" in text
    assert "[/]" in text
    assert "[bold]b" in text


def test_control_characters_of_a_server_do_not_reach_the_terminal() -> None:
    text = shown(decision_view(body({"a\x1b[2Jb": choice({"c\x07": 1.0})})))
    assert "\x1b[2J" not in text
    assert "\\x1b[2Jb" in text
    assert "\\x07" in text


def test_a_long_state_is_shown_by_its_beginning_on_one_line() -> None:
    text = short_state({"text": "line\n" * 100})
    assert "\n" not in text
    assert text.endswith("…")
