"""The parameters of a sweep as they are written in sweep.yaml."""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Callable
from typing import Any

from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.sdk.display.text import count_of
from trainmaster.shared.marked_yaml import Marked
from trainmaster.shared.spelling import guess
from trainmaster.tuning import parameter_expressions
from trainmaster.tuning.parameter_expressions import EXPRESSIONS, Expression

_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\(.*\)\s*", re.DOTALL)


def expression_of(given: Marked) -> Expression:
    """The expression of a parameter: a text such as `uniform(0.1, 0.9)`, or a list of values to choose from."""
    if isinstance(given.value, list):
        return _call(given, "choice", [[_option(item) for item in given.value]], {})
    expression = _parse_call(given)
    if expression is None:
        hint = "Write an expression such as uniform(0.1, 0.9), or a list of values: [16, 32].\n"
        if isinstance(given.value, str) and "(" in given.value:
            hint = 'The bracket is not closed. Inside { } a text with commas needs quotes: "uniform(0.1, 0.9)".\n'
        raise given.error(
            f"must be a parameter expression, not {given.plain()!r}", hint=f"{hint}Known: {', '.join(EXPRESSIONS)}."
        )
    return expression


def _option(given: Marked) -> Any:
    """One value of a choice; a dict is a set of further parameters."""
    if not isinstance(given.value, dict):
        return given.plain()
    return {name: _inner(item) for name, item in given.value.items()}


def _inner(given: Marked) -> Any:
    if isinstance(given.value, list) or _parse_call(given) is not None:
        return expression_of(given)
    return given.plain()


def _parse_call(given: Marked) -> Expression | None:
    """The expression that a text calls; None if it is not a call."""
    found = _CALL.fullmatch(given.value) if isinstance(given.value, str) else None
    if found is None:
        return None
    name = found[1]
    if name not in EXPRESSIONS:
        hint = f"{guess(name, EXPRESSIONS)}Known: {', '.join(EXPRESSIONS)}."
        raise given.error(f"unknown expression {name!r}", hint=hint)
    try:
        call = ast.parse(given.value.strip(), mode="eval").body
        assert isinstance(call, ast.Call)
        words = [_literal(each) for each in call.args]
        named = {str(each.arg): _literal(each.value) for each in call.keywords}
    except (SyntaxError, ValueError, TypeError, AssertionError, RecursionError, MemoryError):
        raise given.error(
            f"{given.value!r} cannot be read",
            hint="Arguments must be numbers or texts: choice(16, 32), uniform(0.1, 0.9).",
        ) from None
    return _call(given, name, words, named)


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        return range(*map(ast.literal_eval, node.args))
    return ast.literal_eval(node)


def _call(given: Marked, name: str, words: list[Any], named: dict[str, Any]) -> Expression:
    function: Callable[..., Expression] = getattr(parameter_expressions, name)
    try:
        inspect.signature(function).bind(*words, **named)
    except TypeError:
        raise given.error(
            f"{name} does not take these arguments", hint=f"Write {name}{inspect.signature(function)}."
        ) from None
    try:
        return function(*words, **named)
    except TrainmasterError as error:
        raise add_place(given, error) from None


def add_place(given: Marked, error: TrainmasterError) -> UserErrorException:
    """The error with the place of `given` in its headline."""
    return given.error(error.headline, error.cause, error.hint)


def expression_in_words(expression: Expression) -> str:
    """An expression as it is written in a file.

    >>> expression_in_words(["loguniform", [-7, -1]]), expression_in_words(["choice", [[16, 32]]])
    ('loguniform(-7, -1)', 'choice(16, 32)')
    """
    kind, arguments = expression
    words = arguments[0] if kind == "choice" else arguments
    return f"{kind}({', '.join(_word(word) for word in words)})"


def range_in_words(expression: Expression) -> str:
    """The values that an expression gives, for people.

    >>> range_in_words(["loguniform", [-7, -1]]), range_in_words(["quniform", [0, 100, 10]])
    ('0.0009119 to 0.3679, small ones as often as large ones', 'whole numbers from 0 to 100 in steps of 10')
    """
    kind, arguments = expression
    if kind == "choice":
        return count_of(len(arguments[0]), "set" if isinstance(arguments[0][0], dict) else "value")
    if kind == "randint":
        return f"whole numbers from 0 to {arguments[0] - 1}"
    first, second = arguments[:2]
    steps = f" in steps of {arguments[2]}" if kind.startswith("q") else ""
    whole = "whole numbers " if kind.startswith("q") else ""
    base = kind.removeprefix("q")
    if base == "uniform":
        return f"{whole}{'from ' if whole else ''}{first:g} to {second:g}{steps}"
    if base == "loguniform":
        low, high = math.exp(first), math.exp(second)
        return f"{whole}{'from ' if whole else ''}{low:.4g} to {high:.4g}{steps}, small ones as often as large ones"
    centre, what = (first, "about") if base == "normal" else (math.exp(first), "a factor about")
    return f"{whole}{what} {centre:.4g}{steps}"


def _word(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_word(item)}" for name, item in value.items()) + "}"
    if parameter_expressions.is_expression(value):
        return expression_in_words(value)
    return str(value)
