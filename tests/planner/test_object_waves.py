"""Object questions as waves of a plan, and questions of every type that need each other."""

from typing import Any

import orjson
import pytest

from planner.plan import Plan, make_plan
from planner.reads import Failure, Found, Generation, Item, Read, Result, Wave
from planner.vocabulary import Vocabulary
from planner.waves import first_wave, next_wave
from tests.planner.span_support import found, span
from tests.planner.support import decide, first_label, noul, object_, play, prompt_of, wrote

STATE = "Dana Smith of Acme Inc. ordered two red chairs."
SCHEMA = {
    "type": "object",
    "properties": {"topic": {"type": "string", "minLength": 3}},
    "required": ["topic"],
}


def planned(vocabulary: Vocabulary, *questions: Any, **options: Any) -> Plan:
    return make_plan(decide(*questions, **{"state": STATE, **options}), vocabulary)


def the_text(wave: Wave) -> str:
    """The prompt of a wave's only generation."""
    (asked,) = wave.generations
    assert asked.message is not None
    return asked.message.text


def engine(read: Read) -> Result:
    """Finds Dana in every text, and takes the first label of every label read."""
    return found(Item(0, 4, 0.9, 1.0)) if read.kind == "span" else first_label(read)


def test_an_object_is_one_generation_under_its_grammar(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, object_("o", SCHEMA, "What is it about?", max_tokens=40))
    played = play(plan, writer=lambda _: wrote('{"topic": "chairs"}'))
    ((asked,),) = [wave.generations for wave in played.waves]
    assert (asked.id, asked.kind, asked.most_tokens, asked.stop) == ("0/o0/0/0/0", "object", 40, "")
    assert orjson.loads(asked.grammar) == {
        "type": "object",
        "properties": {"topic": {"type": "string"}},
        "required": ["topic"],
        "additionalProperties": False,
    }
    reading = played.answers.objects["o"]
    assert (reading.value, reading.valid, reading.attempts, reading.finish) == (
        {"topic": "chairs"},
        True,
        1,
        "stop",
    )
    assert played.answers.output_tokens == 7


def test_its_prompt_holds_the_state_the_instructions_and_the_whole_schema(vocabulary: Vocabulary) -> None:
    text = the_text(first_wave(planned(vocabulary, object_("secret id", SCHEMA, "What is it about?"))))
    assert text.startswith(STATE)
    assert "What is it about?" in text
    assert '"minLength": 3' in text
    assert "secret id" not in text


def test_a_value_that_is_not_valid_is_asked_for_once_more_with_what_was_wrong(vocabulary: Vocabulary) -> None:
    answers = iter(['{"topic": "a"}', '{"topic": "chairs"}'])
    played = play(planned(vocabulary, object_("o", SCHEMA)), writer=lambda _: wrote(next(answers)))
    first, second = played.waves
    assert [asked.id for asked in second.generations] == ["0/o0/0/0/1"]
    assert '{"topic": "a"}' not in the_text(first)
    assert '{"topic": "a"}' in the_text(second)
    assert "/topic" in the_text(second)
    reading = played.answers.objects["o"]
    assert (reading.value, reading.attempts) == ({"topic": "chairs"}, 2)
    assert reading.tokens == 14


@pytest.mark.parametrize(
    ("text", "finish"),
    [('{"topic": "a"}', "stop"), ("I cannot say.", "stop"), ('{"topic": "chairs"}', "length"), ("", "stop")],
)
def test_a_value_that_is_never_valid_is_told_as_such_and_not_made_up(
    vocabulary: Vocabulary, text: str, finish: str
) -> None:
    played = play(planned(vocabulary, object_("o", SCHEMA)), writer=lambda _: wrote(text, finish))
    reading = played.answers.objects["o"]
    assert (reading.value, reading.valid, reading.attempts, reading.finish) == (None, False, 2, finish)
    assert reading.fault is not None
    assert len(played.waves) == 2


def test_a_generation_that_failed_fails_the_decision(vocabulary: Vocabulary) -> None:
    down = Failure("no_engine", "none writes")
    assert play(planned(vocabulary, object_("o")), writer=lambda _: down).end == down


def test_questions_of_every_type_may_need_each_other(vocabulary: Vocabulary) -> None:
    questions = (
        noul("angry", "Angry?"),
        span("name", instructions="Who?", depends_on=("angry",)),
        object_("about", SCHEMA, "What about?", depends_on=("name",)),
        noul("sure", "Sure?", depends_on=("about", "name")),
    )
    played = play(planned(vocabulary, *questions), engine, lambda _: wrote('{"topic": "chairs"}'))
    kinds = [[read.kind for read in wave.all] for wave in played.waves]
    assert kinds == [["label"], ["span"], ["object"], ["label"]]
    who, sure = played.waves[1].reads[0], played.waves[3].reads[0]
    assert "- Angry?: yes" in prompt_of(vocabulary, who)
    assert "- Who?: Dana" in the_text(played.waves[2])
    assert '- What about?: {"topic": "chairs"}' in prompt_of(vocabulary, sure)
    assert "- Who?: Dana" in prompt_of(vocabulary, sure)
    assert [(read.id, read.stage, read.wave) for read in played.answers.reads] == [
        ("0/0/0/0/0", 0, 0),
        ("1/s0/0/0/0", 1, 1),
        ("2/o0/0/0/0", 2, 2),
        ("3/0/0/0/0", 3, 3),
    ]
    assert played.answers.stages == (("angry",), (), (), ("sure",))


@pytest.mark.parametrize(("there", "asked"), [(True, True), (False, False)])
def test_a_question_may_be_asked_only_if_a_span_was_found(
    vocabulary: Vocabulary, there: bool, asked: bool
) -> None:
    def finds(read: Read) -> Result:
        if read.kind == "label":
            return first_label(read)
        return found(*([Item(0, 4, 0.9, 1.0)] if there else []), confidence=0.9)

    plan = planned(vocabulary, span("name"), noul("real", ask_if={"name": ("true",)}))
    answers = play(plan, finds).answers
    assert ("real" in answers.readings) == asked
    assert ("real" in answers.skipped) == (not asked)


def test_a_skipped_span_or_object_is_not_read_and_what_hangs_on_it_is_skipped_too(
    vocabulary: Vocabulary,
) -> None:
    no = {"angry": ("no",)}
    questions = (
        noul("angry"),
        span("name", ask_if=no),
        object_("about", ask_if=no),
        noul("real", ask_if={"name": ("yes",)}),
    )
    played = play(planned(vocabulary, *questions), engine)
    assert list(played.answers.skipped) == ["name", "about", "real"]
    assert len(played.reads) == 1


def test_what_needs_a_skipped_question_is_asked_once_that_is_known(vocabulary: Vocabulary) -> None:
    questions = (
        noul("angry"),
        object_("about", ask_if={"angry": ("no",)}),
        span("name", depends_on=("about",)),
        noul("calm", ask_if={"angry": ("no",)}),
        noul("real", depends_on=("calm",)),
    )
    played = play(planned(vocabulary, *questions), engine)
    assert [[read.kind for read in wave.all] for wave in played.waves] == [["label"], ["label", "span"]]
    assert {read.questions[0]: read.wave for read in played.answers.reads} == {
        "angry": 0,
        "real": 1,
        "name": 1,
    }


def test_a_stage_waits_for_the_spans_that_it_needs_and_for_no_others(vocabulary: Vocabulary) -> None:
    questions = (
        noul("a"),
        span("needed"),
        span("other"),
        noul("b", depends_on=("a",)),
        noul("c", depends_on=("b", "needed")),
    )

    def unsure(read: Read) -> Result:
        """The first span is unsure of itself until its third attempt, the other never sure."""
        if read.kind == "label":
            return first_label(read)
        seed, number = read.seed, int(read.id.split("/")[1][1:])
        return found(Item(0, 4, 0.9 if number == 0 and seed == 2 else 0.1, 1.0))

    played = play(planned(vocabulary, *questions), unsure)
    labels = [[read.id for read in wave.reads if read.kind == "label"] for wave in played.waves]
    assert labels == [["0/0/0/0/0"], ["1/0/0/0/0"], [], ["2/0/0/0/0"]]
    assert {read.id: read.wave for read in played.answers.reads} == {
        read.id: number for number, wave in enumerate(played.waves) for read in wave.all
    }


def test_a_joint_stage_restates_what_it_needs_beside_the_labels(vocabulary: Vocabulary) -> None:
    questions = (noul("a", "Angry?"), span("name", instructions="Who?"), noul("b", depends_on=("a", "name")))
    played = play(planned(vocabulary, *questions, joint=True), engine)
    last = prompt_of(vocabulary, played.waves[-1].reads[0])
    assert "- Who?: Dana" in last
    assert "- Angry?" not in last
    assert "a: yes" in last


def test_a_wave_with_a_grammar_survives_the_store(vocabulary: Vocabulary) -> None:
    wave = first_wave(planned(vocabulary, object_("o", SCHEMA, "ü?"), noul("a")))
    again = Wave.from_bytes(wave.to_bytes())
    assert again == wave
    assert all(isinstance(read, Generation | Read) for read in again.all)


def test_results_of_another_order_give_the_same_wave(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, noul("a"), span("s"), object_("o", SCHEMA, depends_on=("a", "s")))
    first = first_wave(plan)
    results: dict[str, Result] = {read.id: engine(read) for read in first.reads}
    assert isinstance(results["0/s0/0/0/0"], Found)
    assert next_wave(plan, results) == next_wave(plan, dict(reversed(results.items())))
