"""Loads a model from its file, in the environment that has its framework."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainmaster.job.errors import OnnxException
from trainmaster.job.onnx.source import words_of


def load_model(kind: str, path: str) -> Any:
    """Loads a model. `kind` is one of `sdk/services/no_code/kinds.py`, or `torch` for a file of torch.save."""
    try:
        return _LOADERS[kind](path)
    except OnnxException:
        raise
    except ImportError as error:
        raise OnnxException(
            "the model cannot be loaded: a module that it needs is missing",
            cause=words_of(error),
            hint="Specify the folder of its training code (--code), or additional packages (--pip).",
        ) from error
    except AttributeError as error:
        raise OnnxException(
            "the model cannot be loaded: a class of one of its parts was not found",
            cause=words_of(error),
            hint="A class that is defined in the training script itself (__main__) cannot be found later. Move it to a "
            "separate module, or call trainmaster.onnx.export in the script.",
        ) from error
    except Exception as error:
        raise OnnxException("the model cannot be loaded", cause=words_of(error)) from error


def _load_torchscript(path: str) -> Any:
    import torch

    return torch.jit.load(path, map_location="cpu")


def _load_program(path: str) -> Any:
    import torch

    return torch.export.load(path)


def _load_pickled_module(path: str) -> Any:
    import torch

    try:
        found = torch.load(path, map_location="cpu", weights_only=False)
    except TypeError:
        # Releases before 1.13 do not have this parameter.
        found = torch.load(path, map_location="cpu")
    if not isinstance(found, torch.nn.Module):
        raise OnnxException(
            f"the file contains a {type(found).__name__} instead of a model",
            cause="Weights alone (state_dict) do not describe the computation.",
            hint="Save the module itself or torch.jit.script(model), or call trainmaster.onnx.export in the script.",
        )
    return found


def _load_pickle(path: str) -> Any:
    try:
        import joblib
    except ImportError:
        import pickle

        with open(path, "rb") as file:
            return pickle.load(file)
    return joblib.load(path)


_LOADERS: dict[str, Callable[[str], Any]] = {
    "torchscript": _load_torchscript,
    "program": _load_program,
    "torch": _load_pickled_module,
    "sklearn": _load_pickle,
    # The export loads it from its folder.
    "saved_model": lambda path: path,
}
