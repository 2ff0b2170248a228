"""Small changes to an ONNX graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

BATCH = "batch"


def rename(graph: Any, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Renames the inputs and outputs of a graph, wherever their names occur."""
    names = dict(zip((each.name for each in graph.input), inputs))
    names.update(zip((each.name for each in graph.output), outputs))
    wanted = {new for old, new in names.items() if new != old}
    taken = _names_in(graph) - set(names)
    # An inner value that already has a wanted name is renamed too.
    names.update({name: _free(name, taken | wanted) for name in taken & wanted})
    _rename_all(graph, names)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_inside"
    return name


def name_batch(graph: Any, outputs: Sequence[bool]) -> None:
    """Names the first dimension `batch`, of inputs where it is dynamic, and of the outputs with a true flag."""
    marked = [(each, True) for each in graph.input] + list(zip(graph.output, outputs))
    for value, has_batch in marked:
        sizes = value.type.tensor_type.shape.dim
        if has_batch and len(sizes) and not sizes[0].HasField("dim_value"):
            sizes[0].dim_param = BATCH


def forget_shapes(graph: Any) -> None:
    """Removes the shapes of inner values: the quantization of ONNX Runtime fails on some of them."""
    del graph.value_info[:]


def _names_in(graph: Any) -> set[str]:
    found = {name for node in graph.node for name in (*node.input, *node.output)}
    found |= {each.name for each in graph.initializer}
    for node in graph.node:
        for inner in _inner(node):
            found |= _names_in(inner)
    return found


def _rename_all(graph: Any, names: dict[str, str]) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = names.get(value.name, value.name)
    for node in graph.node:
        for part in (node.input, node.output):
            for place, name in enumerate(part):
                part[place] = names.get(name, name)
        for inner in _inner(node):
            _rename_all(inner, names)


def _inner(node: Any) -> list[Any]:
    """The graphs in a node, such as the branches of an If."""
    return [each.g for each in node.attribute if each.HasField("g")] + [
        inner for each in node.attribute for inner in each.graphs
    ]
