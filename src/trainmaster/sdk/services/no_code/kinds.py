"""The kind of a model, by its registered framework and its files."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.job.errors import WebserviceException
from trainmaster.job.script.model_rules import Framework
from trainmaster.sdk.services.no_code.mlflow_files import check_flavour, find_folder

if TYPE_CHECKING:
    from trainmaster.sdk.models.model import Model

_PICKLES = (".pkl", ".pickle", ".joblib", ".sav")
_TORCH = (".pt", ".pth", ".pt2", ".ts", ".torchscript", ".bin")


class Kind(StrEnum):
    """A kind of model with one way to answer requests, whatever program made it."""

    ONNX = "onnx"
    SKLEARN = "sklearn"
    TORCHSCRIPT = "torchscript"
    TORCH_PROGRAM = "program"
    TORCH_PICKLE = "torch"
    """A file of torch.save. It can be converted if its classes can be imported, but not served without code."""
    SAVED_MODEL = "saved_model"
    MLFLOW = "mlflow"
    """A folder in MLflow's format, with the flavour python_function."""


@dataclass(frozen=True)
class Recognised:
    """The kind of a model, and the file or folder that determines it."""

    kind: Kind
    path: str


def recognise(model: Model) -> Recognised:
    """The kind of a model. Raises WebserviceException with a hint if it is not clear."""
    files = [file.path for file in model.manifest().files]
    framework = model.model_framework or ""
    saved = [path for path in files if path.rpartition("/")[2] == "saved_model.pb"]
    found = _one(files, (".onnx",))
    if found and framework in ("", Framework.ONNX):
        return Recognised(Kind.ONNX, found)
    folder = find_folder(files)
    if folder is not None and framework in ("", Framework.CUSTOM):
        check_flavour(model.id, model.materialise() / folder)
        return Recognised(Kind.MLFLOW, folder)
    if len(saved) == 1 and "/" in saved[0] and framework in ("", Framework.TENSORFLOW, Framework.TFKERAS):
        return Recognised(Kind.SAVED_MODEL, saved[0].rpartition("/")[0])
    if framework == Framework.SCIKITLEARN:
        found = _one(files, _PICKLES) or (files[0] if len(files) == 1 else "")
        if found:
            return Recognised(Kind.SKLEARN, found)
    file = torch_file(model)
    if file is None:
        raise _unknown(model, files)
    if file.kind is Kind.TORCH_PICKLE:
        raise WebserviceException(
            f"model {model.id} cannot be deployed without code: {file.path} was written by torch.save",
            cause="Loading this file needs the class of the model.",
            hint="Save it with torch.jit.script(model).save(path), convert it "
            f"('trainmaster models to-onnx {model.name}'), or give an InferenceConfig with a scoring script.",
        )
    return file


def torch_file(model: Model) -> Recognised | None:
    """The PyTorch file of a model, if it has one."""
    if (model.model_framework or Framework.PYTORCH) != Framework.PYTORCH:
        return None
    path = _one([file.path for file in model.manifest().files], _TORCH)
    return Recognised(torch_kind(model.materialise() / path), path) if path else None


def torch_kind(path: Path) -> Kind:
    """The kind of a PyTorch file, by the contents of the archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return Kind.TORCH_PICKLE
    inside = {name.partition("/")[2] for name in names}
    if any(name.startswith("code/") for name in inside):
        return Kind.TORCHSCRIPT
    if any(name.startswith("models/") and name.endswith(".json") for name in inside) or (
        "serialized_exported_program.json" in {*inside, *names}
    ):
        return Kind.TORCH_PROGRAM
    return Kind.TORCH_PICKLE


def _one(files: list[str], endings: tuple[str, ...]) -> str:
    """The only file with such a name; empty if there is none, or more than one."""
    found = [path for path in files if path.lower().endswith(endings)]
    return found[0] if len(found) == 1 else ""


def _unknown(model: Model, files: list[str]) -> WebserviceException:
    shown = ", ".join(files[:5]) + (" ..." if len(files) > 5 else "")
    return WebserviceException(
        f"model {model.id} cannot be used without code: its kind is not clear",
        cause=f"Its framework is {model.model_framework or 'unknown'}, its files are {shown}. Kinds without code are "
        "one ONNX file, an estimator of scikit-learn (pickle or joblib), TorchScript, a program of torch.export, "
        "the folder of a SavedModel, or a model in MLflow's format.",
        hint="Register it with model_framework='ScikitLearn' (or 'Onnx', 'PyTorch', 'TensorFlow'); "
        "to deploy it, you can also write a scoring script.",
    )
