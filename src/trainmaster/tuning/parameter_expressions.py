"""Parameter expressions: functions that return v1's form, a list of a name and its arguments.

>>> uniform(0.1, 0.9)
['uniform', [0.1, 0.9]]
>>> choice(16, 32, 64)
['choice', [[16, 32, 64]]]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from trainmaster.job.errors import HyperDriveConfigException
from trainmaster.shared.notices import warn
from trainmaster.tuning import checks

Expression = list[Any]
"""A name and the list of its arguments; plain JSON data."""

# The largest exponent of e that is still a float, and the largest distance of a normal sample from its mean.
_MAX_EXPONENT = 709.0
_MAX_SIGMAS = 9.0


def choice(*options: Any) -> Expression:
    """One of the values, which are given one by one, as one list, or as one range.

    Unlike in v1, an option may be a dict of further parameters, which exist only if the option is chosen:

    >>> sgd = {"--optimizer": "sgd", "--momentum": uniform(0.5, 0.99)}
    >>> choice(sgd, {"--optimizer": "adam"})[0]
    'choice'
    """
    lists = [option for option in options if isinstance(option, list | tuple | range)]
    if lists and len(options) > 1:
        raise HyperDriveConfigException(
            "choice takes one list or range, or single values, but not both",
            hint="Write choice(1, 2, 3), choice([1, 2, 3]) or choice(range(1, 4)); for lists choice([[1], [2]]).",
        )
    values = [_option(option) for option in (lists[0] if lists else options)]
    if not values:
        raise HyperDriveConfigException("choice has no values", hint="Write choice(1, 2, 3).")
    _check_one_kind(values)
    return ["choice", [values]]


def randint(upper: int) -> Expression:
    """An integer from 0 to `upper` - 1."""
    return ["randint", [checks.check_integer("upper of randint", upper, 1)]]


def uniform(min_value: float, max_value: float) -> Expression:
    """A uniformly distributed number between the limits."""
    return ["uniform", [*_range("uniform", min_value, max_value)]]


def quniform(min_value: float, max_value: float, q: int) -> Expression:
    """round(uniform(min_value, max_value) / q) * q"""
    return ["quniform", [*_range("quniform", min_value, max_value), _step("quniform", q)]]


def loguniform(min_value: float, max_value: float) -> Expression:
    """exp(uniform(min_value, max_value)): the limits are exponents of e."""
    expression = _loguniform(min_value, max_value)
    low, high = expression[1]
    if 0 < low < high < 1:
        warn(
            f"loguniform({low}, {high}): the limits are exponents, so values are between {math.exp(low):.4g} and "
            f"{math.exp(high):.4g}; for values between {low} and {high} write "
            f"loguniform({math.log(low):.4g}, {math.log(high):.4g})"
        )
    return expression


def qloguniform(min_value: float, max_value: float, q: int) -> Expression:
    """round(exp(uniform(min_value, max_value)) / q) * q"""
    return ["qloguniform", [*_exponents("qloguniform", min_value, max_value), _step("qloguniform", q)]]


def normal(mu: float, sigma: float) -> Expression:
    """A normally distributed number."""
    return ["normal", [*_normal("normal", mu, sigma)]]


def qnormal(mu: float, sigma: float, q: int) -> Expression:
    """round(normal(mu, sigma) / q) * q"""
    return ["qnormal", [*_normal("qnormal", mu, sigma), _step("qnormal", q)]]


def lognormal(mu: float, sigma: float) -> Expression:
    """exp(normal(mu, sigma))"""
    return ["lognormal", [*_lognormal("lognormal", mu, sigma)]]


def qlognormal(mu: float, sigma: float, q: int) -> Expression:
    """round(exp(normal(mu, sigma)) / q) * q"""
    return ["qlognormal", [*_lognormal("qlognormal", mu, sigma), _step("qlognormal", q)]]


def _loguniform(min_value: float, max_value: float) -> Expression:
    return ["loguniform", [*_exponents("loguniform", min_value, max_value)]]


EXPRESSIONS: dict[str, Callable[..., Expression]] = {
    "choice": choice,
    "randint": randint,
    "uniform": uniform,
    "quniform": quniform,
    # Without the warning, which its author has already seen.
    "loguniform": _loguniform,
    "qloguniform": qloguniform,
    "normal": normal,
    "qnormal": qnormal,
    "lognormal": lognormal,
    "qlognormal": qlognormal,
}


def is_expression(value: Any) -> bool:
    """Whether `value` has the form of a parameter expression."""
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and isinstance(value[0], str)
        and value[0] in EXPRESSIONS
        and isinstance(value[1], list | tuple)
    )


def check_expression(name: str, value: Any) -> Expression:
    """Checks the expression of parameter `name`, which may come from a file, and returns it in its usual form."""
    if not is_expression(value):
        raise HyperDriveConfigException(
            f"parameter {name!r} must be a parameter expression, not {value!r}",
            hint=f"Write {name!r}: uniform(0.1, 0.9), for instance, or choice(...) for given values.",
        )
    kind, arguments = value
    try:
        return EXPRESSIONS[kind](*arguments)
    except TypeError:
        raise HyperDriveConfigException(
            f"parameter {name!r}: {kind} cannot have the arguments {list(arguments)!r}"
        ) from None
    except HyperDriveConfigException as error:
        raise HyperDriveConfigException(
            f"parameter {name!r}: {error.headline}", cause=error.cause, hint=error.hint
        ) from None


def _option(value: Any) -> Any:
    """`value` as plain data: numpy's scalars become Python's, tuples become lists."""
    if isinstance(value, Mapping):
        return {_name(name): _inner(_name(name), item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_scalar(item) for item in value]
    return _scalar(value)


def _inner(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        raise HyperDriveConfigException(
            f"parameter {name!r} of a choice is a dict", hint="Write choice({...}, {...}) for further parameters."
        )
    return check_expression(name, value) if is_expression(value) else _option(value)


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip("-"):
        raise HyperDriveConfigException(f"the name of a parameter must be non-empty text, not {name!r}")
    return name


def _scalar(value: Any) -> Any:
    plain = value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value
    if plain is not None and not isinstance(plain, str | int | float):
        raise HyperDriveConfigException(
            f"choice cannot have the value {value!r} of type {type(value).__name__}",
            hint="Values are numbers, text, True, False and None, or lists of them.",
        )
    if isinstance(plain, float) and not math.isfinite(plain):
        raise HyperDriveConfigException(f"choice cannot have the value {plain!r}")
    if isinstance(plain, str) and "\0" in plain:
        raise HyperDriveConfigException(f"choice has a NUL character, which a command line cannot contain: {plain!r}")
    return plain


def _check_one_kind(options: list[Any]) -> None:
    spaces = [option for option in options if isinstance(option, dict)]
    if spaces and len(spaces) < len(options):
        raise HyperDriveConfigException(
            "choice cannot have both values and dicts of further parameters",
            hint="Write every option as a dict, such as {'--optimizer': 'adam'}.",
        )


def _number(what: str, value: Any) -> float:
    try:
        if isinstance(value, bool | str):
            raise TypeError
        number = value if isinstance(value, int) else float(value)
        if not math.isfinite(number):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise HyperDriveConfigException(f"{what} must be a number, not {value!r}") from None
    return number


def _step(kind: str, q: Any) -> int:
    return checks.check_integer(f"q of {kind}", q, 1)


def _limits(kind: str, low: Any, high: Any) -> tuple[float, float]:
    return _number(f"min_value of {kind}", low), _number(f"max_value of {kind}", high)


def _range(kind: str, low: Any, high: Any) -> tuple[float, float]:
    least, most = _limits(kind, low, high)
    if not least < most:
        raise HyperDriveConfigException(f"min_value of {kind} must be less than max_value, not {least} and {most}")
    _check_size(kind, float(most) - float(least))
    return least, most


def _exponents(kind: str, low: Any, high: Any) -> tuple[float, float]:
    least, most = _limits(kind, low, high)
    if least > most:
        raise HyperDriveConfigException(
            f"min_value of {kind} must not be greater than max_value, not {least} and {most}"
        )
    if most > _MAX_EXPONENT or least < -_MAX_EXPONENT:
        raise HyperDriveConfigException(
            f"{kind}({least}, {most}): e to the power of these is too large or too small for a number",
            hint=f"The limits of {kind} are exponents: write {kind}(-6, -1) for values from 0.0025 to 0.37.",
        )
    return least, most


def _normal(kind: str, mu: Any, sigma: Any) -> tuple[float, float]:
    mean, width = _number(f"mu of {kind}", mu), _number(f"sigma of {kind}", sigma)
    if width < 0:
        raise HyperDriveConfigException(f"sigma of {kind} must not be negative, not {width}")
    _check_size(kind, abs(float(mean)) + _MAX_SIGMAS * float(width))
    return mean, width


def _check_size(kind: str, largest: float) -> None:
    if math.isinf(largest):
        raise HyperDriveConfigException(f"{kind} would produce numbers that are too large")


def _lognormal(kind: str, mu: Any, sigma: Any) -> tuple[float, float]:
    mean, width = _normal(kind, mu, sigma)
    if abs(mean) + _MAX_SIGMAS * width > _MAX_EXPONENT:
        raise HyperDriveConfigException(
            f"{kind}({mean}, {width}): e to the power of these is too large or too small for a number",
            hint=f"mu and sigma of {kind} are those of the exponent.",
        )
    return mean, width
