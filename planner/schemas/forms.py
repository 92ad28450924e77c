"""A form: a schema as questions, and the tree by which their answers become a value of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from planner.decision import Question


@dataclass(frozen=True, slots=True)
class Fixed:
    """A field with one possible value: nothing is asked."""

    path: str
    value: Any


@dataclass(frozen=True, slots=True)
class Picked:
    """A field read off one label question (noul, choice or score); `values` are aligned with its alternatives."""

    path: str
    question: str
    type: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Flags:
    """A list of distinct values, each asked for by a noul of its own; it holds `least` to `most` of them."""

    path: str
    questions: tuple[str, ...]
    names: tuple[str, ...]
    values: tuple[Any, ...]
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Grounded:
    """A field that is found in the text: an object with text and offsets, or the text alone.

    `many`: a list of such, of at least `least`. `optional`: null when nothing is found.
    """

    path: str
    question: str
    many: bool = False
    least: int = 0
    optional: bool = False
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """A field that the model writes, by an object question."""

    path: str
    question: str


@dataclass(frozen=True, slots=True)
class Record:
    """An object: its fields in their order."""

    path: str
    fields: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class Maybe:
    """A field that is null unless the noul `question` says yes."""

    path: str
    question: str
    node: Node


@dataclass(frozen=True, slots=True)
class Tagged:
    """A union: the tag's value picks the branch; `branches` are aligned with the tag's values."""

    path: str
    tag: Picked
    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A list of as many items as `count` says, or of all of them where that is fixed (None)."""

    path: str
    count: Picked | None
    items: tuple[Node, ...]


Node = Fixed | Picked | Flags | Grounded | Written | Record | Maybe | Tagged | Loop


@dataclass(frozen=True)
class Form:
    """A compiled schema: the questions in the order of the fields, and the tree of the fields."""

    schema: Any
    questions: tuple[Question, ...]
    root: Node


def parts_of(node: Node) -> tuple[Node, ...]:
    """The nodes directly under a node."""
    if isinstance(node, Record):
        return tuple(child for _, child in node.fields)
    if isinstance(node, Maybe):
        return (node.node,)
    if isinstance(node, Tagged):
        return (node.tag, *dict.fromkeys(node.branches))
    if isinstance(node, Loop):
        return (*((node.count,) if node.count else ()), *node.items)
    return ()


def nodes_of(node: Node) -> Iterator[Node]:
    """A node and all under it, in the order of the fields."""
    yield node
    for child in parts_of(node):
        yield from nodes_of(child)
