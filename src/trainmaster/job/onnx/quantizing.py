"""Quantizes weights to int8 for a smaller and often faster file, and measures how much the answers change."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Sequence
from typing import Any

from trainmaster.job.errors import OnnxException, UserErrorException
from trainmaster.job.onnx import parity
from trainmaster.job.onnx.exported import Quantized
from trainmaster.job.onnx.graph import forget_shapes
from trainmaster.job.onnx.needed import load
from trainmaster.job.onnx.samples import samples_of

KINDS = ("dynamic", "static")


def check(kind: str | None, calibration: Any, labelled: Any) -> None:
    """Checks the parameters before anything is converted. Raises UserErrorException."""
    if kind is not None and kind not in KINDS:
        raise UserErrorException(f"quantize must be None, 'dynamic' or 'static', not {kind!r}")
    if kind == "static" and calibration is None:
        raise UserErrorException(
            "quantize='static' needs calibration_data",
            hint="Give a list of some dozens of real inputs, each in the form of sample_inputs; "
            "quantize='dynamic' needs none.",
        )
    if kind != "static" and calibration is not None:
        raise UserErrorException("calibration_data is only for quantize='static'")
    if labelled is not None and (kind is None or not isinstance(labelled, (tuple, list)) or len(labelled) != 2):
        raise UserErrorException(
            "labelled_data must be a pair (inputs, labels), and needs quantize='dynamic' or 'static'"
        )


def quantize(path: str, to: str, kind: str, calibration: Any) -> None:
    """Writes the model in `path` to `to`, with int8 weights."""
    tool, onnx = load("onnxruntime.quantization"), load("onnx")
    with _quiet():
        try:
            proto = onnx.load(path)
            forget_shapes(proto.graph)
            onnx.save(proto, path)
            if kind == "dynamic":
                tool.quantize_dynamic(path, to, weight_type=tool.QuantType.QInt8)
            else:
                names = [each.name for each in parity.session(path).get_inputs()]
                tool.quantize_static(path, to, _reader(tool, names, calibration), quant_format=tool.QuantFormat.QDQ)
        except OnnxException:
            raise
        except Exception as error:
            raise OnnxException(
                f"ONNX Runtime cannot quantize this model ({kind})",
                cause=f"{type(error).__name__}: {str(error).strip()[:1500]}",
                hint="Omit quantize, or try the other kind.",
            ) from error


def measure(
    kind: str, before: str, after: str, tries: Sequence[Sequence[Any]], names: Sequence[str], labelled: Any
) -> Quantized:
    """Compares the two files on the same inputs, and on the labelled data if there is some."""
    one, other = parity.session(before), parity.session(after)
    difference = parity.Difference()
    for arrays in tries:
        difference |= parity.compare(parity.answers(one, arrays), parity.answers(other, arrays), names, 0.0)
    accuracies = (None, None) if labelled is None else (_accuracy(one, labelled), _accuracy(other, labelled))
    return Quantized(
        kind,
        difference.absolute,
        difference.relative,
        os.path.getsize(before),
        os.path.getsize(after),
        accuracies[0],
        accuracies[1],
    )


def _accuracy(loaded: Any, labelled: Any) -> float:
    """The fraction of labels that equal the first output: a class, or the index of its largest number."""
    numpy = load("numpy")
    given, labels = labelled
    wanted = [each.type for each in loaded.get_inputs()]
    arrays = [_convert_type(array, kind, numpy) for array, kind in zip(samples_of(given).arrays, wanted)]
    answer, labels = numpy.asarray(parity.answers(loaded, arrays)[0]), numpy.asarray(labels).reshape(-1)
    if answer.dtype.kind == "f" and answer.ndim == 2:
        answer = answer.argmax(axis=1)
    if answer.shape != labels.shape:
        raise UserErrorException(
            f"labelled_data: the model's answer to the inputs has the shape {answer.shape}, but there are "
            f"{labels.size} labels",
            hint="Accuracy needs a model whose first output is a class, or a number for each class.",
        )
    return float((answer == labels).mean())


def _convert_type(array: Any, kind: str, numpy: Any) -> Any:
    return array.astype(numpy.float32) if kind == "tensor(float)" else array


def _reader(tool: Any, names: Sequence[str], calibration: Any) -> Any:
    numpy = load("numpy")
    rows = [samples_of(each).arrays for each in calibration]
    if not rows:
        raise UserErrorException("calibration_data is empty")

    class Reader(tool.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._left = iter(rows)

        def get_next(self) -> Any:
            arrays = next(self._left, None)
            if arrays is None:
                return None
            return {
                name: array.astype(numpy.float32) if array.dtype == numpy.float64 else array
                for name, array in zip(names, arrays)
            }

    return Reader()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses the advice of ONNX Runtime on preparing models."""
    logger = logging.getLogger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
