"""Scores a SavedModel of TensorFlow by its signature for serving; its inputs and outputs are those of the signature."""

from __future__ import annotations

from typing import Any, Dict

import no_code_tensors as tensors
import tensorflow

_SERVING = "serving_default"

_loaded: Any
_model: tensors.Model


def init() -> None:
    """Load the model once."""
    global _loaded, _model
    # Keeps the variables alive.
    _loaded = tensorflow.saved_model.load(tensors.model_path())
    signatures = dict(_loaded.signatures)
    if not signatures:
        raise ValueError("the SavedModel has no serving signature")
    function = signatures.get(_SERVING) or next(iter(signatures.values()))

    def compute(arrays: tensors.Arrays) -> tensors.Arrays:
        answer = function(**{name: tensorflow.constant(array) for name, array in arrays.items()})
        return {name: each.numpy() for name, each in answer.items()}

    inputs = [_tensor(name, each) for name, each in sorted(function.structured_input_signature[1].items())]
    outputs = [_tensor(name, each) for name, each in sorted(function.structured_outputs.items())]
    _model = tensors.Model(inputs, outputs, compute)


def run(data: Any) -> Any:
    """Answer a request, or each of a list of requests."""
    return _model.answer(data)


def openapi() -> Dict[str, Any]:
    """The schemas of requests and answers for /swagger.json."""
    found: Dict[str, Any] = _model.openapi()
    return found


def _tensor(name: str, spec: Any) -> tensors.Tensor:
    if spec.shape.rank is None:
        return tensors.Tensor(name, _type(spec), None)
    sizes = [size if size is not None or place else "batch" for place, size in enumerate(spec.shape)]
    return tensors.Tensor(name, _type(spec), sizes)


def _type(spec: Any) -> str:
    return "object" if spec.dtype == tensorflow.string else str(spec.dtype.as_numpy_dtype.__name__)
