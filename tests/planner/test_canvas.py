"""Canvases by vLLM's rules: widths, noise, the turn close, padding and pins."""

import orjson
import pytest

from planner.canvas import make_canvas, width_for
from planner.errors import Invalid
from planner.plan import make_plan
from planner.vocabulary import Vocabulary
from tests.planner.support import check_vllm_rules, choice, decide, first_reads, many, noul, score
from workers.pool.vllm import Call, read_body

TEMPLATE = (500, 501, 502, 503)


@pytest.mark.parametrize(("length", "width"), [(1, 16), (14, 16), (15, 32), (30, 32), (31, 48), (62, 64)])
def test_a_width_is_the_next_multiple_of_16_that_holds_close_and_a_padding_row(
    length: int, width: int
) -> None:
    assert width_for(length) == width


def test_after_the_answer_come_the_turn_close_and_padding(vocabulary: Vocabulary) -> None:
    canvas = make_canvas(vocabulary, TEMPLATE, (3,))
    assert canvas.ids == (*TEMPLATE, vocabulary.turn_close, *[vocabulary.pad] * 11)


@pytest.mark.parametrize("length", range(1, 40))
def test_at_least_one_padding_row_follows_the_close(vocabulary: Vocabulary, length: int) -> None:
    canvas = make_canvas(vocabulary, tuple(range(500, 500 + length)), (0,))
    assert canvas.ids[length] == vocabulary.turn_close
    assert set(canvas.ids[length + 1 :]) == {vocabulary.pad}


def test_everything_but_the_slots_is_pinned(vocabulary: Vocabulary) -> None:
    canvas = make_canvas(vocabulary, TEMPLATE, (1, 3))
    assert canvas.pinned == [0, 2, *range(4, 16)]


def test_noise_stands_in_the_slots_only(vocabulary: Vocabulary) -> None:
    canvas = make_canvas(vocabulary, TEMPLATE, (1, 3))
    seeded = canvas.seeded(0)
    assert [place for place in range(16) if seeded[place] != canvas.ids[place]] == [1, 3]


def test_a_seed_always_makes_the_same_noise(vocabulary: Vocabulary) -> None:
    canvas = make_canvas(vocabulary, TEMPLATE, (1, 3))
    assert canvas.seeded(7) == canvas.seeded(7)


def test_the_noise_of_a_seed_is_the_same_on_every_machine(vocabulary: Vocabulary) -> None:
    seeded = make_canvas(vocabulary, TEMPLATE, (0, 1)).seeded(0)
    assert seeded[:2] == [25247, 27562]


def test_draws_differ_in_their_noise(vocabulary: Vocabulary) -> None:
    canvas = make_canvas(vocabulary, TEMPLATE, (3,))
    assert len({canvas.seeded(seed)[3] for seed in range(32)}) >= 31


def test_noise_is_drawn_from_the_whole_vocabulary(vocabulary: Vocabulary) -> None:
    canvas = make_canvas(vocabulary, TEMPLATE, (0, 1, 2, 3))
    drawn = [id for seed in range(200) for id in canvas.seeded(seed)[:4]]
    assert min(drawn) < vocabulary.size * 0.02
    assert vocabulary.size * 0.98 < max(drawn) < vocabulary.size


@pytest.mark.parametrize("joint", [False, True])
def test_every_read_of_a_decision_obeys_the_rules(vocabulary: Vocabulary, joint: bool) -> None:
    questions = [noul("a"), choice("b", many(255)), score("c", many(10)), noul("été\n")]
    for read in first_reads(vocabulary, *questions, joint=joint, samples=3):
        check_vllm_rules(read, vocabulary)


def test_a_read_says_its_rules_on_the_wire(vocabulary: Vocabulary) -> None:
    (read,) = first_reads(vocabulary, noul("a"), steps=3, seed=5)
    body = orjson.loads(read_body(read, Call("m", 0, 1), vocabulary.pad))
    assert body["vllm_xargs"] == {
        "diffusion_seed_canvas": read.canvas.seeded(5),
        "diffusion_canvas_length": 16,
        "diffusion_pinned": read.canvas.pinned,
        "diffusion_max_steps": 3,
        "diffusion_read_only": True,
    }
    assert body["prompt"] == [*read.head, *read.tail]
    assert body["logprob_token_ids"] == list(read.ids)


def test_a_narrow_canvas_is_padded_and_pinned_to_the_width_that_an_engine_needs(
    vocabulary: Vocabulary,
) -> None:
    (read,) = first_reads(vocabulary, noul("a"))
    fields = orjson.loads(read_body(read, Call("m", 64, 1), vocabulary.pad))["vllm_xargs"]
    assert fields["diffusion_canvas_length"] == len(fields["diffusion_seed_canvas"]) == 64
    assert fields["diffusion_seed_canvas"][16:] == [vocabulary.pad] * 48
    assert fields["diffusion_pinned"] == [place for place in range(64) if place not in read.canvas.free]


def test_an_isolated_answer_takes_the_narrowest_canvas_whatever_its_id(vocabulary: Vocabulary) -> None:
    (read,) = first_reads(vocabulary, noul("a very long id " * 50))
    assert read.canvas.width == 16


def test_an_id_that_fills_the_canvas_of_a_joint_stage_is_refused_with_the_room_there_is(
    vocabulary: Vocabulary,
) -> None:
    id = "zebra xylophone " * 20
    with pytest.raises(Invalid, match="the canvas of 64 holds 62") as refused:
        make_plan(decide(noul("a"), noul(id), joint=True), vocabulary)
    assert refused.value.loc == ("questions", id)
