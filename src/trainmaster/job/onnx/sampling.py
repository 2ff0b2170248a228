"""A sample of a model's inputs: from a file, or random if the inputs are known."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.job.errors import OnnxException, UserErrorException
from trainmaster.job.onnx.needed import load

_BATCH = 2


def sample_for(model: Any, kind: str, inputs: Sequence[Mapping[str, Any]], path: str) -> Any:
    """Reads the file `path` if given; else makes random values for `inputs`, or for those that the model describes."""
    if path:
        return read_sample(path)
    if inputs:
        return {each["name"]: random_array(each["type"], each["shape"]) for each in inputs}
    found = _sample_from_model(model, kind)
    if found is None:
        raise OnnxException(
            "the inputs of the model are unknown",
            hint="Give a file with a sample (--sample x.npy), or describe the inputs: --input x:float32:batch,4",
        )
    return found


def read_sample(path: str) -> Any:
    """Reads a sample from .npy (one input), .npz (inputs by name) or .json (an array, or arrays by name)."""
    numpy = load("numpy")
    try:
        if path.endswith(".json"):
            with open(path) as file:
                return _parse_arrays(json.load(file), numpy)
        found = numpy.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UserErrorException(f"the sample {os.path.basename(path)} cannot be read", cause=str(error)) from None
    return dict(found) if hasattr(found, "files") else found


def _parse_arrays(data: Any, numpy: Any) -> Any:
    if isinstance(data, dict):
        return {name: _parse_arrays(value, numpy) for name, value in data.items()}
    array = numpy.asarray(data)
    # JSON has no types, so floating-point numbers get the usual type of models.
    return array.astype(numpy.float32) if array.dtype.kind == "f" else array


def random_array(kind: str, shape: Sequence[Any] | None) -> Any:
    """Random numbers of a type; dynamic dimensions become 2."""
    numpy = load("numpy")
    if shape is None:
        raise OnnxException("the shape of an input is unknown", hint="Describe the inputs: --input x:float32:batch,4")
    sizes = [size if isinstance(size, int) else _BATCH for size in shape]
    draw = numpy.random.default_rng(0)
    dtype = numpy.dtype(kind)
    if dtype.kind == "f":
        return draw.normal(size=sizes).astype(dtype)
    if dtype.kind == "O":
        raise OnnxException("a sample of texts cannot be random", hint="Give a file with a sample (--sample x.json).")
    # Integers may be indices, and only these two are valid for every table.
    return draw.integers(0, 2, size=sizes).astype(dtype)


def _sample_from_model(model: Any, kind: str) -> Any:
    if kind == "sklearn":
        width, names = getattr(model, "n_features_in_", None), getattr(model, "feature_names_in_", None)
        return random_array("float64", ["batch", int(width)]) if width is not None and names is None else None
    if kind == "program":
        args, kwargs = model.example_inputs
        return dict(kwargs) if kwargs else tuple(args)
    if kind == "saved_model":
        return _sample_from_signature(model)
    return None


def _sample_from_signature(folder: str) -> Any:
    tensorflow = load("tensorflow")
    signatures = dict(tensorflow.saved_model.load(folder).signatures)
    function = signatures.get("serving_default") or next(iter(signatures.values()), None)
    if function is None:
        return None
    return {
        name: random_array(spec.dtype.as_numpy_dtype.__name__, None if spec.shape.rank is None else list(spec.shape))
        for name, spec in function.structured_input_signature[1].items()
    }
