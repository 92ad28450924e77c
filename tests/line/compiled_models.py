"""Every row of the compiler's table as a model, with its value and its fields on the script backend."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple

from annotated_types import MaxLen
from pydantic import BaseModel, ConfigDict, Field

from client import Alone, Span

STATE = "Ada ordered a red chair and a blue table from Acme for 12.50 euros."

RULES: list[dict[str, Any]] = [
    {"phrase": "Is it urgent", "labels": {"yes": 0.9}},
    {"phrase": "Is it calm", "labels": {"yes": 0.2}},
    {"phrase": "Which team", "labels": {"sales": 0.7, "support": 0.2}},
    {"phrase": "Which colour", "labels": {"blue": 0.6, "red": 0.4}},
    {"phrase": "Which size", "labels": {"20": 0.7, "10": 0.3}},
    {"phrase": "Which odd one", "labels": {"null": 0.6, "x": 0.4}},
    # A score's labels count its levels from one: here 1 to 5, and -2, 0, 2.
    {"phrase": "How bad", "labels": {"2": 0.5, "3": 0.3, "5": 0.2}},
    {"phrase": "How warm", "labels": {"3": 0.8, "1": 0.2}},
    {"phrase": "A discount (is there", "labels": {"no": 0.8}},
    {"phrase": "A rebate (is there", "labels": {"yes": 0.8}},
    {"phrase": "A rebate", "labels": {"1": 0.9}},
    {"phrase": "An address (is there", "labels": {"yes": 0.6}},
    {"phrase": "street", "object": '"Main Street"'},
    {"phrase": "Which pet? (which kind", "labels": {"dog": 0.8, "cat": 0.2}},
    {"phrase": "Does it bark", "labels": {"yes": 0.7}},
    {"phrase": "paint", "labels": {"yes": 0.6}},
    {"phrase": "wood", "labels": {"yes": 0.7}},
    {"phrase": "iron", "labels": {"yes": 0.1}},
    {"phrase": "lead", "labels": {"yes": 0.2}},
    {"phrase": "tin", "labels": {"yes": 0.3}},
    {"phrase": "Who ordered", "span": "Ada"},
    {"phrase": "Who paid", "span": None},
    {"phrase": "Which things", "spans": ["red chair", "blue table"]},
    {"phrase": "Which towns", "spans": []},
    {"phrase": "What was bought (how many", "labels": {"2": 0.9}},
    {"phrase": "Item 1 of bought: colour", "labels": {"red": 0.9}},
    {"phrase": "Item 1 of bought: good", "labels": {"yes": 0.8}},
    {"phrase": "Item 2 of bought: colour", "labels": {"blue": 0.9}},
    {"phrase": "Item 2 of bought: good", "labels": {"yes": 0.1}},
    {"phrase": "Item 1 of pair", "labels": {"sales": 0.9}},
    {"phrase": "Item 2 of pair", "labels": {"yes": 0.9}},
    {"phrase": "Nothing bought (how many", "labels": {"0": 0.9}},
    {"phrase": "A title", "object": '"Two pieces"'},
    {"phrase": "The price", "object": "12.5"},
    {"phrase": "The figures", "object": {"a": 1, "b": 2}},
    {"phrase": "The outline: name", "object": '"a"'},
    {"phrase": "The outline: below", "object": [{"name": "b", "below": []}]},
    {"phrase": "The long list", "object": [{"name": "a"}, {"name": "b"}]},
    {"phrase": "The large number", "object": "4711"},
    {"phrase": "Anything", "object": {"free": [True, None]}},
    {"phrase": "Does it see", "state_contains": "Already answered", "labels": {"yes": 0.9}},
    {"phrase": "Does it see", "labels": {"yes": 0.1}},
]


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Nouls(BaseModel):
    urgent: bool = Field(description="Is it urgent?")
    calm: bool = Field(description="Is it calm?")


class Choices(BaseModel):
    team: Literal["sales", "support"] = Field(description="Which team?")
    colour: Colour = Field(description="Which colour?")
    size: Literal[10, 20, 30] = Field(description="Which size?")
    odd: Literal["x", None] = Field(description="Which odd one?")


class Scores(BaseModel):
    bad: int = Field(ge=1, le=5, description="How bad?")
    warm: int = Field(gt=-3, lt=3, multiple_of=2, description="How warm?")


class Address(BaseModel):
    street: str = Field(description="The street")


class Optionals(BaseModel):
    discount: Annotated[int, Field(ge=1, le=5)] | None = Field(description="A discount")
    rebate: Annotated[int, Field(ge=1, le=5)] | None = Field(description="A rebate")
    address: Address | None = Field(description="An address")


class Cat(BaseModel):
    kind: Literal["cat"]
    purrs: bool = Field(description="Does it purr?")


class Dog(BaseModel):
    kind: Literal["dog", "wolf"]
    barks: bool = Field(description="Does it bark?")


class Unions(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind", description="Which pet?")]


class PlainUnions(BaseModel):
    pet: Cat | Dog = Field(description="Which pet?")


class Lists(BaseModel):
    about: list[Literal["paint", "wood", "iron"]]
    never: set[Literal["lead", "tin"]]
    least: list[Literal["lead", "tin"]] = Field(min_length=1)


class Spans(BaseModel):
    who: Span = Field(description="Who ordered?")
    payer: Span | None = Field(description="Who paid?")
    things: list[Span] = Field(description="Which things?")
    towns: list[Span] = Field(description="Which towns?")


class Thing(BaseModel):
    colour: Colour
    good: bool


class Loops(BaseModel):
    bought: Annotated[list[Thing], MaxLen(3)] = Field(description="What was bought")
    nothing: Annotated[list[Thing], MaxLen(2)] = Field(description="Nothing bought")


class Tuples(BaseModel):
    pair: tuple[Literal["sales", "support"], bool] = Field(description="A pair")


class Nested(BaseModel):
    order: Nouls
    version: Literal["v1"]


class Outline(BaseModel):
    name: str
    below: list[Outline]


class Named(BaseModel):
    name: str


class Written(BaseModel):
    title: str = Field(description="A title")
    price: float = Field(description="The price")
    figures: dict[str, int] = Field(description="The figures")
    outline: Outline = Field(description="The outline")
    long: list[Named] = Field(description="The long list")
    large: int = Field(ge=0, le=10_000, description="The large number")
    anything: Any = Field(description="Anything")


class Ordered(BaseModel):
    first: bool = Field(description="Is it urgent?")
    later: bool = Field(description="Does it see?")
    alone: Annotated[bool, Alone] = Field(description="Does it see?")
    marked: bool = Field(description="Does it see?", json_schema_extra={"alone": True})


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    urgent: bool = Field(description="Is it urgent?", alias="is/urgent~now")


class Row(NamedTuple):
    """A model, the JSON of its value, and the kind of some of its fields' evidence."""

    model: type[BaseModel]
    value: Any
    kinds: dict[str, str]


def span(text: str) -> dict[str, Any]:
    """A piece of the state with its place."""
    start = STATE.index(text)
    return {"text": text, "start": start, "end": start + len(text)}


ROWS: dict[str, Row] = {
    "booleans": Row(Nouls, {"urgent": True, "calm": False}, {"/urgent": "read", "/calm": "read"}),
    "listed values": Row(
        Choices,
        {"team": "sales", "colour": "blue", "size": 20, "odd": None},
        {"/team": "read", "/colour": "read", "/size": "read", "/odd": "read"},
    ),
    "small numbers": Row(Scores, {"bad": 2, "warm": 2}, {"/bad": "read", "/warm": "read"}),
    "what may be missing": Row(
        Optionals,
        {"discount": None, "rebate": 1, "address": {"street": "Main Street"}},
        {"/discount": "read", "/rebate": "read", "/address": "read", "/address/street": "generated"},
    ),
    "a union": Row(
        Unions,
        {"pet": {"kind": "dog", "barks": True}},
        {"/pet/kind": "read", "/pet/barks": "read", "/pet/purrs": "skipped"},
    ),
    "a union without a discriminator": Row(
        PlainUnions, {"pet": {"kind": "dog", "barks": True}}, {"/pet/kind": "read", "/pet/barks": "read"}
    ),
    "lists of listed values": Row(
        Lists,
        {"about": ["paint", "wood"], "never": [], "least": ["tin"]},
        {"/about": "read", "/never": "read", "/least": "read"},
    ),
    "pieces of the text": Row(
        Spans,
        {
            "who": span("Ada"),
            "payer": None,
            "things": [span("red chair"), span("blue table")],
            "towns": [],
        },
        {"/who": "span", "/payer": "span", "/things": "span", "/towns": "span"},
    ),
    "lists of few objects": Row(
        Loops,
        {
            "bought": [{"colour": "red", "good": True}, {"colour": "blue", "good": False}],
            "nothing": [],
        },
        {
            "/bought": "read",
            "/bought/0/colour": "read",
            "/bought/1/good": "read",
            "/bought/2/colour": "skipped",
            "/nothing": "read",
            "/nothing/0/good": "skipped",
        },
    ),
    "tuples": Row(Tuples, {"pair": ["sales", True]}, {"/pair/0": "read", "/pair/1": "read"}),
    "models in models, and what is fixed": Row(
        Nested,
        {"order": {"urgent": True, "calm": False}, "version": "v1"},
        {"/order/urgent": "read", "/version": "fixed"},
    ),
    "everything else": Row(
        Written,
        {
            "title": "Two pieces",
            "price": 12.5,
            "figures": {"a": 1, "b": 2},
            "outline": {"name": "a", "below": [{"name": "b", "below": []}]},
            "long": [{"name": "a"}, {"name": "b"}],
            "large": 4711,
            "anything": {"free": [True, None]},
        },
        {
            f"/{name}": "generated"
            for name in ("title", "price", "figures", "outline/below", "long", "large", "anything")
        },
    ),
    "the order of fields": Row(
        Ordered,
        {"first": True, "later": True, "alone": False, "marked": False},
        {"/first": "read", "/later": "read", "/alone": "read", "/marked": "read"},
    ),
    "an alias that is no pointer": Row(Aliased, {"is/urgent~now": True}, {"/is~1urgent~0now": "read"}),
}
