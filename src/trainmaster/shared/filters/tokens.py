"""The words of a filter."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

TokenKind = Literal["word", "quoted", "operator", "(", ")", ",", "end"]

_TOKEN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<quoted>"(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | `[^`]*`)
    | (?P<operator><=|>=|<>|!=|==|!~\*|!~|~\*|~|=|<|>)
    | (?P<mark>[(),])
    | (?P<word>[^\s()<>=!~,"'`]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True)
class Token:
    """A word, a quoted text, an operator or a mark, and where it is."""

    kind: TokenKind
    text: str
    """Without quotes."""
    start: int
    end: int


class UnreadableError(Exception):
    """The text cannot be read from `position` on."""

    def __init__(self, problem: str, position: int, hint: str = "") -> None:
        super().__init__(problem)
        self.position = position
        self.hint = hint


def split(text: str) -> list[Token]:
    """The tokens of a filter; the last one is its end.

    >>> [token.text for token in split('lr<=0.1 and tag.kind = "my base"')]
    ['lr', '<=', '0.1', 'and', 'tag.kind', '=', 'my base', '']
    """
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            what = "this quote is not closed" if text[position] in "\"'`" else "this character has no meaning here"
            raise UnreadableError(what, position)
        if found.lastgroup != "space":
            tokens.append(_make_token(found))
        position = found.end()
    return [*tokens, Token("end", "", len(text), len(text))]


def _make_token(found: re.Match[str]) -> Token:
    text = found.group()
    if found.lastgroup == "mark":
        kind: TokenKind = text  # type: ignore[assignment]
    elif found.lastgroup == "quoted":
        # In a pattern, the backslash before `*`, `?` and itself is read later.
        kind, text = "quoted", _unquote(text)
    else:
        kind = "operator" if found.lastgroup == "operator" else "word"
    return Token(kind, text, found.start(), found.end())


def _unquote(text: str) -> str:
    if text[0] == "`":
        return text[1:-1]
    return _ESCAPED.sub(lambda found: found.group(1) if found.group(1) in "\"'" else found.group(), text[1:-1])
