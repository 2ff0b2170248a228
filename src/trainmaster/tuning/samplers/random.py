"""Random sampling: each parameter of each trial has its own random number."""

from __future__ import annotations

from typing import Any

from trainmaster.tuning.samplers import draw
from trainmaster.tuning.space import Branches, Constant, Node, Parameters, Space, value_at


def parameters_at(space: Space, seed: int, index: int) -> Parameters:
    """The parameters of trial `index`, which do not depend on other trials."""
    return _parameters(space, (seed, index))


def _parameters(space: Space, path: tuple[Any, ...]) -> dict[str, Any]:
    return {name: _value(node, (*path, name)) for name, node in space.items()}


def _value(node: Node, path: tuple[Any, ...]) -> Any:
    if isinstance(node, Constant):
        return node.value
    u = draw.unit(*path)
    if isinstance(node, Branches):
        chosen = min(int(u * len(node.options)), len(node.options) - 1)
        return _parameters(node.options[chosen], (*path, chosen))
    return value_at(node, u)
