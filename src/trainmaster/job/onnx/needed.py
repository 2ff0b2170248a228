"""The packages that a conversion needs from its environment."""

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


def packages_for(framework: str) -> tuple[str, ...]:
    """The packages that models of a framework need besides the framework itself."""
    return _TOGETHER[framework]


def check(framework: str) -> None:
    """Raises OnnxException if one of the packages is missing, before any work is done."""
    missing, words = [], []
    for name in packages_for(framework):
        if name == "onnxscript" and not has_newer_exporter():
            continue
        try:
            importlib.import_module(name)
        except ImportError as error:
            missing.append(name)
            words.append(f"{name}: {error}")
    if missing:
        names = ", ".join(repr(name) for name in missing)
        raise OnnxException(
            f"packages for converting a {framework} model to ONNX are missing: {', '.join(missing)}",
            cause="\n".join(words),
            hint=f"In a job, add pip_packages=[{names}] to the estimator. Elsewhere: pip install {' '.join(missing)}.",
        )


def has_newer_exporter() -> bool:
    """Whether torch has the exporter that needs onnxscript (since 2.5)."""
    parameters = inspect.signature(load("torch.onnx").export).parameters
    return "dynamo" in parameters and "external_data" in parameters


def load(name: str) -> Any:
    """Imports a module by its full name; `check` makes sure that it is installed."""
    return importlib.import_module(name)
