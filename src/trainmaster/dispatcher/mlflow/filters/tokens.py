"""The tokens of a filter. MLflow reads filters as SQL: names with dots, in back-ticks or double quotes; texts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

TokenKind = Literal["name", "text", "integer", "float", "comparison", "keyword", "list", "other"]

_COMPARISONS = r"(?:NOT\s+)?(?:LIKE|ILIKE|RLIKE|REGEXP)\b|[<>=~!]+"
_TEXT = r"'(?:''|\\'|[^'])*'"
_PART = r'`(?:``|[^`])*`|"(?:""|\\"|[^"])*"|[^\W\d]\w*'
_TOKEN = re.compile(
    rf"""
      (?P<space>\s+)
    | (?P<comparison>{_COMPARISONS})
    | (?P<keyword>(?:AND|OR|IN|IS|NOT|NULL|TRUE|FALSE|BETWEEN|ASC|DESC)\b(?!\s*\.))
    | (?P<name>(?:{_PART})(?:\s*\.\s*(?:{_PART}|{_TEXT}|\w+))*)
    | (?P<float>-?\d+(?:\.\d+)?E-?\d+(?!\w)|-?(?:\d+\.\d*|\.\d+)(?!\w))
    | (?P<integer>-?\d+(?!\w))
    | (?P<text>{_TEXT})
    | (?P<other>['"`].*|\w+|.)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


@dataclass(frozen=True)
class Token:
    """A piece of a filter as it was written; quotes are part of it."""

    kind: TokenKind
    text: str

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords."""
        return self.kind == "keyword" and self.text.upper() in words


def split(text: str) -> list[Token]:
    """The tokens; what stands in brackets is one of them.

    >>> [token.text for token in split('params."my key"!="a" and run_id IN (\\'1\\', \\'2\\')')]
    ['params."my key"', '!=', '"a"', 'and', 'run_id', 'IN', "('1', '2')"]
    """
    found: list[Token] = []
    depth = first = start = 0
    for match in _TOKEN.finditer(text):
        piece = match.group()
        if piece == "(":
            depth += 1
            if depth == 1:
                first, start = len(found), match.start()
        if match.lastgroup != "space":
            found.append(Token(match.lastgroup, piece))  # type: ignore[arg-type]
        if piece == ")" and depth:
            depth -= 1
            if not depth:
                found[first:] = [Token("list", text[start : match.end()])]
    return found
