"""Random sampling: every parameter of every trial has a random number of its own."""

from __future__ import annotations

from typing import Any

from trainmaster.tuning.samplers import draw
from trainmaster.tuning.space import Branches, Constant, Node, Parameters, Space, value_at


def parameters_at(space: Space, seed: int, index: int) -> Parameters:
    """The parameters of trial `index`, whichever trials there were before."""
    return _parameters(space, (seed, index))


def _parameters(space: Space, place: tuple[Any, ...]) -> dict[str, Any]:
    return {name: _value(node, (*place, name)) for name, node in space.items()}


def _value(node: Node, place: tuple[Any, ...]) -> Any:
    if isinstance(node, Constant):
        return node.value
    u = draw.unit(*place)
    if isinstance(node, Branches):
        chosen = min(int(u * len(node.options)), len(node.options) - 1)
        return _parameters(node.options[chosen], (*place, chosen))
    return value_at(node, u)
