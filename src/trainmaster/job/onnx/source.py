"""The seam to the frameworks: a model that can be run and written, and how its kind is known."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import OnnxException, UserErrorException

if TYPE_CHECKING:
    from typing import Protocol

    from trainmaster.job.onnx.samples import Samples

    class Source(Protocol):
        """A model with its sample."""

        framework: str
        version: str
        samples: Samples
        """As the model takes them."""

        def input_names(self) -> list[str]:
            """Names for the inputs, if the caller has none."""

        def output_names(self, outputs: Sequence[Any]) -> list[str]:
            """Names for the outputs, if the caller has none."""

        def run(self, arrays: Sequence[Any]) -> list[Any]:
            """The model's own answers, as arrays of NumPy."""

        def write(self, path: str, wish: Wish) -> Written:
            """Converts it to the file `path`."""


@dataclass(frozen=True)
class Wish:
    """How the file is to be."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dynamic_batch: bool
    opset: int | None


@dataclass(frozen=True)
class Written:
    """What wrote it, and what there is to say about that."""

    exporter: str
    notes: tuple[str, ...] = ()


def source_of(framework: str, model: Any, samples: Samples) -> Source:
    """The model of a framework with its sample. Only that framework is imported."""
    if framework == "PyTorch":
        from trainmaster.job.onnx.torch_source import TorchSource

        return TorchSource(model, samples)
    if framework == "TensorFlow":
        from trainmaster.job.onnx.tensorflow_source import TensorFlowSource

        return TensorFlowSource(model, samples)
    from trainmaster.job.onnx.sklearn_source import SklearnSource

    return SklearnSource(model, samples)


def framework_of(model: Any) -> str:
    """The framework whose object `model` is. Looks at types alone, and imports nothing."""
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
        cause="What can: a torch.nn.Module, a torch.export program, a tf.function, a Keras model, "
        "the folder of a SavedModel, an estimator of scikit-learn.",
        hint="A plain function of torch fits into the forward of a Module; one of TensorFlow into tf.function(it).",
    )


def _framework_of_path(path: str) -> str:
    if os.path.isfile(os.path.join(path, "saved_model.pb")):
        return "TensorFlow"
    raise UserErrorException(
        f"{path} is not the folder of a SavedModel (there is no saved_model.pb in it)",
        hint="Load other models in the program and give the object.",
    )


def words_of(error: BaseException) -> str:
    """What went wrong first, without the advice that others wrapped it in."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {str(error).strip()[:800]}"


def cannot_run(arrays: Sequence[Any], error: Exception) -> OnnxException:
    """The error of a model that fails by itself, before anything is converted."""
    shapes = ", ".join(str(tuple(array.shape)) for array in arrays)
    return OnnxException(
        f"the model itself cannot be run on inputs of {shapes}",
        cause=words_of(error),
        hint="Give sample_inputs as the model takes them; dynamic_batch=False if its batch is fixed.",
    )


def numbered(word: str, count: int) -> list[str]:
    """Names for `count` things.

    >>> numbered("output", 1), numbered("output", 2)
    (['output'], ['output_0', 'output_1'])
    """
    return [word] if count == 1 else [f"{word}_{place}" for place in range(count)]
