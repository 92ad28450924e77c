"""The compiler: a JSON Schema becomes questions, every field answered by the cheapest sound means.

| schema | questions |
| --- | --- |
| one possible value, a list that holds nothing among them | none |
| boolean | a noul |
| up to 255 listed scalars | a choice |
| whole numbers within bounds, at most ten | a score |
| marked as a span, or a list of such | a span, spans |
| something or null | a noul whether there is one, then the something |
| objects told apart by a tag | a choice of the tag, then the fields of that branch alone |
| a list of listed scalars | a noul for each |
| a list of at most sixteen objects | a choice how many, then the fields of each |
| an object with declared fields; a tuple | its parts, in place |
| anything else | an object question: the model writes it |

The order of the fields is the order of the thinking: a question depends on all before it that can be asked
beside it, which leaves out those of other branches of a union. A field that is marked `alone` depends on
none.

Ids are JSON pointers. What a pointer cannot hold, a `~` before anything but 0 and 1, sets apart the helpers
(`/offer~present`, `/items~count`, `/tags~has=red`), the fields of a branch (`/pet~as=cat/lives`), and the
root itself where it is one field (`~root`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from planner.decision import YES, Alternative, Question
from planner.errors import Invalid, Location
from planner.schemas.alternatives import ALTERNATIVES, NOUL, type_of, values_of
from planner.schemas.bundles import bundle
from planner.schemas.checks import check_schema
from planner.schemas.forms import (
    Fixed,
    Flags,
    Form,
    Grounded,
    Loop,
    Maybe,
    Node,
    Picked,
    Record,
    Tagged,
    Written,
)
from planner.schemas.keywords import Schemas, escaped, told_types
from planner.schemas.marks import PIECE, can_be_found, check_marks, is_bare
from planner.schemas.places import Place
from planner.schemas.reading import (
    Known,
    Unfolded,
    Union,
    Value,
    is_alone,
    is_null,
    is_record,
    listed,
    marked,
    only,
    tagged,
    unfold,
    without_null,
)
from planner.schemas.wording import item_of, label_of, names_of, sentence, told, within

MAX_QUESTIONS = 400
"""Most questions of one form, as of any decision."""

MAX_FIELDS = 2_000
"""Most fields of one form, those that nothing is asked of among them."""

MAX_TEXT = 4 * 1024 * 1024
"""Most characters of all questions together, with what they name and the schemas they carry: a long name or
definition is repeated by every question that needs it."""

MAX_DEPTH = 32
"""Deepest nesting of fields."""

MAX_LOOP = 16
"""Most items of a list that is asked item by item."""

MAX_SPANS, USUAL_SPANS = 64, 16
"""Most items of a list of spans, and how many when the schema does not say."""

NUMBER_TOKENS = 32
"""Most tokens of a number, unless a mark gives it others: no number needs more, and a small model that
writes a fraction goes on until it is cut."""

MAX_OBJECT_TOKENS, MAX_SPAN_TOKENS = 4096, 96
"""Most tokens that a mark may give to what is written, and to spans."""


def compile_schema(schema: Any, loc: Location = ("schema",)) -> Form:
    """The form of a JSON Schema. `loc` is the schema's path in the request. Raises Invalid."""
    check_schema(schema, loc)
    schemas = Schemas.of(schema)
    check_marks(schemas, loc)
    compiler = _Compiler(Known(schemas, loc), loc)
    text = told(schema, "description") or told(schema, "title") or "The answer"
    root = compiler.node(schema, Place(label="the list", text=text, open=frozenset({()})))
    if not compiler.questions:
        raise Invalid(
            loc, "this schema has one possible value: there is nothing to ask", kind="schema_closed"
        )
    return Form(schema, tuple(compiler.questions), root)


@dataclass(slots=True)
class _Compiler:
    known: Known
    loc: Location
    questions: list[Question] = field(default_factory=list)
    fields: int = 0
    text: int = 0

    def node(self, schema: Any, place: Place) -> Node:
        """The node of a field, whose questions are added to the others."""
        self.fields += 1
        if self.fields > MAX_FIELDS:
            raise self._too_much(f"this schema has more than {MAX_FIELDS} fields", MAX_FIELDS)
        if place.depth > MAX_DEPTH:
            told_at = place.path[:200]
            raise self._too_much(
                f"the fields of this schema nest deeper than {MAX_DEPTH}: {told_at}", MAX_DEPTH
            )
        inner = unfold(schema, self.known, place.open)
        below = replace(place, open=inner.open)
        about = told(inner.schema, "description")
        if not place.is_told and place.path and about:
            below = replace(below, text=f"{place.text} ({about.rstrip('.')})", is_told=True)
        if inner.recursive or not isinstance(inner.schema, dict):
            return self._written(schema, below)
        for row in _ROWS:
            node = row(self, inner.schema, below)
            if node is not None:
                return node
        return self._written(inner.schema, below)

    def _written(self, schema: Any, place: Place) -> Node:
        most = self._tokens(schema, MAX_OBJECT_TOKENS)
        if most is None and told_types(schema) and {*told_types(schema)} <= {"integer", "number"}:
            most = NUMBER_TOKENS
        self._ask(
            place,
            place.question,
            "object",
            place.asked(),
            schema=bundle(schema, self.known.schemas),
            max_tokens=most,
        )
        return Written(place.path, place.question)

    def span(self, schema: dict[str, Any], place: Place, *, optional: bool = False) -> Node | None:
        """A field that is found in the text."""
        items = unfold(schema.get("items"), self.known, place.open).schema
        many = schema.get("type") == "array"
        if not (marked(schema, "span") is True or (many and marked(items, "span") is True)):
            return None
        if without_null(schema, self.known, place.open) is not None:
            return None
        found = items if many else schema
        if not can_be_found(found):
            raise Invalid(
                self.loc,
                f"a span is a string, or an object of {', '.join(PIECE)}, or a list of either, "
                f"which {place.path[:200] or 'the root'} is not",
                kind="schema_mark",
            )
        most = int(min(schema.get("maxItems", USUAL_SPANS), MAX_SPANS))
        self._ask(
            place,
            place.question,
            "spans" if many else "span",
            place.asked(),
            max_tokens=self._tokens(schema, MAX_SPAN_TOKENS),
            max_items=most if many else 1,
        )
        return Grounded(
            place.path,
            place.question,
            many=many,
            least=int(min(schema.get("minItems", 0), MAX_SPANS)),
            optional=optional,
            bare=is_bare(found),
        )

    def empty(self, schema: dict[str, Any], place: Place) -> Node | None:
        """A list that holds nothing."""
        if schema.get("type") not in ("array", ["array"]) or schema.get("prefixItems"):
            return None
        if schema.get("maxItems") != 0 and not self.known.is_dead(schema.get("items")):
            return None
        return Fixed(place.path, []) if self.known.fitting([[]], schema) == [True] else None

    def picked(self, schema: dict[str, Any], place: Place) -> Node | None:
        """A field with listed values, booleans and small numbers among them."""
        values = values_of(schema, self.known, place.open)
        if not values:
            return None
        if len(values) == 1:
            return Fixed(place.path, values[0][0])
        type = type_of(schema)
        return self._pick(place, place.question, type, place.asked(), values)

    def maybe(self, schema: dict[str, Any], place: Place) -> Node | None:
        """A field that may be null. One that is found in the text is null when it is not found."""
        inner = without_null(schema, self.known, place.open)
        if inner is None:
            return None
        if is_null(schema, self.known, place.open):
            return Fixed(place.path, None)
        found = unfold(inner, self.known, place.open)
        if not found.recursive and isinstance(found.schema, dict):
            span = self.span(found.schema, replace(place, open=found.open), optional=True)
            if span is not None:
                return span
        if place.is_there:
            return self.node(inner, replace(place, depth=place.depth + 1))
        helper = f"{place.id}~present"
        self._ask(place, helper, "noul", place.asked("(is there such a value?)"), NOUL)
        below = replace(
            place,
            earlier=(*place.earlier, helper),
            ask_if={helper: (YES,)},
            is_there=True,
            depth=place.depth + 1,
        )
        return Maybe(place.path, helper, self.node(inner, below))

    def union(self, schema: dict[str, Any], place: Place) -> Node | None:
        """Objects told apart by a tag."""
        union = tagged(schema, self.known, place.open)
        if union is None:
            return None
        values = [value for _, part in union.branches for value in part]
        first = union.branches[0][0].schema["properties"][union.tag]
        tag_place = replace(
            place, path=f"{place.path}/{escaped(union.tag)}", id=f"{place.id}/{escaped(union.tag)}"
        )
        asked = told(first, "description")
        tag = self._pick(
            tag_place,
            tag_place.question,
            "choice",
            sentence(within(place.joined, asked)) if asked else place.asked("(which kind?)"),
            values,
        )
        branches = self._branches(union, tag, replace(place, earlier=(*place.earlier, tag.question)))
        return Tagged(place.path, tag, branches)

    def _branches(self, union: Union, tag: Picked, place: Place) -> tuple[Node, ...]:
        """The branches, aligned with the tag's values. None sees the questions of another."""
        names = [one.name for one in self.questions[-1].alternatives]
        found: list[Node] = []
        for branch, values in union.branches:
            picks = tuple(names[len(found) : len(found) + len(values)])
            below = replace(
                place,
                id=f"{place.id}~as={escaped(picks[0])}",
                ask_if={tag.question: picks},
                open=branch.open,
            )
            found += [self._record(branch.schema, below, {union.tag: tag})] * len(values)
        return tuple(found)

    def flags(self, schema: dict[str, Any], place: Place) -> Node | None:
        """A list of listed values: each is in it or not."""
        if schema.get("type") != "array" or not only(
            schema, "type", "items", "minItems", "maxItems", "uniqueItems"
        ):
            return None
        values = listed(schema["items"], self.known, place.open) if "items" in schema else None
        least = schema.get("minItems", 0)
        if not values or least > len(values):
            return None
        names = names_of([value for value, _ in values])
        ids = tuple(f"{place.id}~has={name}" for name in names)
        for id, name, (_, about) in zip(ids, names, values, strict=True):
            meaning = f'"{name}" ({about.rstrip(".")})' if about else f'"{name}"'
            self._ask(place, id, "noul", place.asked(f"(does {meaning} belong to it?)"), NOUL)
        most = int(min(schema.get("maxItems", len(values)), len(values)))
        return Flags(place.path, ids, tuple(names), tuple(value for value, _ in values), int(least), most)

    def loop(self, schema: dict[str, Any], place: Place) -> Node | None:
        """A list of few objects: how many, then each."""
        if schema.get("type") != "array" or not only(schema, "type", "items", "minItems", "maxItems"):
            return None
        least, most = int(schema.get("minItems", 0)), schema.get("maxItems")
        items = unfold(schema.get("items"), self.known, place.open)
        if most is None or most > MAX_LOOP or not self._is_composed(items):
            return None
        counts = list(range(least, int(most) + 1))
        count = None
        if len(counts) > 1:
            values: list[Value] = [(number, "") for number in counts]
            count = self._pick(place, f"{place.id}~count", "choice", place.asked("(how many?)"), values)
            place = replace(place, earlier=(*place.earlier, count.question))
        return Loop(place.path, count, self._items([schema["items"]] * int(most), place, count))

    def tuple_of(self, schema: dict[str, Any], place: Place) -> Node | None:
        """A list of so many items, each of its own kind."""
        if schema.get("type") != "array" or not only(
            schema, "type", "prefixItems", "items", "minItems", "maxItems"
        ):
            return None
        items = schema.get("prefixItems", [])
        closed = schema.get("items") is False or schema.get("maxItems") == len(items)
        if not closed or not 1 <= len(items) <= MAX_LOOP or schema.get("minItems") != len(items):
            return None
        return Loop(place.path, None, self._items(items, place, None))

    def _items(self, items: list[Any], place: Place, count: Picked | None) -> tuple[Node, ...]:
        """The items of a list, each of which sees those before it."""
        found: list[Node] = []
        start = len(self.questions)
        for number, item in enumerate(items):
            enough = tuple(str(one) for one in count.values if one > number) if count else ()
            always = count is None or number < min(count.values)
            called = item_of(number + 1, place.label)
            below = replace(
                place,
                path=f"{place.path}/{number}",
                id=f"{place.id}/{number}",
                label=called,
                text=called,
                is_told=True,
                is_there=False,
                earlier=self._earlier(place, start),
                ask_if=place.ask_if if always or count is None else {count.question: enough},
                depth=place.depth + 1,
            )
            found.append(self.node(item, below))
        return tuple(found)

    def record(self, schema: dict[str, Any], place: Place) -> Node | None:
        """An object whose fields are declared."""
        return self._record(schema, place, {}) if is_record(schema) else None

    def _record(self, schema: dict[str, Any], place: Place, known: Mapping[str, Node]) -> Node:
        """An object's fields, in their order; those `known` are there already."""
        start = len(self.questions)
        context = place.joined if place.path else ""
        found: list[tuple[str, Node]] = []
        for name, one in schema["properties"].items():
            if name in known:
                found.append((name, known[name]))
            elif not self.known.is_dead(one):
                label = label_of(one, name)
                alone = is_alone(one)
                below = replace(
                    place,
                    path=f"{place.path}/{escaped(name)}",
                    id=f"{place.id}/{escaped(name)}",
                    label=label,
                    text=told(one, "description") or label,
                    is_told=bool(told(one, "description")),
                    is_there=False,
                    context=context,
                    earlier=() if alone else self._earlier(place, start),
                    alone=place.alone or alone,
                    depth=place.depth + 1,
                )
                found.append((name, self.node(one, below)))
        return Record(place.path, tuple(found))

    def _is_composed(self, items: Unfolded) -> bool:
        """Whether items are objects that are asked field by field."""
        if items.recursive or not isinstance(items.schema, dict) or marked(items.schema, "span") is True:
            return False
        return is_record(items.schema) or tagged(items.schema, self.known, items.open) is not None

    def _earlier(self, place: Place, start: int) -> tuple[str, ...]:
        """What a part depends on: what the whole does, and its parts before."""
        return (*place.earlier, *(question.id for question in self.questions[start:]))

    def _pick(self, place: Place, id: str, type: str, asked: str, values: list[Value]) -> Picked:
        self._ask(place, id, type, asked, ALTERNATIVES[type](values))
        return Picked(place.path, id, type, tuple(value for value, _ in values))

    def _ask(
        self,
        place: Place,
        id: str,
        type: Any,
        instructions: str,
        alternatives: tuple[Alternative, ...] = (),
        **more: Any,
    ) -> None:
        if len(self.questions) >= MAX_QUESTIONS:
            raise self._too_much(f"this schema asks more than {MAX_QUESTIONS} questions", MAX_QUESTIONS)
        self.text += _length(id, instructions, *place.earlier, *place.ask_if, more.get("schema"))
        self.text += sum(_length(*names) for names in place.ask_if.values())
        self.text += sum(_length(one.name, one.text) for one in alternatives)
        if self.text > MAX_TEXT:
            raise self._too_much(
                f"the questions of this schema take more than {MAX_TEXT} characters", MAX_TEXT
            )
        question = Question(
            id,
            type,
            instructions,
            alternatives,
            depends_on=tuple(dict.fromkeys(place.earlier)),
            ask_if=place.ask_if,
            alone=place.alone,
            **more,
        )
        self.questions.append(question)

    def _tokens(self, schema: Any, most: int) -> int | None:
        """How many tokens a mark gives to what is written."""
        tokens = marked(schema, "max_tokens")
        if tokens is None or (type(tokens) is int and 1 <= tokens <= most):
            return tokens
        message = f"the mark max_tokens is a whole number from 1 to {most}, not {str(tokens)[:50]}"
        raise Invalid(self.loc, message, kind="schema_mark", given=tokens)

    def _too_much(self, message: str, limit: int) -> Invalid:
        return Invalid(self.loc, message, kind="schema_too_large", given=limit + 1)


def _length(*parts: Any) -> int:
    """About how many characters some texts and schemas take."""
    return sum(
        len(one) if isinstance(one, str) else len(orjson.dumps(one)) for one in parts if one is not None
    )


_ROWS: tuple[Callable[[_Compiler, dict[str, Any], Place], Node | None], ...] = (
    _Compiler.empty,
    _Compiler.span,
    _Compiler.picked,
    _Compiler.maybe,
    _Compiler.union,
    _Compiler.flags,
    _Compiler.loop,
    _Compiler.tuple_of,
    _Compiler.record,
)
"""The table, first come first served; what fits none is written by the model."""
