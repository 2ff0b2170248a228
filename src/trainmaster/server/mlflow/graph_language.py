"""Reads GraphQL: the part of the language that queries use. There is no schema here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_TOKEN = re.compile(
    r"""(?P<skipped>[\s,\ufeff]+|\#[^\r\n]*)
    |(?P<block>\"\"\"(?:\\\"\"\"|[^"]|"(?!""))*\"\"\")
    |(?P<string>"(?:[^"\\\r\n]|\\.)*")
    |(?P<number>-?\d+(?P<fraction>\.\d+)?(?P<exponent>[eE][+-]?\d+)?)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>\.\.\.|[{}()\[\]:!=$@|&])""",
    re.VERBOSE | re.ASCII,
)
_WORDS: Mapping[str, Any] = {"true": True, "false": False, "null": None}
_DEEPEST_VALUE = 50
_DEEPEST, _MOST_SELECTIONS, _MOST_ROOTS, _MOST_ALIASES = 10, 1000, 10, 10


class QueryError(Exception):
    """A query that cannot be answered."""


@dataclass(frozen=True)
class Selection:
    """One field that a query asks for."""

    name: str
    alias: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """With the values of variables in them."""
    below: tuple[Selection, ...] = ()

    @property
    def key(self) -> str:
        """Its name in the answer."""
        return self.alias or self.name


@dataclass(frozen=True)
class Query:
    """What is to be done: `query` or `mutation`, and the fields that are asked for."""

    kind: str
    selections: tuple[Selection, ...]


@dataclass(frozen=True)
class _Spread:
    """The fields of a fragment, by its name, or those within it."""

    name: str = ""
    below: tuple[Any, ...] = ()


def read_query(text: str, variables: Mapping[str, Any], operation: str = "") -> Query:
    """The operation of this name, or the only one. Raises QueryError if it asks for too much.

    >>> read_query('query A { run(id: $it) { name other: size } }', {"it": "7"}).selections[0].arguments
    {'id': '7'}
    """
    reader = _Reader(text, variables)
    operations, fragments = reader.read_document()
    found = [each for each in operations if not operation or each[1] == operation]
    if len(found) != 1:
        raise QueryError(
            f'Unknown operation named "{operation[:60]}".' if operation else "Must provide operation name."
        )
    kind, _, selections = found[0]
    query = Query(kind, tuple(_Spreader(fragments).spread(selections)))
    _check_size(query)
    return query


class _Reader:
    def __init__(self, text: str, variables: Mapping[str, Any]) -> None:
        self._tokens = list(_split(text))
        self._variables = dict(variables)
        self._next = 0

    def read_document(self) -> tuple[list[tuple[str, str, tuple[Any, ...]]], dict[str, tuple[Any, ...]]]:
        """The operations (kind, name, fields), and the fragments by name."""
        operations: list[tuple[str, str, tuple[Any, ...]]] = []
        fragments: dict[str, tuple[Any, ...]] = {}
        while self._peek()[1]:
            if self._take_if("fragment"):
                name = self._take_name()
                self._skip_type_condition()
                fragments[name] = self._read_selections(1)
            elif self._peek()[1] == "{":
                operations.append(("query", "", self._read_selections(1)))
            else:
                kind = self._take_name()
                if kind not in ("query", "mutation"):
                    raise self._fail()
                name = self._take()[1] if self._peek()[0] == "name" else ""
                self._read_definitions()
                self._skip_directives()
                operations.append((kind, name, self._read_selections(1)))
        return operations, fragments

    def _read_selections(self, depth: int) -> tuple[Any, ...]:
        if depth > _DEEPEST * 5:
            raise QueryError(f"Query exceeds maximum depth of {_DEEPEST}")
        self._expect("{")
        found: list[Any] = []
        while not self._take_if("}"):
            found.append(self._read_spread(depth) if self._take_if("...") else self._read_field(depth))
        if not found:
            raise QueryError("Syntax Error: Expected Name, found '}'.")
        return tuple(found)

    def _read_spread(self, depth: int) -> _Spread:
        kind, name = self._peek()
        if kind == "name" and name != "on":
            self._take()
            self._skip_directives()
            return _Spread(name)
        self._skip_type_condition()
        return _Spread(below=self._read_selections(depth + 1))

    def _read_field(self, depth: int) -> Selection:
        name, alias = self._take_name(), ""
        if self._take_if(":"):
            name, alias = self._take_name(), name
        arguments = {}
        if self._take_if("("):
            while not self._take_if(")"):
                given = self._take_name()
                self._expect(":")
                arguments[given] = self._read_value(1)
        self._skip_directives()
        below = self._read_selections(depth + 1) if self._peek()[1] == "{" else ()
        return Selection(name, alias, arguments, below)

    def _read_definitions(self) -> None:
        """The declared variables: those that were not given get their defaults."""
        if not self._take_if("("):
            return
        while not self._take_if(")"):
            self._expect("$")
            name = self._take_name()
            self._expect(":")
            self._skip_type()
            default = self._read_value(1) if self._take_if("=") else None
            self._variables.setdefault(name, default)
            self._skip_directives()

    def _read_value(self, depth: int) -> Any:
        if depth > _DEEPEST_VALUE:
            raise self._fail()
        kind, text = self._take()
        if kind == "number":
            return float(text) if any(sign in text for sign in ".eE") else int(text)
        if kind in ("string", "block"):
            return _read_string(text)
        if kind == "name":
            return _WORDS.get(text, text)
        if text == "$":
            return self._variables.get(self._take_name())
        if text == "[":
            values = []
            while not self._take_if("]"):
                values.append(self._read_value(depth + 1))
            return values
        if text != "{":
            raise self._fail()
        found = {}
        while not self._take_if("}"):
            name = self._take_name()
            self._expect(":")
            found[name] = self._read_value(depth + 1)
        return found

    def _skip_type(self) -> None:
        while self._peek()[0] == "name" or self._peek()[1] in ("[", "]", "!"):
            self._take()

    def _skip_type_condition(self) -> None:
        if self._take_if("on"):
            self._take_name()
        self._skip_directives()

    def _skip_directives(self) -> None:
        while self._take_if("@"):
            self._take_name()
            if self._take_if("("):
                while not self._take_if(")"):
                    self._take_name()
                    self._expect(":")
                    self._read_value(1)

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._next] if self._next < len(self._tokens) else ("", "")

    def _take(self) -> tuple[str, str]:
        found = self._peek()
        if not found[1]:
            raise self._fail()
        self._next += 1
        return found

    def _take_if(self, text: str) -> bool:
        kind, found = self._peek()
        if found != text or kind in ("string", "block"):
            return False
        self._next += 1
        return True

    def _take_name(self) -> str:
        kind, text = self._take()
        if kind != "name":
            self._next -= 1
            raise self._fail()
        return text

    def _expect(self, text: str) -> None:
        if not self._take_if(text):
            raise self._fail()

    def _fail(self) -> QueryError:
        found = self._peek()[1]
        return QueryError(f"Syntax Error: Unexpected {found[:60]!r}." if found else "Syntax Error: Unexpected <EOF>.")


def _split(text: str) -> Iterator[tuple[str, str]]:
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise QueryError(f"Syntax Error: Cannot parse the unexpected character {text[place]!r}.")
        place = found.end()
        kind = found.lastgroup or ""
        if kind != "skipped":
            # The groups within a number come after it.
            yield "number" if found["number"] else kind, found[0]


def _read_string(text: str) -> str:
    if text.startswith('"""'):
        return text[3:-3].replace('\\"""', '"""').strip()
    try:
        found: str = json.loads(text, strict=False)
    except ValueError:
        raise QueryError("Syntax Error: Invalid character escape sequence.") from None
    return found


class _Spreader:
    """Puts the fields of fragments in their places. It counts: fragments within fragments could be very many."""

    def __init__(self, fragments: Mapping[str, tuple[Any, ...]]) -> None:
        self._fragments = fragments
        self._count = 0

    def spread(self, selections: tuple[Any, ...], within: tuple[str, ...] = ()) -> Iterator[Selection]:
        """The fields; `within` are the fragments that they are in."""
        for each in selections:
            if isinstance(each, Selection):
                self._count += 1
                if self._count > _MOST_SELECTIONS:
                    raise QueryError(f"Query exceeds maximum total selections of {_MOST_SELECTIONS}")
                yield Selection(each.name, each.alias, each.arguments, tuple(self.spread(each.below, within)))
            elif not each.name:
                yield from self.spread(each.below, within)
            elif each.name in within or each.name not in self._fragments or len(within) >= _DEEPEST:
                raise QueryError(f"Cannot spread fragment '{each.name[:60]}' here.")
            else:
                yield from self.spread(self._fragments[each.name], (*within, each.name))


def _check_size(query: Query) -> None:
    aliases = 0
    waiting = [(1, query.selections)]
    while waiting:
        depth, level = waiting.pop()
        if depth > _DEEPEST:
            raise QueryError(f"Query exceeds maximum depth of {_DEEPEST}")
        aliases = max(aliases, sum(bool(each.alias) for each in level))
        waiting += [(depth + 1, each.below) for each in level if each.below]
    for number, most, words in (
        (len(query.selections), _MOST_ROOTS, "root fields"),
        (aliases, _MOST_ALIASES, "aliases"),
    ):
        if number > most:
            raise QueryError(f"GraphQL queries should have at most {most} {words}, got {number} {words}.")
