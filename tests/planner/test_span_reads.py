"""The reads of span questions: what the model is shown, what it may write, and what is refused."""

from dataclasses import replace
from typing import Any

import pytest

from planner.decision import Question
from planner.errors import Invalid, TooLong
from planner.plan import Plan, make_plan
from planner.reads import Found, Item, Read, Rows
from planner.span_parts import decoded
from planner.spans.blanks import MOST_TOKENS
from planner.vocabulary import Vocabulary, make_vocabulary
from planner.waves import first_wave
from tests.planner.span_support import pieces, rows_of, span, spans, words
from tests.planner.support import FakeTokenizer, check_vllm_rules, choice, decide, noul, prompt_of

SHORT = "Dana Smith of Acme Inc. ordered two red chairs."


def planned(vocabulary: Vocabulary, *questions: Question, **options: Any) -> Plan:
    return make_plan(decide(*questions, **{"state": SHORT, **options}), vocabulary)


def reads(vocabulary: Vocabulary, *questions: Question, **options: Any) -> tuple[Read, ...]:
    return first_wave(planned(vocabulary, *questions, **options)).reads


def refused(vocabulary: Vocabulary, *questions: Question, **options: Any) -> Invalid:
    with pytest.raises(Invalid) as error:
        planned(vocabulary, *questions, **options)
    return error.value


def test_span_reads_obey_the_rules_of_vllm(vocabulary: Vocabulary) -> None:
    text = " ".join(words(vocabulary, 200))
    found = reads(vocabulary, span(), spans(), span("t", max_tokens=1), spans("m", max_tokens=60), state=text)
    assert len(found) > 8
    for read in found:
        check_vllm_rules(read, vocabulary)


def test_the_canvas_is_a_label_and_a_blank(vocabulary: Vocabulary) -> None:
    (read,) = reads(vocabulary, span())
    start = read.canvas.free[0]
    assert vocabulary.tokenizer.decode(list(read.canvas.ids[:start])) == "answer:"
    assert read.canvas.free == tuple(range(start, start + 24))
    assert read.canvas.ids[start + 24] == vocabulary.turn_close


@pytest.mark.parametrize(
    ("question", "size"),
    [
        (span(), 24),
        (spans(), 60),
        (span(max_tokens=1), 1),
        (span(max_tokens=60), 60),
        (spans(max_tokens=9), 9),
    ],
)
def test_a_blank_is_as_long_as_asked_for_or_as_the_canvas_has_room(
    vocabulary: Vocabulary, question: Question, size: int
) -> None:
    """The usual 64 of a list give way to a canvas of 64, which holds 60 beside what stands around."""
    (read, *_) = reads(vocabulary, question)
    assert len(read.canvas.free) == size


@pytest.mark.parametrize("question", [span(max_tokens=61), spans(max_tokens=MOST_TOKENS)])
def test_a_blank_that_does_not_fit_the_canvas_is_refused_with_the_room(
    vocabulary: Vocabulary, question: Question
) -> None:
    error = refused(vocabulary, question)
    assert error.loc == ("questions", question.id, question.type, "criteria", "max_tokens")
    assert f"a blank of {question.max_tokens} tokens does not fit the canvas of 64; 60 do" in error.message


@pytest.mark.parametrize(("asked", "taken"), [(1, 4), (4, 4), (8, 8)])
def test_a_span_read_takes_four_steps_or_more(vocabulary: Vocabulary, asked: int, taken: int) -> None:
    read, label = reads(vocabulary, span(), noul("a"), steps=asked)[::-1]
    assert (read.steps, label.steps) == (taken, asked)


def test_the_prompt_carries_the_whole_text_whatever_the_window(vocabulary: Vocabulary) -> None:
    text = " ".join(words(vocabulary, 200))
    found = reads(vocabulary, span(instructions="Which word?"), state=text)
    assert len(found) > 3
    assert {read.head for read in found} == {found[0].head}
    assert len({read.ids for read in found}) == len(found)
    assert text in prompt_of(vocabulary, found[0])
    assert "Which word?" in prompt_of(vocabulary, found[0])


def test_label_and_span_reads_share_the_prompt_up_to_the_end_of_the_state(vocabulary: Vocabulary) -> None:
    label, one, other = reads(vocabulary, noul("a"), span("b"), span("c"))
    assert label.head == one.head == other.head


def test_a_list_is_asked_for_line_by_line(vocabulary: Vocabulary) -> None:
    (one, *_), (many, *_) = reads(vocabulary, span()), reads(vocabulary, spans())
    assert "one answer per line" in prompt_of(vocabulary, many)
    assert "one answer per line" not in prompt_of(vocabulary, one)


def test_a_span_questions_id_never_reaches_the_model(vocabulary: Vocabulary) -> None:
    (one,), (other,) = reads(vocabulary, span("a")), reads(vocabulary, span("zebra"))
    assert one == other


def test_every_token_that_the_text_is_spelled_with_is_allowed(vocabulary: Vocabulary) -> None:
    text = '(Dana) paid "$99.50", 5%. See #A-1.'
    (read,) = reads(vocabulary, span(), state=text)
    spelled = (
        "(Dana)", " (Dana)", "Dana", " Dana", ")", '"$99.50",', "$99.50", " $99.50", "99", "5%", "%", "A-1",
        " A", "#A-1.", "none", " none", "\n",
    )  # fmt: skip
    for piece in spelled:
        assert set(vocabulary.tokenizer.encode(piece)) <= set(read.ids), piece
    assert {vocabulary.turn_close, vocabulary.tokenizer.eos_id()} <= set(read.ids)


def test_a_prompt_too_long_for_the_context_is_refused(vocabulary: Vocabulary) -> None:
    (read,) = reads(vocabulary, span())
    needed = len(read.head) + len(read.tail) + read.canvas.width
    assert reads(replace(vocabulary, context=needed), span()) == (read,)
    with pytest.raises(TooLong):
        reads(replace(vocabulary, context=needed - 1), span())


@pytest.mark.parametrize("question", [span(), spans("s")])
def test_whether_a_span_was_found_is_all_that_may_be_asked_of_it(
    vocabulary: Vocabulary, question: Question
) -> None:
    error = refused(vocabulary, question, noul("a", ask_if={"s": ("Dana",)}))
    assert error.loc == ("questions", "a", "ask_if", "s")
    assert "'yes', 'no'" in error.message


@pytest.mark.parametrize("state", ["", " \n\t\u00a0", {"text": ""}, {"text": " ", "more": 1}])
def test_a_state_without_text_is_refused(vocabulary: Vocabulary, state: Any) -> None:
    assert refused(vocabulary, span(), state=state).loc == ("state",)
    assert planned(vocabulary, noul("a"), state=state).spans == ()


def test_only_the_span_questions_asked_for_are_read(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, span("a"), span("b"), noul("c"), ask=("b",))
    assert [question.id for question in plan.spans] == ["b"]
    assert [read.id for read in first_wave(plan).reads] == ["0/s0/0/0/0"]


def test_joint_labels_leave_spans_in_reads_of_their_own(vocabulary: Vocabulary) -> None:
    found = reads(vocabulary, noul("a"), choice("b", ["x", "y"]), span(), joint=True)
    assert [read.kind for read in found] == ["label", "span"]


def decode(vocabulary: Vocabulary, question: Question, text: str, said: str) -> Found:
    """What a read comes to when the model writes a text with its own tokens, asked for or not."""
    plan = planned(vocabulary, question, state=text)
    (read, *_) = first_wave(plan).reads
    return decoded(plan, read, rows_of(read, vocabulary.tokenizer.encode(said), vocabulary))


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        ("Dana\r\nSmith of Acme", " Dana\r\nSmith", "Dana\r\nSmith"),
        ("Dana \n  Smith of Acme", " Dana\n Smith", "Dana \n  Smith"),
        ("Dana\tSmith of Acme", " Dana\tSmith", "Dana\tSmith"),
        ("Dana\n\nSmith of Acme", " Dana\n\nSmith", "Dana\n\nSmith"),
        ("它在台北市，不在北京市。", " 北京市", "北京市"),
        ("name=Dana;city=Berlin", " Berlin", "Berlin"),
        ("e-mail:dana@x.example", " dana@x.example", "dana@x.example"),
    ],
)
def test_a_model_that_writes_with_tokens_nobody_asked_for_is_understood(
    vocabulary: Vocabulary, text: str, said: str, expected: str
) -> None:
    found = decode(vocabulary, span(), text, said)
    assert pieces(text, found) == [expected]
    assert found.confidence > 0.9


def test_several_characters_in_one_token_are_understood() -> None:
    """As Gemma's vocabulary has them; a read asks for each character, and for the word up to its end."""
    vocabulary = make_vocabulary(FakeTokenizer(r" ?[^\W\d]+|\d|\s|."))
    text = "我住在北京市"
    assert pieces(text, decode(vocabulary, span(), text, "北京市")) == ["北京市"]
    assert pieces(text, decode(vocabulary, span(), text, " 北京市")) == ["北京市"]


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\n\n"])
def test_any_line_break_ends_an_item_of_a_list(vocabulary: Vocabulary, line_break: str) -> None:
    text = f"red{line_break}blue green"
    found = decode(vocabulary, spans(), text, f" red{line_break} blue{line_break} green")
    assert pieces(text, found) == ["red", "blue", "green"]


def test_a_pick_that_is_not_in_the_text_is_no_part_of_the_mass(vocabulary: Vocabulary) -> None:
    found = decode(vocabulary, span(), SHORT, " Zanzibar")
    assert all(item.coverage < 0.1 for item in found.items)


def test_a_decoded_read_keeps_what_is_known_of_the_engine(vocabulary: Vocabulary) -> None:
    plan = planned(vocabulary, span())
    (read,) = first_wave(plan).reads
    rows = rows_of(read, vocabulary.tokenizer.encode(" Dana Smith"), vocabulary)
    found = decoded(plan, read, rows)
    assert [(item.start, item.end) for item in found.items] == [(0, 10)]
    assert isinstance(rows, Rows)
    assert found.served == rows.served
    assert isinstance(found.items[0], Item)
