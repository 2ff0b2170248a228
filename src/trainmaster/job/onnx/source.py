"""What the sources of all frameworks have in common: a source runs a model and converts it to a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import OnnxException

if TYPE_CHECKING:
    from typing import Protocol

    from trainmaster.job.onnx.samples import Samples

    class Source(Protocol):
        """A model with its sample inputs."""

        framework: str
        version: str
        samples: Samples
        """In the form that the model accepts."""

        def input_names(self) -> list[str]:
            """Default names of the inputs."""

        def output_names(self, outputs: Sequence[Any]) -> list[str]:
            """Default names of the outputs."""

        def run(self, arrays: Sequence[Any]) -> list[Any]:
            """The model's own answers, as NumPy arrays."""

        def write(self, path: str, wish: Wish) -> Written:
            """Converts the model to the file `path`."""


@dataclass(frozen=True)
class Wish:
    """What the file should be like."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dynamic_batch: bool
    opset: int | None


@dataclass(frozen=True)
class Written:
    """The program that wrote the file, and remarks about it."""

    exporter: str
    notes: tuple[str, ...] = ()


def words_of(error: BaseException) -> str:
    """The original error, without those that were raised from it."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {str(error).strip()[:800]}"


def cannot_run(arrays: Sequence[Any], error: Exception) -> OnnxException:
    """The error for a model that fails on its own, before it is converted."""
    shapes = ", ".join(str(tuple(array.shape)) for array in arrays)
    return OnnxException(
        f"the model itself fails on inputs of shape {shapes}",
        cause=words_of(error),
        hint="Give sample_inputs that the model accepts. If its batch size is fixed, specify dynamic_batch=False.",
    )


def number_names(word: str, count: int) -> list[str]:
    """Names for `count` inputs or outputs.

    >>> number_names("output", 1), number_names("output", 2)
    (['output'], ['output_0', 'output_1'])
    """
    return [word] if count == 1 else [f"{word}_{place}" for place in range(count)]
