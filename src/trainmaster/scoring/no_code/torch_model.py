"""Scores a TorchScript model or a torch.export program; the description of its inputs is stored with the model."""

from __future__ import annotations

from typing import Any, Dict, List, Union

import no_code_tensors as tensors
import torch

_model: tensors.Model


def init() -> None:
    """Load the model once."""
    global _model
    known = tensors.read_facts()
    if known["kind"] == "program":
        program = torch.export.load(tensors.model_path())
        module, inputs = program.module(), _inputs_of_program(program)
    else:
        module = torch.jit.load(tensors.model_path(), map_location="cpu").eval()
        inputs = _inputs_of_script(module)
    inputs = tensors.tensors(known["inputs"]) or inputs
    names = [each["name"] for each in known["outputs"]]

    def compute(arrays: tensors.Arrays) -> tensors.Arrays:
        with torch.inference_mode():
            answer = module(*(torch.from_numpy(arrays[each.name].copy()) for each in inputs))
        return _name_outputs(answer, names)

    _model = tensors.Model(inputs, tensors.tensors(known["outputs"]), compute)


def run(data: Any) -> Any:
    """Answer a request, or each of a list of requests."""
    return _model.answer(data)


def openapi() -> Dict[str, Any]:
    """The schemas of requests and answers for /swagger.json."""
    found: Dict[str, Any] = _model.openapi()
    if not _model.outputs:
        found["output"] = {"type": "object"}
    return found


def _inputs_of_program(program: Any) -> List[tensors.Tensor]:
    """The inputs of the exported program; variable sizes are symbols."""
    found = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
    return [_tensor(name, found[name]) for name in program.graph_signature.user_inputs]


def _tensor(name: str, seen: Any) -> tensors.Tensor:
    sizes = [_size(place, size) for place, size in enumerate(seen.shape)]
    return tensors.Tensor(name, str(seen.dtype).partition(".")[2], sizes)


def _size(place: int, size: Any) -> Union[int, str]:
    if isinstance(size, int):
        return size
    return "batch" if place == 0 else str(size)


def _inputs_of_script(module: Any) -> List[tensors.Tensor]:
    """The required arguments of forward; torch does not store their types and sizes."""
    arguments = [each for each in module.forward.schema.arguments[1:] if not each.has_default_value()]
    return [tensors.Tensor(each.name, "float32", None) for each in arguments]


def _name_outputs(answer: Any, names: List[str]) -> Dict[str, Any]:
    if isinstance(answer, dict):
        return {str(name): _array(each) for name, each in answer.items()}
    found = list(answer) if isinstance(answer, (tuple, list)) else [answer]
    if len(names) != len(found):
        names = ["output"] if len(found) == 1 else ["output_{}".format(place) for place in range(len(found))]
    return dict(zip(names, map(_array, found)))


def _array(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
