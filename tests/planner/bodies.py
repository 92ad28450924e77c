"""Random System One bodies: every question type and extension, always valid."""

from typing import Any

from hypothesis import strategies as st

from tests.planner.support import many

Body = dict[str, Any]

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
ID = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
STRUCTURED = st.lists(JSON, max_size=3) | st.dictionaries(TEXT, JSON, max_size=3)
ANY_TEXT = TEXT | STRUCTURED
PROSE = "Dana Smith of Acme Inc. ordered two red chairs, and Joe Doe of Bolt Ltd. one blue table."

NOUL = st.fixed_dictionaries(
    {"type": st.just("noul")},
    optional={
        "criteria": st.none() | st.fixed_dictionaries({}, optional={"true": ANY_TEXT, "false": ANY_TEXT})
    },
)
CHOICE = st.fixed_dictionaries(
    {
        "type": st.just("choice"),
        "criteria": st.dictionaries(TEXT, st.none() | ANY_TEXT, min_size=1, max_size=5)
        | st.sampled_from([27, 130]).map(lambda count: dict.fromkeys(many(count))),
    }
)
SCORE = st.fixed_dictionaries(
    {"type": st.just("score"), "criteria": st.lists(ANY_TEXT, min_size=1, max_size=10)}
)
SPAN = st.fixed_dictionaries(
    {"type": st.just("span")},
    optional={"criteria": st.none() | st.fixed_dictionaries({}, optional={"max_tokens": st.integers(1, 12)})},
)
SPANS = st.fixed_dictionaries(
    {"type": st.just("spans")},
    optional={
        "criteria": st.none()
        | st.fixed_dictionaries(
            {}, optional={"max_tokens": st.integers(1, 30), "max_items": st.integers(1, 64)}
        )
    },
)
SCHEMAS: list[Any] = [
    True,
    {},
    {"type": "string", "minLength": 2},
    {"type": "integer", "minimum": 3},
    {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True, "minItems": 1},
    {"type": "object", "properties": {"topic": {"type": "string", "minLength": 2}}, "required": ["topic"]},
]
OBJECT = st.fixed_dictionaries(
    {"type": st.just("object"), "criteria": st.sampled_from(SCHEMAS)},
    optional={"max_tokens": st.integers(1, 4096)},
)
LABEL = NOUL | CHOICE | SCORE
ANY = LABEL | SPAN | SPANS | OBJECT

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "instructions": ANY_TEXT,
        "samples": st.sampled_from([1, 2, "auto"]),
        "auto_threshold": st.floats(0, 2),
        "auto_max": st.integers(1, 3),
        "steps": st.integers(1, 8),
        "seed": st.integers(0, 2**53 - 1),
        "joint": st.booleans(),
        "chunk_rows": st.integers(1, 3),
        "chunk_prompt": st.sampled_from(["own", "shared"]),
        "sequential": st.booleans(),
        "diagnostics": st.booleans(),
        "think": st.sampled_from([0, 0, 20]),
    },
)


def answers_to(question: Body) -> st.SearchStrategy[Any]:
    """What an `ask_if` may name of a question that is no object."""
    if question["type"] in ("noul", "span", "spans"):
        return st.sampled_from([True, False, "yes", "no"])
    if question["type"] == "choice":
        return st.sampled_from(list(question["criteria"]))
    return st.integers(0, len(question["criteria"]) - 1)


def is_named(question: Body) -> bool:
    """Whether an `ask_if` may name a question."""
    return bool(question["type"] != "object")


@st.composite
def states(draw: st.DrawFn, questions: dict[str, Body]) -> Any:
    """A state; one with text in it where a question asks for a piece of it."""
    state = draw(ANY_TEXT | st.sampled_from([PROSE, {"text": PROSE, "more": 1}]))
    text = state.get("text", "x") if isinstance(state, dict) else state
    if not any(question["type"] in ("span", "spans") for question in questions.values()):
        return state
    return state if state and (not isinstance(text, str) or text.strip()) else PROSE


@st.composite
def question_maps(draw: st.DrawFn, most: int = 5, types: st.SearchStrategy[Body] = ANY) -> dict[str, Body]:
    """Questions that may need any that came before them, in any order."""
    questions: dict[str, Body] = {}
    for id in draw(st.lists(ID, min_size=1, max_size=most, unique=True)):
        question: Body = {**draw(types), "instructions": draw(st.none() | ANY_TEXT)}
        if questions:
            known = st.sampled_from(list(questions))
            question["depends_on"] = draw(st.lists(known, max_size=2))
            conditions = [id for id in draw(st.lists(known, max_size=1)) if is_named(questions[id])]
            question["ask_if"] = {
                id: draw(st.lists(answers_to(questions[id]), min_size=1, max_size=3)) for id in conditions
            }
        if draw(st.booleans()):
            question["alone"] = draw(st.booleans())
        questions[id] = question
    return {id: questions[id] for id in draw(st.permutations(list(questions)))}


@st.composite
def bodies(draw: st.DrawFn) -> Body:
    """A body with any questions and any options."""
    questions = draw(question_maps())
    body = {"model": "m", "state": draw(states(questions)), "questions": questions, **draw(OPTIONS)}
    if draw(st.booleans()):
        body["ask"] = draw(st.lists(st.sampled_from(list(questions)), min_size=1, max_size=3))
    return body
