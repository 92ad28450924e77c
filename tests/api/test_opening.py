"""The opening of a call, as a canvas holds it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from api.tool_calls import forces_call, opening
from planner.errors import Invalid
from planner.vocabulary import Vocabulary, make_vocabulary
from tests.planner.support import FakeTokenizer


@pytest.fixture
def gemma() -> Vocabulary:
    """A vocabulary whose tokenizer has Gemma's markup."""
    return make_vocabulary(FakeTokenizer(), canvas=64)


def test_the_opening_is_pinned_at_the_head_behind_an_empty_thought(gemma: Vocabulary) -> None:
    canvas = opening("get_weather", gemma)
    held = [canvas.ids[place] for place in canvas.pinned]
    assert gemma.tokenizer.decode(held) == "<|channel>thought\n<channel|><|tool_call>call:get_weather{"
    assert canvas.pinned == list(range(len(held)))
    assert canvas.width == 64


def test_what_follows_is_noise_that_the_seed_decides(gemma: Vocabulary) -> None:
    canvas = opening("f", gemma)
    one, other = canvas.seeded(1), canvas.seeded(2)
    assert one == canvas.seeded(1)
    differing = [place for place in range(64) if one[place] != other[place]]
    assert min(differing) == len(canvas.pinned)
    assert len(differing) > 50 - len(canvas.pinned)


def test_a_family_that_does_not_say_how_it_calls_is_refused(gemma: Vocabulary) -> None:
    silent = replace(gemma, family=replace(gemma.family, calling=None))
    with pytest.raises(Invalid, match="models of the gemma family") as refused:
        opening("f", silent)
    assert (refused.value.loc, refused.value.kind) == (("tool_choice",), "not_served")


def test_an_opening_that_fills_the_canvas_is_refused(gemma: Vocabulary) -> None:
    with pytest.raises(Invalid, match="the canvas has 16"):
        opening("a_b_c_d_e_f_g_h", replace(gemma, canvas=16))


@pytest.mark.parametrize(
    ("choice", "forces"),
    [
        ("required", True),
        ({"type": "function", "function": {"name": "f"}}, True),
        ("auto", False),
        ("none", False),
        (None, False),
        (7, False),
    ],
)
def test_required_and_a_name_force_a_call(choice: object, forces: bool) -> None:
    assert forces_call({"tool_choice": choice}) is forces
