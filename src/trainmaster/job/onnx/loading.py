"""A model out of its file, in the environment that has its framework."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainmaster.job.errors import OnnxException
from trainmaster.job.onnx.source import words_of


def load_model(kind: str, path: str) -> Any:
    """The model of a kind (as `sdk/services/no_code/kinds.py` has them, and `torch` for a file of torch.save)."""
    try:
        return _LOADERS[kind](path)
    except OnnxException:
        raise
    except ImportError as error:
        raise OnnxException(
            "the model cannot be loaded: a module that it needs is not here",
            cause=words_of(error),
            hint="Give the folder of the code it was trained with (--code), or further packages (--pip).",
        ) from error
    except AttributeError as error:
        raise OnnxException(
            "the model cannot be loaded: the class of a part of it is not where it was",
            cause=words_of(error),
            hint="A class that stands in the training script itself (__main__) cannot be found again. Move it to a "
            "module of its own, or call trainmaster.onnx.export in the script.",
        ) from error
    except Exception as error:
        raise OnnxException("the model cannot be loaded", cause=words_of(error)) from error


def _script(path: str) -> Any:
    import torch

    return torch.jit.load(path, map_location="cpu")


def _program(path: str) -> Any:
    import torch

    return torch.export.load(path)


def _saved(path: str) -> Any:
    import torch

    try:
        found = torch.load(path, map_location="cpu", weights_only=False)
    except TypeError:
        # Releases before 1.13 have no such parameter.
        found = torch.load(path, map_location="cpu")
    if not isinstance(found, torch.nn.Module):
        raise OnnxException(
            f"the file holds a {type(found).__name__} and no model",
            cause="Weights alone (state_dict) do not say how to compute with them.",
            hint="Save the module itself or torch.jit.script(model), or call trainmaster.onnx.export in the script.",
        )
    return found


def _pickle(path: str) -> Any:
    try:
        import joblib
    except ImportError:
        import pickle

        with open(path, "rb") as file:
            return pickle.load(file)
    return joblib.load(path)


_LOADERS: dict[str, Callable[[str], Any]] = {
    "torchscript": _script,
    "program": _program,
    "torch": _saved,
    "sklearn": _pickle,
    # By its folder: the export opens it.
    "saved_model": lambda path: path,
}
