"""Scores an ONNX model with ONNX Runtime; its inputs and outputs are those of the graph."""

from __future__ import annotations

from typing import Any, Dict

import no_code_tensors as tensors
import onnx_messages
import onnxruntime

_TYPES = {
    "tensor(float)": "float32", "tensor(double)": "float64", "tensor(float16)": "float16", "tensor(string)": "object",
    "tensor(bool)": "bool", "tensor(int8)": "int8", "tensor(int16)": "int16", "tensor(int32)": "int32",
    "tensor(int64)": "int64", "tensor(uint8)": "uint8", "tensor(uint16)": "uint16", "tensor(uint32)": "uint32",
    "tensor(uint64)": "uint64",
}  # fmt: skip

_model: tensors.Model


def init() -> None:
    """Load the model once."""
    global _model
    options = onnxruntime.SessionOptions()
    # Threads that spin while waiting would take CPU time from other replicas.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(
        tensors.model_path(), options, providers=onnxruntime.get_available_providers()
    )
    names = [each.name for each in session.get_outputs()]

    def compute(arrays: tensors.Arrays) -> tensors.Arrays:
        return dict(zip(names, session.run(names, arrays)))

    inputs = [_tensor(each) for each in session.get_inputs()]
    _model = tensors.Model(inputs, [_tensor(each) for each in session.get_outputs()], compute)


def run(data: Any) -> Any:
    """Answer a request, or each of a list of requests."""
    return onnx_messages.answer(_model, data)


def openapi() -> Dict[str, Any]:
    """The schemas of requests and answers for /swagger.json."""
    found: Dict[str, Any] = _model.openapi()
    return found


def _tensor(end: Any) -> tensors.Tensor:
    if end.type not in _TYPES:
        raise ValueError("{} of the model is a {}, which cannot be written as JSON".format(end.name, end.type))
    return tensors.Tensor(end.name, _TYPES[end.type], end.shape)
