"""Reads a filter, an order or the name of a field."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.arguments import number_of
from trainmaster.shared.filters.conditions import (
    And,
    Compare,
    Condition,
    Field,
    IsSet,
    Match,
    Not,
    OneOf,
    Operator,
    Or,
    Order,
    Value,
)
from trainmaster.shared.filters.fields import COLUMNS, UnknownFieldError, make_field
from trainmaster.shared.filters.times import Period, parse_time
from trainmaster.shared.filters.tokens import Token, UnreadableError, split
from trainmaster.shared.records import ACTIVE, TERMINAL, Status
from trainmaster.shared.spelling import guess

T = TypeVar("T")

LONGEST_FILTER = 10_000
MOST_CONDITIONS = 200
MOST_VALUES = 500
"""Values in all lists of a filter together."""
DEEPEST = 50
"""Brackets and `not` within each other."""

_KEYWORDS = frozenset({"and", "or", "not", "in", "is"})
_OPERATORS: dict[str, Operator] = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_STATUSES = {str(status).lower(): status for status in Status}
_GROUPS = {"active": ACTIVE, "ended": TERMINAL}


def parse_filter(text: str, now: float) -> Condition:
    """The condition that `text` says; an empty text matches every run. `now` is what spans such as -7d are relative to.

    >>> parse_filter("metric.loss.min <= 0.3", now=0.0)
    Compare(field=Field(kind='metric', name='loss', part='min'), operator='<=', value=Value(text='0.3', number=0.3))
    """
    return _read("filter", text, lambda: _Parser(text, now).parse())


def parse_field(text: str) -> Field:
    """The field that `text` names.

    >>> str(parse_field("metrics.loss")), str(parse_field("lr")), str(parse_field("created_at"))
    ('metric.loss.last', 'argument.lr', 'created')
    """
    return _read("name of a field", text, lambda: _Parser(text, 0.0).parse_field_alone())


def parse_order(text: str) -> Order:
    """The order that `text` names: a field, then `asc` (or nothing) or `desc`.

    >>> parse_order("metric.loss desc").descending, parse_order("lr").descending
    (True, False)
    """
    return _read("order", text, lambda: _Parser(text, 0.0).parse_order())


def _read(what: str, text: str, read: Callable[[], T]) -> T:
    try:
        if len(text) > LONGEST_FILTER:
            raise UnreadableError(f"it has {len(text)} characters; {LONGEST_FILTER} are allowed", LONGEST_FILTER)
        return read()
    except UnreadableError as error:
        raise UserErrorException(
            f"the {what} cannot be read: {error} (position {error.position + 1})",
            cause=_show(text, error.position),
            hint=error.hint or "docs/guide/search.md describes the language.",
        ) from None


def _show(text: str, position: int) -> str:
    """The text around the position, and a mark below it."""
    start = max(0, position - 60)
    shown = text[start : position + 60].replace("\n", " ").replace("\t", " ")
    return f"{shown}\n{' ' * (position - start)}^"


class _Parser:
    """Reads the tokens of one text from left to right."""

    def __init__(self, text: str, now: float) -> None:
        self._tokens = split(text)
        self._position = 0
        self._now = now
        self._conditions = 0
        self._values = 0

    def parse(self) -> Condition:
        if self._peek().kind == "end":
            return And()
        condition = self._read_or(0)
        self._expect_end("'and' or 'or'")
        return condition

    def parse_field_alone(self) -> Field:
        field = self._read_field()
        self._expect_end("the end")
        return field

    def parse_order(self) -> Order:
        field = self._read_field()
        descending = False
        if self._peek().kind == "word" and self._peek().text.lower() in ("asc", "desc"):
            descending = self._take().text.lower() == "desc"
        self._expect_end("'asc' or 'desc'")
        return Order(field, descending)

    # The grammar

    def _read_or(self, depth: int) -> Condition:
        found = [self._read_and(depth)]
        while self._take_keyword("or"):
            found.append(self._read_and(depth))
        return found[0] if len(found) == 1 else Or(tuple(found))

    def _read_and(self, depth: int) -> Condition:
        found = [self._read_not(depth)]
        while self._take_keyword("and"):
            found.append(self._read_not(depth))
        return found[0] if len(found) == 1 else And(tuple(found))

    def _read_not(self, depth: int) -> Condition:
        if depth > DEEPEST:
            raise UnreadableError(f"more than {DEEPEST} brackets within each other", self._peek().start)
        if self._take_keyword("not"):
            return Not(self._read_not(depth + 1))
        if self._peek().kind == "(":
            opening = self._take()
            condition = self._read_or(depth + 1)
            if self._peek().kind != ")":
                raise UnreadableError("this bracket is not closed", opening.start)
            self._take()
            return condition
        return self._read_condition()

    def _read_condition(self) -> Condition:
        self._conditions += 1
        if self._conditions > MOST_CONDITIONS:
            raise UnreadableError(f"more than {MOST_CONDITIONS} conditions", self._peek().start)
        field = self._read_field()
        if self._take_keyword("is"):
            is_not = self._take_keyword("not")
            self._take_set()
            return Not(IsSet(field)) if is_not else IsSet(field)
        if self._take_keyword("in"):
            return self._read_list(field)
        if self._is_keyword("not"):
            self._take()
            if not self._take_keyword("in"):
                raise UnreadableError("expected 'in' after 'not'", self._peek().start)
            return And((IsSet(field), Not(self._read_list(field))))
        if self._peek().kind != "operator":
            raise UnreadableError(
                f"expected a comparison after '{field}'",
                self._peek().start,
                "Comparisons: = != < <= > >= ~ (pattern), in (a, b), is set.",
            )
        return self._read_comparison(field)

    def _read_comparison(self, field: Field) -> Condition:
        operator = self._take()
        token = self._take_value()
        if "~" in operator.text:
            _check_text(field, operator)
            match = Match(field, token.text, ignores_case="*" in operator.text)
            return And((IsSet(field), Not(match))) if operator.text.startswith("!") else match
        return self._compare(field, _OPERATORS[operator.text], token)

    def _read_list(self, field: Field) -> Condition:
        if self._peek().kind != "(":
            raise UnreadableError(
                "expected '(' after 'in'", self._peek().start, "For example: status in (Failed, Queued)."
            )
        self._take()
        tokens = [self._take_value()]
        while self._peek().kind == ",":
            self._take()
            tokens.append(self._take_value())
        if self._peek().kind != ")":
            raise UnreadableError("expected ',' or ')'", self._peek().start)
        self._take()
        self._values += len(tokens)
        if self._values > MOST_VALUES:
            raise UnreadableError(f"more than {MOST_VALUES} values in lists", tokens[0].start)
        if _type_of(field) == "time":
            return Or(tuple(self._compare(field, "=", token) for token in tokens))
        return OneOf(field, tuple(value for token in tokens for value in self._values_of(field, token)))

    def _compare(self, field: Field, operator: Operator, token: Token) -> Condition:
        if _type_of(field) == "time":
            return _compare_time(field, operator, self._read_time(field, token), token.text)
        values = self._values_of(field, token)
        if _type_of(field) == "status":
            if operator not in ("=", "!="):
                raise UnreadableError("a status is not larger or smaller than another", token.start)
            return OneOf(field, values) if operator == "=" else Not(OneOf(field, values))
        return Compare(field, operator, values[0])

    def _values_of(self, field: Field, token: Token) -> tuple[Value, ...]:
        """The values that a word stands for: one, or the states of a group."""
        match _type_of(field):
            case "status":
                return tuple(Value(str(status)) for status in _find_statuses(token))
            case "number":
                number = number_of(token.text)
                if number is None:
                    raise UnreadableError(f"'{field}' is compared with a number, not '{token.text}'", token.start)
                return (Value(token.text, number),)
            case "text":
                return (Value(token.text),)
            case _:
                return (Value(token.text, None if token.kind == "quoted" else number_of(token.text)),)

    def _read_time(self, field: Field, token: Token) -> Period:
        found = parse_time(token.text, self._now)
        if found is None:
            raise UnreadableError(
                f"'{field}' is compared with a time, not '{token.text}'",
                token.start,
                "Write 2026-11-01, 2026-11-01T10:00, today, or -7d (seven days ago; also m, h, w).",
            )
        return found

    # Tokens

    def _read_field(self) -> Field:
        """Words and quoted texts without a space between them: metric."val loss".min."""
        first = self._peek()
        if first.kind not in ("word", "quoted") or self._is_keyword(*_KEYWORDS):
            what = "the name of a field" if first.kind == "end" else f"the name of a field, not '{first.text}'"
            raise UnreadableError(f"expected {what}", first.start)
        parts: list[tuple[str, bool]] = []
        token = self._take()
        parts += _split_word(token)
        while self._peek().kind in ("word", "quoted") and self._peek().start == token.end:
            token = self._take()
            parts += _split_word(token)
        if not parts or not all(text for text, _ in parts):
            raise UnreadableError("this name of a field is not complete", first.start)
        try:
            return make_field(parts)
        except UnknownFieldError as error:
            raise UnreadableError(str(error), first.start, error.hint) from None

    def _take_value(self) -> Token:
        token = self._peek()
        if token.kind not in ("word", "quoted"):
            what = "the end" if token.kind == "end" else f"'{token.text}'"
            raise UnreadableError(f"expected a value, not {what}", token.start, "Put quotes around a text with marks.")
        return self._take()

    def _take_set(self) -> None:
        if self._peek().kind != "word" or self._peek().text.lower() != "set":
            raise UnreadableError("expected 'set'", self._peek().start, "For example: tag.kind is set.")
        self._take()

    def _take_keyword(self, word: str) -> bool:
        if not self._is_keyword(word):
            return False
        self._take()
        return True

    def _is_keyword(self, *words: str) -> bool:
        return self._peek().kind == "word" and self._peek().text.lower() in words

    def _expect_end(self, what: str) -> None:
        if self._peek().kind != "end":
            text = self._peek().text
            raise UnreadableError(f"expected {what}, not '{text}'", self._peek().start, _guess_keyword(text))

    def _peek(self) -> Token:
        return self._tokens[self._position]

    def _take(self) -> Token:
        token = self._tokens[self._position]
        self._position += 1
        return token


def _guess_keyword(text: str) -> str:
    return guess(text.lower(), ["and", "or"], "'").strip()


def _split_word(token: Token) -> list[tuple[str, bool]]:
    """The parts of a name: a word at its dots, which may also begin or end it; a quoted text as it is."""
    if token.kind == "quoted":
        return [(token.text, True)]
    return [(text, False) for text in token.text.removeprefix(".").removesuffix(".").split(".")]


def _type_of(field: Field) -> str:
    """What the field is compared with; `any` depends on how the value is written."""
    if field.kind == "column":
        return COLUMNS[field.name]
    return "number" if field.kind == "metric" else "any"


def _check_text(field: Field, operator: Token) -> None:
    if _type_of(field) not in ("text", "any"):
        raise UnreadableError(f"'{field}' is not a text, and has no pattern", operator.start)


def _find_statuses(token: Token) -> list[Status]:
    word = token.text.lower().replace("cancelled", "canceled")
    if word in _GROUPS:
        return sorted(_GROUPS[word])
    if word not in _STATUSES:
        known = [*_GROUPS, *Status]
        close = guess(token.text, known, "'")
        raise UnreadableError(f"there is no status '{token.text}'", token.start, f"{close}Known: {', '.join(known)}.")
    return [_STATUSES[word]]


def _compare_time(field: Field, operator: Operator, period: Period, text: str) -> Condition:
    """A day is compared as a whole: `> 2026-11-01` begins with the next day."""
    start, end = Value(text, period.start), Value(text, period.end)
    if period.is_moment:
        return Compare(field, operator, start)
    match operator:
        case "=":
            return And((Compare(field, ">=", start), Compare(field, "<", end)))
        case "!=":
            return Or((Compare(field, "<", start), Compare(field, ">=", end)))
        case ">":
            return Compare(field, ">=", end)
        case "<=":
            return Compare(field, "<", end)
        case _:
            return Compare(field, operator, start)
