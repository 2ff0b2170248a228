"""Scores a TorchScript model, or a program of torch.export; what is known of its inputs was kept with the model."""

from __future__ import annotations

from typing import Any, Dict, List

import no_code_tensors as tensors
import torch

_model: tensors.Model


def init() -> None:
    """Loads the model once."""
    global _model
    known = tensors.known()
    module = _loaded(tensors.model_path(), known["kind"])
    inputs = tensors.tensors(known["inputs"]) or _inputs_of(module)
    names = [each["name"] for each in known["outputs"]]

    def compute(arrays: tensors.Arrays) -> tensors.Arrays:
        with torch.inference_mode():
            answer = module(*(torch.from_numpy(arrays[each.name].copy()) for each in inputs))
        return _named(answer, names)

    _model = tensors.Model(inputs, tensors.tensors(known["outputs"]), compute)


def run(data: Any) -> Any:
    """The answer to a request, or to each of a list of them."""
    return _model.answer(data)


def openapi() -> Dict[str, Any]:
    """What /swagger.json says of a request and its answer."""
    found: Dict[str, Any] = _model.openapi()
    if not _model.outputs:
        found["output"] = {"type": "object"}
    return found


def _loaded(path: str, kind: str) -> Any:
    if kind == "program":
        return torch.export.load(path).module()
    module = torch.jit.load(path, map_location="cpu")
    module.eval()
    return module


def _inputs_of(module: Any) -> List[tensors.Tensor]:
    """The arguments of forward that have to be given; torch does not keep their types and sizes."""
    arguments = [each for each in module.forward.schema.arguments[1:] if not each.has_default_value()]
    return [tensors.Tensor(each.name, "float32", None) for each in arguments]


def _named(answer: Any, names: List[str]) -> Dict[str, Any]:
    if isinstance(answer, dict):
        return {str(name): _array(each) for name, each in answer.items()}
    found = list(answer) if isinstance(answer, (tuple, list)) else [answer]
    if len(names) != len(found):
        names = ["output"] if len(found) == 1 else ["output_{}".format(place) for place in range(len(found))]
    return dict(zip(names, map(_array, found)))


def _array(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
