"""Which framework a model belongs to, and the source for it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import UserErrorException

if TYPE_CHECKING:
    from trainmaster.job.onnx.samples import Samples
    from trainmaster.job.onnx.source import Source


def source_of(framework: str, model: Any, samples: Samples) -> Source:
    """The source for a model of a framework. Imports only that framework."""
    if framework == "PyTorch":
        from trainmaster.job.onnx.torch_source import TorchSource

        return TorchSource(model, samples)
    if framework == "TensorFlow":
        from trainmaster.job.onnx.tensorflow_source import TensorFlowSource

        return TensorFlowSource(model, samples)
    from trainmaster.job.onnx.sklearn_source import SklearnSource

    return SklearnSource(model, samples)


def framework_of(model: Any) -> str:
    """The framework of a model, by its type; imports nothing."""
    if isinstance(model, (str, os.PathLike)):
        return _framework_of_path(os.fspath(model))
    roots = {kind.__module__.partition(".")[0] for kind in type(model).__mro__}
    names = {kind.__name__ for kind in type(model).__mro__}
    if "torch" in roots and names & {"Module", "ExportedProgram"}:
        return "PyTorch"
    if roots & {"tensorflow", "keras", "tf_keras"} and callable(model):
        return "TensorFlow"
    if "sklearn" in roots and "BaseEstimator" in names:
        return "scikit-learn"
    raise UserErrorException(
        f"a {type(model).__module__}.{type(model).__name__} cannot be converted to ONNX",
        cause="Supported: a torch.nn.Module, a torch.export program, a tf.function, a Keras model, "
        "the folder of a SavedModel, an estimator of scikit-learn.",
        hint="Put a function of torch into the forward of a Module, and one of TensorFlow into tf.function(it).",
    )


def _framework_of_path(path: str) -> str:
    if os.path.isfile(os.path.join(path, "saved_model.pb")):
        return "TensorFlow"
    raise UserErrorException(
        f"{path} is not the folder of a SavedModel: it contains no saved_model.pb",
        hint="For other models, load the model and pass the object.",
    )
