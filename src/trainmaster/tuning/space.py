"""The space of a sweep: parameters by name, each an expression, a constant, or branches of further parameters."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

from trainmaster.job.errors import HyperDriveConfigException
from trainmaster.tuning.parameter_expressions import check_expression, is_expression

Parameters = Mapping[str, Any]
"""The values of one trial by the names of the space; the value of branches is a dict."""


@dataclass(frozen=True)
class Leaf:
    """A parameter with a single value."""

    kind: str
    arguments: tuple[Any, ...]

    @cached_property
    def options(self) -> tuple[Any, ...]:
        """`choice` only: the values, each once."""
        return tuple({json.dumps(option): option for option in self.arguments[0]}.values())


@dataclass(frozen=True)
class Branches:
    """A parameter whose value is one of several sets of further parameters."""

    options: tuple[Mapping[str, Node], ...]


@dataclass(frozen=True)
class Constant:
    """A parameter in a branch that always has the same value."""

    value: Any


Node = Leaf | Branches | Constant
Space = Mapping[str, Node]


def read_space(data: Mapping[str, Any]) -> dict[str, Node]:
    """Reads a space in v1's form; raises an error for anything else."""
    if not isinstance(data, Mapping) or not data:
        raise HyperDriveConfigException(
            f"parameter_space must be a non-empty dict of parameter expressions, not {data!r}",
            hint="Write {'--lr': loguniform(-6, -1), '--batch-size': choice(16, 32)}.",
        )
    for name in data:
        if not isinstance(name, str) or not name.strip("-"):
            raise HyperDriveConfigException(f"the name of a parameter must be non-empty text, not {name!r}")
    space = {name: _node(check_expression(name, value)) for name, value in data.items()}
    _check_names(space)
    return space


def plain_space(data: Mapping[str, Any]) -> dict[str, Any]:
    """Checks a space and returns it as JSON data."""
    read_space(data)
    return {name: check_expression(name, value) for name, value in data.items()}


def leaves(space: Space) -> Iterator[tuple[str, Leaf]]:
    """All leaves with their names, including those of branches."""
    for name, node in space.items():
        if isinstance(node, Leaf):
            yield name, node
        elif isinstance(node, Branches):
            for option in node.options:
                yield from leaves(option)


def is_conditional(space: Space) -> bool:
    """Whether some parameters exist only for certain values of others."""
    return any(isinstance(node, Branches) for node in space.values())


def flat(parameters: Parameters) -> dict[str, Any]:
    """The values by the names of arguments; those of branches are on the same level."""
    found: dict[str, Any] = {}
    for name, value in parameters.items():
        found.update(flat(value) if isinstance(value, Mapping) else {name: value})
    return found


def value_at(leaf: Leaf, u: float) -> Any:
    """Maps `u`, which is uniformly distributed between 0 and 1, to the distribution of `leaf`."""
    kind, arguments = leaf.kind, leaf.arguments
    if kind == "choice":
        return arguments[0][_index(u, len(arguments[0]))]
    if kind == "randint":
        return _index(u, arguments[0])
    base = kind.removeprefix("q")
    number = _BASES[base](u, arguments[0], arguments[1])
    return round_to(number, arguments[2]) if kind.startswith("q") else number


def round_to(number: float, q: int) -> int:
    """The multiple of `q` nearest to `number`; an integer, which scripts can read as int or float."""
    return round(number / q) * q


def branch_of(branches: Branches, value: Any) -> int | None:
    """The number of the branch to which the recorded `value` belongs."""
    if not isinstance(value, Mapping):
        return None
    return next((n for n, option in enumerate(branches.options) if _admits(option, value)), None)


def _admits(option: Space, value: Parameters) -> bool:
    return set(option) == set(value) and all(_may_be(node, value[name]) for name, node in option.items())


def _may_be(node: Node, value: Any) -> bool:
    if isinstance(node, Constant):
        return bool(node.value == value)
    if isinstance(node, Branches):
        return branch_of(node, value) is not None
    return node.kind != "choice" or value in node.arguments[0]


def _index(u: float, size: int) -> int:
    return min(int(u * size), size - 1)


def _uniform(u: float, low: float, high: float) -> float:
    return min(max(low + u * (high - low), low), high)


def _normal(u: float, mu: float, sigma: float) -> float:
    return NormalDist(mu, sigma).inv_cdf(u) if sigma else mu


_BASES: dict[str, Callable[[float, float, float], float]] = {
    "uniform": _uniform,
    "loguniform": lambda u, low, high: math.exp(_uniform(u, low, high)),
    "normal": _normal,
    "lognormal": lambda u, mu, sigma: math.exp(_normal(u, mu, sigma)),
}


def _node(expression: Any) -> Node:
    if not is_expression(expression):
        return Constant(expression)
    kind, arguments = expression
    if kind == "choice" and isinstance(arguments[0][0], Mapping):
        return Branches(tuple({name: _node(item) for name, item in option.items()} for option in arguments[0]))
    return Leaf(kind, tuple(arguments))


def _check_names(space: Space) -> None:
    """Raises an error for names that would set the same argument twice."""
    seen: dict[str, str] = {}
    for group in (_names(name, node) for name, node in space.items()):
        for name in group:
            stem = name.lstrip("-")
            if stem in seen:
                raise HyperDriveConfigException(
                    f"the parameter {name!r} occurs twice" + (f", also as {seen[stem]!r}" * (seen[stem] != name)),
                    hint="Leading dashes do not make names different.",
                )
        seen.update({name.lstrip("-"): name for name in group})


def _names(name: str, node: Node) -> set[str]:
    if not isinstance(node, Branches):
        return {name}
    for option in node.options:
        _check_names(option)
    return {inner for option in node.options for key, item in option.items() for inner in _names(key, item)}
