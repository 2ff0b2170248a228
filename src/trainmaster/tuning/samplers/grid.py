"""Grid sampling: every combination once; the last parameter changes fastest."""

from __future__ import annotations

from math import prod
from typing import Any

from trainmaster.tuning.space import Branches, Constant, Leaf, Node, Parameters, Space


def size(space: Space) -> int:
    """The number of combinations.

    >>> size({"a": Leaf("choice", ([1, 2, 3],)), "b": Leaf("choice", (["x", "y"],))})
    6
    """
    return prod(_size(node) for node in space.values())


def parameters_at(space: Space, index: int) -> Parameters | None:
    """Combination `index`; None if there are fewer."""
    return _combination(space, index) if index < size(space) else None


def _combination(space: Space, index: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, node in reversed(list(space.items())):
        index, digit = divmod(index, _size(node))
        found[name] = _value(node, digit)
    return {name: found[name] for name in space}


def _size(node: Node) -> int:
    if isinstance(node, Constant):
        return 1
    if isinstance(node, Branches):
        return sum(size(option) for option in node.options)
    return len(node.options)


def _value(node: Node, digit: int) -> Any:
    if isinstance(node, Constant):
        return node.value
    if isinstance(node, Leaf):
        return node.options[digit]
    for option in node.options:
        if digit < size(option):
            return _combination(option, digit)
        digit -= size(option)
    raise IndexError(digit)
