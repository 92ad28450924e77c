"""The plan: a decision in the words of one vocabulary, cut into stages, steps and chunks.

A chunk is what one canvas asks: one question when isolated, as many as fit when joint. The chunks
of a stage are read together, in one step; `sequential` gives each joint chunk a step of its own, so
that it sees the answers of the one before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from planner.canvas import AROUND
from planner.decision import Decision, Options, Question
from planner.errors import Invalid
from planner.formats import (
    ISOLATED,
    Format,
    Row,
    Template,
    isolated_template,
    joint_format,
    labels_of,
    make_template,
)
from planner.once import once
from planner.prompts import Told, isolated_head
from planner.reads import Ids, Written
from planner.spans.blanks import blank_of
from planner.spans.windows import Window, make_windows
from planner.stages import make_stages
from planner.vocabulary import Vocabulary, encode_long


@dataclass(frozen=True, eq=False)
class Plan:
    """A decision that was checked whole.

    `asked` holds the asked questions by stage.
    """

    decision: Decision
    vocabulary: Vocabulary
    asked: tuple[tuple[Question, ...], ...]

    @once
    def stages(self) -> tuple[tuple[Question, ...], ...]:
        """The label questions of each stage, which are read together; a stage may have none."""
        return tuple(tuple(question for question in stage if question.is_label) for stage in self.asked)

    @once
    def beside(self) -> tuple[Question, ...]:
        """The span and object questions, those that others need first. Each is answered by itself."""
        return tuple(question for stage in self.asked for question in stage if not question.is_label)

    @once
    def spans(self) -> tuple[Question, ...]:
        """The span questions of `beside`."""
        return tuple(question for question in self.beside if question.is_span)

    @once
    def objects(self) -> tuple[Question, ...]:
        """The object questions of `beside`."""
        return tuple(question for question in self.beside if not question.is_span)

    @once
    def stage_of(self) -> dict[str, int]:
        """The number of each asked question's stage."""
        return {question.id: number for number, stage in enumerate(self.asked) for question in stage}

    @once
    def isolated_head(self) -> Ids:
        """Prompt ids that every isolated read of this decision begins with. Raises TooLong."""
        return (*self.opening, *encode_long(self.vocabulary, self.isolated_text))

    @property
    def isolated_text(self) -> str:
        """The text that every isolated prompt of this decision begins with."""
        return isolated_head(self.decision.text, self.decision.options.instructions)

    @property
    def opening(self) -> Ids:
        """The markup ahead of a prompt's text."""
        return self.vocabulary.think_open if self.decision.options.think else self.vocabulary.chat_open

    def closing(self, thought: Written | None) -> Ids:
        """The markup after a prompt's text, with the thought that the answers go on from."""
        vocabulary = self.vocabulary
        return vocabulary.chat_close if thought is None else (*vocabulary.think_turn, *self._block(thought))

    def canvas_head(self, thought: Written | None) -> Ids:
        """What stands in the canvas ahead of the answer.

        That is the thought block where the engine's server makes the prompt, as it does with images.
        """
        if not self.decision.images:
            return ()
        return self.vocabulary.thought_empty if thought is None else self._block(thought)

    def _block(self, thought: Written) -> Ids:
        vocabulary = self.vocabulary
        text = vocabulary.tokenizer.encode(thought.text)
        if self.decision.images:
            # Encoded anew, a text may take more tokens than it was written in; the canvas has room for those.
            text = text[: self.thought_tokens]
        return (*vocabulary.thought_open, *text, *vocabulary.thought_close)

    @once
    def thought_tokens(self) -> int:
        """The most tokens of the thought: half a canvas, where it has to stand in one."""
        think = self.decision.options.think
        return min(think, self.vocabulary.canvas // 2) if self.decision.images else think

    @once
    def room(self) -> int:
        """The tokens of a canvas that a template, its turn close and a padding row may take."""
        if not self.decision.images:
            return self.vocabulary.canvas
        vocabulary = self.vocabulary
        markup = len(vocabulary.thought_open) + len(vocabulary.thought_close)
        block = markup + self.thought_tokens if self.thought_tokens else len(vocabulary.thought_empty)
        return vocabulary.canvas - block

    @once
    def windows(self) -> tuple[Window, ...]:
        """The windows of the source text, the same for every span question. Raises TooLong for a text that no
        read can show, before it is cut.
        """
        self.vocabulary.check_length(len(self.isolated_head))
        return make_windows(self.decision.source, self.vocabulary)

    @once
    def one_line_ids(self) -> bool:
        """Whether every id can stand on a line: a joint prompt and its prefill may show any of them."""
        return all(id.isprintable() for id in self.decision.by_id)


def told_to(plan: Plan, questions: Sequence[Question], words: Mapping[str, str]) -> tuple[Told, ...]:
    """What prompts restate to some questions: the answers that they need, each once, of those in `words`."""
    needs = dict.fromkeys(id for question in questions for id in question.needs if id in words)
    return tuple((plan.decision.by_id[id], words[id]) for id in needs)


@dataclass(frozen=True, slots=True)
class Chunk:
    """The questions of one canvas, and those its prompt lists. Isolated when it is not `joint`."""

    questions: tuple[Question, ...]
    listed: tuple[Question, ...]
    joint: bool


def make_plan(decision: Decision, vocabulary: Vocabulary) -> Plan:
    """The plan of a decision. Raises Invalid with the path of whatever is wrong.

    Every chunk that could be asked is laid out once, so that no later stage turns out not to fit.
    """
    plan = Plan(decision, vocabulary, make_stages(decision))
    _check_thought_and_images(plan)
    if plan.spans and not (decision.state and decision.source.strip()):
        raise Invalid(("state",), "span questions need a state with text in it", given=decision.state)
    for question in plan.spans:
        blank_of(question, vocabulary)
    for stage in plan.stages:
        for step in steps_of(plan, stage):
            for chunk in step:
                template_of(plan, chunk, first_index=0)
        if decision.options.joint and any(question.ask_if for question in stage):
            # A skip may turn an indexed canvas into lines, which take the ids: each must fit by itself.
            for question in stage:
                if not question.alone:
                    _pieces(plan, (question,))
    return plan


def _check_thought_and_images(plan: Plan) -> None:
    """Raise Invalid for a thought or images that this model, or this kind of question, cannot have."""
    decision = plan.decision
    if decision.options.think and plan.vocabulary.family.thinking is None:
        family = plan.vocabulary.family.name
        raise Invalid(
            ("think",), f"models of the {family} family have no way to think ahead", kind="not_served"
        )
    if decision.images and plan.spans:
        raise Invalid(
            ("questions", plan.spans[0].id),
            f"a {plan.spans[0].type} question finds text, and this state shows images",
            kind="not_served",
        )


def steps_of(plan: Plan, asked: Sequence[Question]) -> list[list[Chunk]]:
    """The chunks of a stage, by the step in which they are read. `asked` leaves out the skipped."""
    options = plan.decision.options
    if not options.joint:
        return [[_isolated(question) for question in asked]]
    together = tuple(question for question in asked if not question.alone)
    alone = [_isolated(question) for question in asked if question.alone]
    joint = [
        Chunk(piece, listed=_listed(options, together, piece), joint=True)
        for piece in _pieces(plan, together)
    ]
    if options.sequential and joint:
        return [[joint[0], *alone], *([chunk] for chunk in joint[1:])]
    return [[*joint, *alone]]


def _listed(
    options: Options, together: tuple[Question, ...], piece: tuple[Question, ...]
) -> tuple[Question, ...]:
    """What the prompt of a piece lists; a sequential one lists the pieces before it as answered already."""
    if options.chunk_prompt == "own":
        return piece
    return together[together.index(piece[0]) :] if options.sequential else together


def template_of(plan: Plan, chunk: Chunk, first_index: int) -> Template:
    """The answer template of a chunk; its listed questions count from `first_index`."""
    if not chunk.joint:
        return isolated_template(chunk.questions[0], plan.vocabulary)
    format = format_of(plan, chunk)
    places = {question.id: first_index + place for place, question in enumerate(chunk.listed)}
    rows = tuple(
        Row(
            index=places[question.id],
            id=question.id,
            labels=labels_of(question, plan.vocabulary, format),
        )
        for question in chunk.questions
    )
    template = make_template(plan.vocabulary, format, rows)
    if len(template.ids) + AROUND > plan.room:
        raise _does_not_fit(chunk.questions[0], len(template.ids), plan)
    return template


def format_of(plan: Plan, chunk: Chunk) -> Format:
    """The answer format of a chunk."""
    return joint_format(len(chunk.questions), plan.one_line_ids) if chunk.joint else ISOLATED


def _isolated(question: Question) -> Chunk:
    return Chunk((question,), (question,), joint=False)


def _pieces(plan: Plan, questions: tuple[Question, ...]) -> list[tuple[Question, ...]]:
    """Joint questions cut evenly into the fewest pieces that each fit a canvas and `chunk_rows`."""
    if not questions:
        return []
    most = plan.decision.options.chunk_rows or len(questions)
    for count in range(-(-len(questions) // most), len(questions) + 1):
        size, longer = divmod(len(questions), count)
        cuts = [place * size + min(place, longer) for place in range(count + 1)]
        pieces = [questions[start:end] for start, end in pairwise(cuts)]
        lengths = [_joint_length(plan, piece, len(questions)) for piece in pieces]
        if all(length + AROUND <= plan.room for length in lengths):
            return pieces
    worst = max(range(len(lengths)), key=lengths.__getitem__)
    raise _does_not_fit(questions[worst], lengths[worst], plan)


def _joint_length(plan: Plan, piece: tuple[Question, ...], total: int) -> int:
    """Tokens of a joint template, with the longest index that any of its rows could have."""
    format = joint_format(len(piece), plan.one_line_ids)
    highest = len(plan.decision.questions) + total
    rows = [(highest, question.id, labels_of(question, plan.vocabulary, format)[0]) for question in piece]
    return len(plan.vocabulary.tokenizer.encode(format.text(rows, plan.vocabulary.family.label_gap)))


def _does_not_fit(question: Question, length: int, plan: Plan) -> Invalid:
    return Invalid(
        ("questions", question.id),
        f"the answer takes {length} tokens with its id; the canvas of {plan.vocabulary.canvas} holds "
        f"{plan.room - AROUND}: shorten the id or ask it isolated",
        given=question.id,
    )
