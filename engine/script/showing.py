"""What a prompt and a canvas show: which questions are asked, and which slot is whose.

An isolated prompt ends with a block that begins at the last line `Question: INSTRUCTIONS`; its canvas is
`answer: ` and the slot. A joint prompt has a block per question that begins `[ID] INSTRUCTIONS` or
`[INDEX ID] INSTRUCTIONS`; its canvas has a line `ID: ` and the slot for each, or `0`, slot, ` 1`, slot...
Under a block's first line stand its options, one a line: `LABEL: NAME` or `LABEL: NAME - DESCRIPTION`.
"""

import re
from dataclasses import dataclass

_HEADER = re.compile(r"^\[((?:(\d+) )?([^\n]+?))\](?: |$)", re.MULTILINE)
_QUESTION = re.compile(r"^Question:(?: |$)", re.MULTILINE)
# A label is one token: yes, no, a digit, a letter, or a code of two letters.
_OPTION = re.compile(r"^(yes|no|[A-Za-z0-9]{1,2})(?:: (.*)| - .*)?$")
_LINE_ID = re.compile(r"([^\n]+?):\s*$")
_INDEX = re.compile(r"(\d+)\s*$")


@dataclass(frozen=True, slots=True)
class Question:
    """A question's block. `identity` is its id on a joint prompt; `options` are the texts by label."""

    identity: str | None
    text: str
    options: dict[str, str]

    def label_of(self, name: str) -> str | None:
        """The label of an option by its name, or the name itself when it is a label."""
        if name in self.options:
            return name
        exact = (label for label, text in self.options.items() if text == name)
        described = (label for label, text in self.options.items() if text.startswith(f"{name} - "))
        return next(exact, None) or next(described, None)


@dataclass(frozen=True, slots=True)
class Shown:
    """A prompt's text and its questions: by id, by index, and the one of an isolated prompt."""

    text: str
    by_id: dict[str, Question]
    by_index: dict[str, Question]
    isolated: Question

    def asked_before(self, lead: str) -> Question:
        """The question whose slot comes after this canvas text (what stands since the slot before)."""
        line = lead.rsplit("\n", 1)[-1]
        named = _LINE_ID.search(line)
        if named:
            # The thought block may stand before the first line's id.
            found = (self.by_id[name] for name in self.by_id if named[1].strip().endswith(name))
            exact = self.by_id.get(named[1].strip())
            return exact or max(
                found, key=lambda question: len(question.identity or ""), default=self.isolated
            )
        numbered = _INDEX.search(line)
        return self.by_index.get(numbered[1], self.isolated) if numbered else self.isolated


def read_prompt(text: str) -> Shown:
    """Find the questions of a prompt."""
    headers = list(_HEADER.finditer(text))
    by_id: dict[str, Question] = {}
    by_index: dict[str, Question] = {}
    ends = [header.start() for header in headers[1:]] + [len(text)]
    for header, end in zip(headers, ends, strict=False):
        blank = text.find("\n\n", header.start(), end)
        question = _question(header[3], text[header.start() : end if blank < 0 else blank])
        # The questions stand before the state, which may hold lines that look like theirs.
        by_id.setdefault(header[3], question)
        if header[2]:
            by_index.setdefault(header[2], question)
            # Without an index, an id may begin with a number and a space itself.
            by_id.setdefault(header[1], Question(header[1], question.text, question.options))
    last = max((question.start() for question in _QUESTION.finditer(text)), default=0)
    return Shown(text, by_id, by_index, _question(None, text[last:]))


def _question(identity: str | None, text: str) -> Question:
    options: dict[str, str] = {}
    for line in text.split("\n")[1:]:
        option = _OPTION.match(line.split("<|", 1)[0].split("<turn", 1)[0].rstrip())
        if option:
            options.setdefault(option[1], option[2] or option[1])
    return Question(identity, text, options)
