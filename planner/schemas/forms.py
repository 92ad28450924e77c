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
    """A field read off one label question (noul, choice or score); `values` are aligned with its
    alternatives.
    """

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
        # By identity: a node may hold a value that has no hash.
        return (node.tag, *{id(branch): branch for branch in node.branches}.values())
    if isinstance(node, Loop):
        return (*((node.count,) if node.count else ()), *node.items)
    return ()


def nodes_of(node: Node) -> Iterator[Node]:
    """A node and all under it, in the order of the fields."""
    yield node
    for child in parts_of(node):
        yield from nodes_of(child)


def outline(form: Form) -> dict[str, dict[str, Any]]:
    """How each field is answered, by its JSON pointer.

    `kind` is `read`, `span`, `generated` or `fixed`, `type` the question's type, `question` its id;
    `questions` are the ids by value, of a list that is asked value by value, and `present` the id of the
    noul whether there is a value at all. A list of objects is told by the question how many. What several
    branches of a union have is told as the first has it.
    """
    return _outline(form.root)


def _outline(node: Node) -> dict[str, dict[str, Any]]:
    found = {node.path: told} if (told := _told(node)) else {}
    for part in parts_of(node):
        for path, inner in _outline(part).items():
            if isinstance(node, Maybe) and path == node.path:
                found[path] = {**inner, "present": node.question}
            else:
                found.setdefault(path, inner)
    return found


def _told(node: Node) -> dict[str, Any]:
    """How the value of a node itself is answered; empty where its parts say it."""
    if isinstance(node, Fixed):
        return {"kind": "fixed"}
    if isinstance(node, Picked):
        return {"kind": "read", "type": node.type, "question": node.question}
    if isinstance(node, Flags):
        named = dict(zip(node.names, node.questions, strict=True))
        return {"kind": "read", "type": "noul", "questions": named}
    if isinstance(node, Grounded):
        return {"kind": "span", "type": "spans" if node.many else "span", "question": node.question}
    if isinstance(node, Written):
        return {"kind": "generated", "type": "object", "question": node.question}
    if isinstance(node, Maybe):
        return {"kind": "read", "type": "noul", "question": node.question}
    return {}
