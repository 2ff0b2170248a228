"""Compares the answers of a model and of its ONNX file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster.job.errors import OnnxException
from trainmaster.job.onnx.needed import load


@dataclass(frozen=True)
class Difference:
    """The largest difference of one or more comparisons, and the first one beyond the tolerance."""

    absolute: float = 0.0
    relative: float = 0.0
    excess: str = ""

    def __or__(self, other: Difference) -> Difference:
        """The larger of the two; keeps the first excess."""
        return Difference(
            max(self.absolute, other.absolute), max(self.relative, other.relative), self.excess or other.excess
        )


def compare(expected: Sequence[Any], got: Sequence[Any], names: Sequence[str], tolerance: float) -> Difference:
    """Compares output by output. Numbers may differ by `tolerance * (1 + |expected|)`, other values not at all."""
    if len(expected) != len(got):
        return Difference(excess=f"the model has {len(expected)} outputs, the ONNX file {len(got)}")
    difference = Difference()
    for one, other, name in zip(expected, got, names):
        difference |= _compare(one, other, name, tolerance)
    return difference


def _compare(expected: Any, got: Any, name: str, tolerance: float) -> Difference:
    numpy = load("numpy")
    expected, got = numpy.asarray(expected), numpy.asarray(got)
    if got.shape == (*expected.shape, 1):
        # A column instead of a flat array.
        got = got.reshape(expected.shape)
    if expected.shape != got.shape:
        return Difference(excess=f"output {name} has the shape {got.shape} instead of {expected.shape}")
    if expected.dtype.kind not in "f" and got.dtype.kind not in "f":
        return _compare_exactly(expected, got, name, numpy)
    expected, got = expected.astype(numpy.float64), got.astype(numpy.float64)
    same = (expected == got) | (numpy.isnan(expected) & numpy.isnan(got))
    finite = numpy.isfinite(expected) & numpy.isfinite(got)
    if not (same | finite).all():
        return Difference(float("inf"), float("inf"), f"output {name} is not finite where the other is")
    with numpy.errstate(invalid="ignore"):
        apart = numpy.abs(numpy.where(same, 0.0, expected - got))
    sizes = numpy.abs(numpy.where(finite, expected, 0.0))
    largest = float(apart.max()) if apart.size else 0.0
    scale = float(sizes.max()) if sizes.size else 0.0
    excess = ""
    if (apart > tolerance * (1.0 + sizes)).any():
        place = numpy.unravel_index(int(apart.argmax()), apart.shape)
        at = ", ".join(str(int(n)) for n in place)
        excess = f"output {name} at [{at}] is {_instead(float(got[place]), float(expected[place]))}"
    return Difference(largest, largest / scale if scale else largest, excess)


def _instead(got: float, expected: float) -> str:
    """Both numbers, with enough digits to show the difference."""
    digits = 6 if f"{got:.6g}" != f"{expected:.6g}" else 17
    return f"{got:.{digits}g} instead of {expected:.{digits}g}"


def _compare_exactly(expected: Any, got: Any, name: str, numpy: Any) -> Difference:
    if expected.dtype.kind in "OSU":
        expected, got = expected.astype(str), got.astype(str)
    wrong = expected != got
    if not wrong.any():
        return Difference()
    place = tuple(int(n[0]) for n in numpy.nonzero(wrong))
    share = float(wrong.mean())
    return Difference(
        1.0, share, f"output {name} differs in {int(wrong.sum())} of {wrong.size} values: {got[place]} instead of "
        f"{expected[place]}"
    )  # fmt: skip


def anything_finite(outputs: Sequence[Any]) -> bool:
    """Whether there is something to compare: two different models that return NaN look alike."""
    numpy = load("numpy")
    found = [numpy.asarray(each) for each in outputs]
    return any(each.size and (each.dtype.kind != "f" or bool(numpy.isfinite(each).any())) for each in found)


def session(path: str) -> Any:
    """Loads the file into ONNX Runtime, on the CPU."""
    runtime = load("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    try:
        return runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - its errors have no common class
        raise OnnxException(
            "ONNX Runtime cannot load the exported file",
            cause=_short(error),
            hint=f"This is onnxruntime {runtime.__version__}; another opset (opset=17) or another release may work.",
        ) from None


def answers(loaded: Any, arrays: Sequence[Any]) -> list[Any]:
    """The answers of the file, in the order of its outputs."""
    names = [each.name for each in loaded.get_inputs()]
    try:
        found: list[Any] = loaded.run(None, dict(zip(names, arrays)))
    except Exception as error:  # noqa: BLE001 - its errors have no common class
        sizes = ", ".join(str(tuple(array.shape)) for array in arrays)
        raise OnnxException(
            f"ONNX Runtime cannot run the file on inputs of shape {sizes}", cause=_short(error)
        ) from None
    return found


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip()[:2000]}"
