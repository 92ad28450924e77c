"""Stages: which questions can be asked together, and which are not asked after all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from planner.decision import NO, YES, Decision, Question
from planner.errors import Invalid, Location

_NOUL_WORDS: dict[str, tuple[str, ...]] = {"true": (YES,), "false": (NO,)}


def answer_names(question: Question) -> dict[str, tuple[str, ...]]:
    """Every spelling by which `ask_if` may mean answers of this question, to the answers' names.

    A noul's answers are yes and no (true and false too), and so are a span question's: whether anything was
    found. A choice's are its option names, a score's its level numbers (the level's text too, which several
    levels may share).
    """
    if question.is_span:
        return _NOUL_WORDS | {YES: (YES,), NO: (NO,)}
    names: dict[str, tuple[str, ...]] = {
        alternative.name: (alternative.name,) for alternative in question.alternatives
    }
    if question.type == "noul":
        return names | _NOUL_WORDS
    texts: dict[str, tuple[str, ...]] = {}
    for level in question.alternatives if question.type == "score" else ():
        if level.text is not None:
            texts[level.text] = (*texts.get(level.text, ()), level.name)
    return texts | names


def check_references(decision: Decision) -> None:
    """Raise Invalid when a dependency, an `ask_if` value or `ask` names what does not exist."""
    known = decision.by_id
    for question in decision.questions:
        loc = ("questions", question.id)
        for place, id in enumerate(question.depends_on):
            _check_needed((*loc, "depends_on", place), id, known)
        for id, answers in question.ask_if.items():
            _check_needed((*loc, "ask_if", id), id, known)
            if known[id].type == "object":
                raise Invalid((*loc, "ask_if", id), f"{id!r} is an object: no value of it is known by name")
            names = answer_names(known[id])
            for answer in answers:
                if answer not in names:
                    raise Invalid(
                        (*loc, "ask_if", id),
                        f"{answer!r} is no answer of {id!r}; its answers are {', '.join(map(repr, names))}",
                        given=answer,
                    )
    for place, id in enumerate(decision.options.ask or ()):
        if id not in known:
            raise Invalid(("ask", place), f"there is no question {id!r}", given=id)


def _check_needed(loc: Location, id: str, known: Mapping[str, Question]) -> None:
    if id not in known:
        raise Invalid(loc, f"there is no question {id!r}", given=id)


def make_stages(decision: Decision) -> tuple[tuple[Question, ...], ...]:
    """The asked questions by stage: a question comes one stage after the last of what it needs.

    With `ask`, only the named questions and all they depend on. Raises Invalid on a cycle.
    """
    check_references(decision)
    depth: dict[str, int] = {}
    for id in decision.by_id:
        _settle_depth(id, decision.by_id, depth)
    asked = _with_needs(decision.options.ask or decision.by_id, decision.by_id)
    stages: list[list[Question]] = [[] for _ in range(1 + max((depth[id] for id in asked), default=-1))]
    for question in decision.questions:
        if question.id in asked:
            stages[depth[question.id]].append(question)
    return tuple(tuple(stage) for stage in stages)


def _with_needs(ids: Iterable[str], known: Mapping[str, Question]) -> set[str]:
    """These questions and all they depend on."""
    found: set[str] = set()
    waiting = list(ids)
    while waiting:
        id = waiting.pop()
        if id not in found:
            found.add(id)
            waiting.extend(known[id].needs)
    return found


def _settle_depth(start: str, known: Mapping[str, Question], depth: dict[str, int]) -> None:
    """Depth-first without recursion: a chain of hundreds of questions must not meet Python's limit."""
    path: dict[str, None] = {}
    stack = [start]
    while stack:
        id = stack[-1]
        needs = known[id].needs
        waiting = [need for need in needs if need not in depth]
        if id in depth or not waiting:
            depth.setdefault(id, 1 + max((depth[need] for need in needs), default=-1))
            path.pop(id, None)
            stack.pop()
            continue
        path[id] = None
        if waiting[0] in path:
            ring = [*path, waiting[0]]
            ring = ring[ring.index(waiting[0]) :]
            raise Invalid(
                ("questions", id, "depends_on"),
                f"these questions wait for each other: {' -> '.join(ring)}",
                given=waiting[0],
            )
        stack.append(waiting[0])


def skip_reason(question: Question, answers: Mapping[str, str], known: Mapping[str, Question]) -> str | None:
    """Why a question is not asked, or None when it is. `answers` holds the settled answers by name."""
    for id, wanted in question.ask_if.items():
        answer = answers.get(id)
        if answer is None:
            return f"{id!r} was not asked"
        names = answer_names(known[id])
        if not any(answer in names[word] for word in wanted):
            return f"{id!r} is {answer!r}, not {' or '.join(map(repr, wanted))}"
    return None
