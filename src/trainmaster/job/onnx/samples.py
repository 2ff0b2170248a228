"""Inputs for trying a model: the sample, and similar random ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trainmaster.job.errors import OnnxException, UserErrorException
from trainmaster.job.onnx.needed import load


@dataclass(frozen=True)
class Samples:
    """NumPy arrays in the order of the model's inputs, with names if the caller gave them."""

    arrays: tuple[Any, ...]
    names: tuple[str, ...] = ()
    by_keyword: bool = False

    @property
    def batch(self) -> int | None:
        """The first dimension, if all inputs have the same one; else None."""
        sizes = {array.shape[0] if array.ndim else None for array in self.arrays}
        return sizes.pop() if len(sizes) == 1 else None


def samples_of(given: Any) -> Samples:
    """Accepts an array, a tuple or list of arrays, or a dict by name; also tensors of torch and TensorFlow."""
    if hasattr(given, "iloc") and hasattr(given, "columns"):
        # A pandas table: one input per column.
        given = {str(name): given[name].to_numpy() for name in given.columns}
    if isinstance(given, dict):
        if not given or not all(isinstance(name, str) for name in given):
            raise UserErrorException("sample_inputs: the keys of a dict must be the names of the inputs")
        names = tuple(given)
        return Samples(tuple(_array(given[name], name) for name in names), names, by_keyword=True)
    if isinstance(given, (tuple, list)) and not _is_numbers(given):
        if not given:
            raise UserErrorException("sample_inputs is empty", hint="Give one array for each input of the model.")
        return Samples(tuple(_array(each, f"number {place}") for place, each in enumerate(given)))
    return Samples((_array(given, "sample_inputs"),))


def resize(samples: Samples, batch: int) -> Samples:
    """The samples with another batch size, by repeating rows."""
    numpy = load("numpy")
    arrays = tuple(array[numpy.arange(batch) % array.shape[0]] for array in samples.arrays)
    return Samples(arrays, samples.names, samples.by_keyword)


def random_like(samples: Samples, batch: int | None, seed: int, reach: float = 0.0) -> tuple[Any, ...]:
    """Random arrays of the same types, with values in the range of the sample, as the model expects them.

    `reach` extends the range of floating-point numbers on both sides, as a fraction of its width.
    """
    numpy = load("numpy")
    draw = numpy.random.default_rng(seed)
    return tuple(_random(array, _shape(array, batch), draw, reach) for array in samples.arrays)


def _shape(array: Any, batch: int | None) -> tuple[int, ...]:
    return tuple(array.shape) if batch is None else (batch, *array.shape[1:])


def _random(array: Any, shape: tuple[int, ...], draw: Any, reach: float) -> Any:
    numpy = load("numpy")
    if array.dtype.kind in "OSU" or not array.size:
        return draw.choice(array.reshape(-1), size=shape) if array.size else numpy.zeros(shape, array.dtype)
    if array.dtype.kind == "b":
        return draw.integers(0, 2, size=shape).astype(bool)
    # A table has one range per column; a single row or an image has one range for all values.
    axis = 0 if array.ndim == 2 and array.shape[0] > 1 else None
    low, high = array.min(axis=axis), array.max(axis=axis)
    if array.dtype.kind in "iu":
        return draw.integers(low, high, size=shape, endpoint=True).astype(array.dtype)
    # One shift for all values, so that sums change too, and with them decisions that depend on sums.
    shift = draw.uniform(-reach, reach)
    spread = (draw.random(size=shape) + shift) * (high - low) + low
    flat = numpy.broadcast_to(numpy.asarray(high == low), shape)
    return numpy.where(flat, low + draw.normal(size=shape), spread).astype(array.dtype)


def _array(given: Any, name: str) -> Any:
    numpy = load("numpy")
    if hasattr(given, "detach"):
        given = given.detach().cpu()
    try:
        array = given.numpy() if hasattr(given, "numpy") else numpy.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserErrorException(f"sample_inputs ({name}) is not an array: {error}") from None
    if array.dtype.kind not in "biufOSU" or (array.dtype.kind == "O" and not _all_text(array)):
        raise UserErrorException(
            f"sample_inputs ({name}) must contain numbers, booleans or text, not {type(given).__name__} "
            f"of {array.dtype}"
        )
    return array


def _all_text(array: Any) -> bool:
    return all(isinstance(each, str) for each in array.reshape(-1))


def _is_numbers(given: Any) -> bool:
    """Whether a list is one array, such as [[1.0, 2.0], [3.0, 4.0]], and not a list of arrays."""
    while isinstance(given, (tuple, list)) and given:
        given = given[0]
    return isinstance(given, (int, float, bool, str))


def check_batch(samples: Samples) -> int:
    """The batch size of the sample, for a model with a dynamic batch. Raises OnnxException."""
    if samples.batch is None or samples.batch < 1:
        shapes = ", ".join(str(tuple(array.shape)) for array in samples.arrays)
        raise OnnxException(
            f"with dynamic_batch=True all inputs must have the batch as their first dimension, not the shapes {shapes}",
            hint="Give samples with the same batch size, or specify dynamic_batch=False.",
        )
    return samples.batch
