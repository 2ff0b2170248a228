"""Packages that a conversion uses, from the environment it runs in."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from trainmaster.job.errors import OnnxException

_TOGETHER = {
    "PyTorch": ("onnx", "onnxscript", "onnxruntime"),
    "TensorFlow": ("tf2onnx", "onnx", "onnxruntime"),
    "scikit-learn": ("skl2onnx", "onnx", "onnxruntime"),
}


def needed(framework: str) -> tuple[str, ...]:
    """The packages for models of a framework, beside the framework itself."""
    return _TOGETHER[framework]


def check(framework: str) -> None:
    """Refuses before any work is done, if one of the packages is not there."""
    missing, words = [], []
    for name in needed(framework):
        if name == "onnxscript" and not has_newer_exporter():
            continue
        try:
            importlib.import_module(name)
        except ImportError as error:
            missing.append(name)
            words.append(f"{name}: {error}")
    if missing:
        listed = ", ".join(repr(name) for name in missing)
        raise OnnxException(
            f"converting a model of {framework} to ONNX needs packages that are not here: {', '.join(missing)}",
            cause="\n".join(words),
            hint=f"In a job: pip_packages=[{listed}] of the estimator. Elsewhere: pip install {' '.join(missing)}.",
        )


def has_newer_exporter() -> bool:
    """Whether torch has the exporter that is written with onnxscript (since 2.5); older ones export without."""
    parameters = inspect.signature(load("torch.onnx").export).parameters
    return "dynamo" in parameters and "external_data" in parameters


def load(name: str) -> Any:
    """A module by its full name; `check` has seen that it is there."""
    return importlib.import_module(name)
