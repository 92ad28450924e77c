from __future__ import annotations

import pytest

from planner.canvas import AROUND
from planner.decision import mark_of
from planner.dialects.image_fields import Shown
from planner.dialects.systemone import parse
from planner.errors import Invalid
from planner.plan import Plan, make_plan, steps_of, template_of
from planner.reads import Failure, Generation, Message, Served, Wave, Written
from planner.thoughts import THOUGHT_ID
from planner.vocabulary import Vocabulary
from planner.waves import first_wave, next_wave
from tests.planner.support import hashed

NOUL = {"type": "noul", "instructions": "Is it red?"}
RED, BLUE = "a" * 64, "b" * 64


def body(**fields: object) -> dict[str, object]:
    return {"model": "m", "state": "The door.", "questions": {"a": NOUL}, **fields}


def text_of(vocabulary: Vocabulary, ids: tuple[int, ...]) -> str:
    return vocabulary.tokenizer.decode(list(ids))


def test_a_thought_goes_ahead_of_all_reads_and_stands_in_each_prompt(vocabulary: Vocabulary) -> None:
    plan = make_plan(parse(body(think=40, samples=2)), vocabulary)
    wave = first_wave(plan)
    assert wave.reads == ()
    (asked,) = wave.generations
    assert (asked.id, asked.most_tokens) == (THOUGHT_ID, 40)
    assert "Is it red?" in text_of(vocabulary, (*asked.head, *asked.tail))
    thought = Written("Doors vary.", 3, "stop", Served("e", prompt_tokens=9))
    second = next_wave(plan, {THOUGHT_ID: thought})
    assert isinstance(second, Wave)
    assert len(second.reads) == 2
    assert all("Doors vary." in text_of(vocabulary, read.tail) for read in second.reads)
    results = {THOUGHT_ID: thought} | {read.id: hashed(read) for read in second.reads}
    answers = next_wave(plan, results)
    assert not isinstance(answers, Wave | Failure)
    assert answers.thought == thought
    assert answers.output_tokens == 3 + 2
    assert [read.wave for read in answers.reads] == [0, 1, 1]


def test_a_thought_that_failed_fails_the_decision(vocabulary: Vocabulary) -> None:
    plan = make_plan(parse(body(think=40)), vocabulary)
    assert next_wave(plan, {THOUGHT_ID: Failure("no_engine", "gone")}) == Failure("no_engine", "gone")


def test_a_wave_with_a_thought_survives_the_store(vocabulary: Vocabulary) -> None:
    for shown in (Shown(), Shown(after=(RED,))):
        decision = parse(
            body(think=40, images=["data:image/png;base64,AA=="]) if shown.after else body(think=40), shown
        )
        wave = first_wave(make_plan(decision, vocabulary))
        assert Wave.from_bytes(wave.to_bytes()) == wave


def test_images_stand_where_their_placeholders_stood(vocabulary: Vocabulary) -> None:
    shown = Shown({"<front>": RED, "<back>": BLUE})
    asked = body(
        state={"messages": ["<front> then <back>"]},
        questions={"a": {**NOUL, "instructions": "Is <back> red?"}},
        assets={"<front>": {"data_base64": "AA=="}, "<back>": {"data_base64": "AB=="}},
    )
    (read,) = first_wave(make_plan(parse(asked, shown), vocabulary)).reads
    assert read.head == read.tail == ()
    assert read.message is not None
    assert read.message.images == (RED, BLUE)
    assert [part for part in read.message.parts if isinstance(part, int)] == [0, 1, 1]
    texts = [part for part in read.message.parts if isinstance(part, str)]
    assert texts[0].endswith('"')
    assert texts[1] == " then "
    assert texts[-1].startswith(" red?")


def test_images_of_the_list_follow_the_state(vocabulary: Vocabulary) -> None:
    decision = parse(body(images=["data:image/png;base64,AA=="]), Shown(after=(RED,)))
    assert decision.text == f"The door.\n\n{mark_of(0)}"
    (read,) = first_wave(make_plan(decision, vocabulary)).reads
    assert isinstance(read.message, Message)
    assert read.message.parts[:2] == ("The door.\n\n", 0)


def test_the_thought_block_stands_in_the_canvas_of_an_image_read(vocabulary: Vocabulary) -> None:
    plain = first_wave(make_plan(parse(body()), vocabulary)).reads[0]
    shown = parse(body(images=["data:image/png;base64,AA=="]), Shown(after=(RED,)))
    read = first_wave(make_plan(shown, vocabulary)).reads[0]
    block = vocabulary.thought_empty
    assert read.canvas.ids[: len(block)] == block
    assert read.canvas.free == tuple(place + len(block) for place in plain.canvas.free)


def test_a_thought_about_images_is_capped_by_the_canvas_and_seeded_in_it(vocabulary: Vocabulary) -> None:
    decision = parse(body(think=4000, images=["data:image/png;base64,AA=="]), Shown(after=(RED,)))
    plan = make_plan(decision, vocabulary)
    (asked,) = first_wave(plan).generations
    assert asked.message is not None
    assert asked.most_tokens == vocabulary.canvas // 2
    wave = next_wave(plan, {THOUGHT_ID: Written("Red.", 2, "stop")})
    assert isinstance(wave, Wave)
    (read,) = wave.reads
    assert "Red." in text_of(vocabulary, read.canvas.ids)
    assert read.canvas.width <= vocabulary.canvas


def test_later_stages_about_images_restate_the_earlier_answers(vocabulary: Vocabulary) -> None:
    questions = {"a": NOUL, "b": {"type": "noul", "instructions": "Is it old?", "depends_on": ["a"]}}
    for joint in (False, True):
        decision = parse(
            body(questions=questions, joint=joint, images=["data:image/png;base64,AA=="]), Shown(after=(RED,))
        )
        plan = make_plan(decision, vocabulary)
        first = first_wave(plan)
        second = next_wave(plan, {read.id: hashed(read) for read in first.reads})
        assert isinstance(second, Wave)
        (read,) = second.reads
        assert read.message is not None
        told = "".join(part for part in read.message.parts if isinstance(part, str))
        assert "Already answered:\n- Is it red?: " in told


def test_a_span_question_about_images_is_refused(vocabulary: Vocabulary) -> None:
    decision = parse(
        body(questions={"s": {"type": "span"}}, images=["data:image/png;base64,AA=="]), Shown(after=(RED,))
    )
    with pytest.raises(Invalid, match="shows images"):
        make_plan(decision, vocabulary)


def test_a_text_that_holds_the_mark_of_images_is_refused_beside_them() -> None:
    with pytest.raises(Invalid, match="U\\+E000"):
        parse(body(state="a \ue0000\ue000", images=["data:image/png;base64,AA=="]), Shown(after=(RED,)))


def test_generations_have_no_canvas_and_reads_do(vocabulary: Vocabulary) -> None:
    wave = first_wave(make_plan(parse(body(think=5)), vocabulary))
    assert all(isinstance(one, Generation) for one in wave.all)


def test_an_answer_may_take_all_the_room_that_a_thought_about_images_leaves(vocabulary: Vocabulary) -> None:
    shown, images = Shown(after=(RED,)), ["data:image/png;base64,AA=="]

    def plan(length: int) -> Plan:
        asked = body(think=32, joint=True, images=images, questions={" q" * length: NOUL})
        return make_plan(parse(asked, shown), vocabulary)

    def fits(length: int) -> bool:
        try:
            plan(length)
        except Invalid:
            return False
        return True

    fitting = [length for length in range(1, 64) if fits(length)]
    assert fitting == list(range(1, len(fitting) + 1))
    longest = plan(len(fitting))
    (chunk,) = steps_of(longest, longest.stages[0])[0]
    assert len(template_of(longest, chunk, 0).ids) + AROUND == longest.room
    # Encoded anew, this thought takes twice the tokens that it was written in.
    thought = Written("so " * 64, 32, "length")
    wave = next_wave(longest, {THOUGHT_ID: thought})
    assert isinstance(wave, Wave)
    (read,) = wave.reads
    assert read.canvas.width == vocabulary.canvas
    assert len(read.canvas.free) == 1
