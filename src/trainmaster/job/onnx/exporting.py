"""Exports a trained model to a verified file."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import OnnxException, UserErrorException
from trainmaster.job.onnx import needed, parity, quantizing
from trainmaster.job.onnx.exported import FACTS_KEY, Exported, Parity
from trainmaster.job.onnx.frameworks import framework_of, source_of
from trainmaster.job.onnx.graph import name_batch
from trainmaster.job.onnx.needed import load
from trainmaster.job.onnx.reading import read
from trainmaster.job.onnx.samples import check_batch, random_like, samples_of
from trainmaster.job.onnx.source import Wish

if TYPE_CHECKING:
    from trainmaster.job.onnx.source import Source

# Batch sizes to try besides that of the sample.
_BATCHES = (1, 2, 7)
# The number of additional tries for a file that was written with remarks.
_MORE_TRIES = 24


def export(
    model: Any,
    sample_inputs: Any,
    path: str | os.PathLike[str],
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_batch: bool = True,
    opset: int | None = None,
    tolerance: float = 1e-4,
    quantize: str | None = None,
    calibration_data: Any = None,
    labelled_data: Any = None,
) -> Exported:
    """Converts a model to one ONNX file, and keeps the file only if its answers match those of the model.

    `model` is a torch.nn.Module (also TorchScript and programs of torch.export), a tf.function, a Keras model, the
    folder of a SavedModel, or an estimator of scikit-learn. `sample_inputs` is an array or tensor, a tuple of them, or
    a dict by name. Their first dimension is the batch, which is dynamic in the file unless `dynamic_batch` is False.

    The model and the file run on the sample and on similar random inputs, with several batch sizes. If a number
    differs by more than `tolerance * (1 + |number|)`, nothing is written and OnnxException describes the difference.

    `quantize="dynamic"` or `"static"` (with `calibration_data`, a list of inputs) stores the weights as int8. The
    result then contains the effect, with the accuracy before and after on `labelled_data=(inputs, labels)`.
    """
    target = os.path.abspath(os.fspath(path))
    _check(target, opset, tolerance)
    quantizing.check(quantize, calibration_data, labelled_data)
    framework = framework_of(model)
    needed.check(framework)
    source = source_of(framework, model, samples_of(sample_inputs))
    if dynamic_batch:
        check_batch(source.samples)
    expected = source.run(source.samples.arrays)
    wish = Wish(
        _names(input_names, source.input_names(), "input_names"),
        _names(output_names, source.output_names(expected), "output_names"),
        dynamic_batch,
        opset,
    )
    work = _make_work_folder(target)
    try:
        written = os.path.join(work, "model.onnx")
        exported = _write_and_compare(source, wish, written, tolerance)
        if quantize is not None:
            exported, written = _quantize(exported, source, quantize, calibration_data, labelled_data)
        exported = replace(exported, path=os.fspath(path))
        _keep_facts(written, exported)
        os.replace(written, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return exported


def _make_work_folder(target: str) -> str:
    """Creates a temporary folder beside `target`, on the same file system."""
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        return tempfile.mkdtemp(prefix=".onnx-", dir=os.path.dirname(target))
    except OSError as error:
        raise UserErrorException(f"{target} cannot be written: {error.strerror}") from None


def _write_and_compare(source: Source, wish: Wish, path: str, tolerance: float) -> Exported:
    written = source.write(path, wish)
    try:
        found = _compare(source, wish, path, tolerance, _MORE_TRIES if written.notes else 0)
    except OnnxException as error:
        # The remarks may explain the difference.
        cause = "\n".join((error.cause, *written.notes))
        raise OnnxException(error.headline, cause=cause, hint=error.hint) from None
    _edit(path, lambda proto: name_batch(proto.graph, found.batched))
    header = read(path)
    return Exported(
        path,
        source.framework,
        source.version,
        written.exporter,
        header.opset,
        header.inputs,
        header.outputs,
        found.parity,
        None,
        written.notes,
    )


@dataclass(frozen=True)
class _Comparison:
    parity: Parity
    batched: tuple[bool, ...]
    """Which outputs have as many rows as the inputs."""


def _compare(source: Source, wish: Wish, path: str, tolerance: float, more: int) -> _Comparison:
    """Runs the model and the file on the same inputs. Raises OnnxException if their answers differ."""
    session = parity.session(path)
    difference = parity.Difference()
    tries: list[_Try] = []
    for arrays in _inputs(source, wish.dynamic_batch, more):
        expected = source.run(arrays)
        answers = _answers(session, arrays, may_be_fixed=wish.dynamic_batch and bool(tries))
        difference |= parity.compare(expected, answers, wish.outputs, tolerance)
        tries.append(_Try.make(arrays, expected))
        if difference.excess:
            raise _refusal(difference, tolerance, tries[-1].batch)
    if not any(each.is_finite for each in tries):
        raise OnnxException(
            "the model cannot be compared: all of its answers are NaN or infinite",
            hint="Give real data as sample_inputs, and look at the model's answers to them.",
        )
    sizes = tuple(dict.fromkeys(each.batch for each in tries))
    batched = tuple(wish.dynamic_batch and all(flags) for flags in zip(*(each.batched for each in tries)))
    return _Comparison(Parity(difference.absolute, difference.relative, tolerance, sizes), batched)


@dataclass(frozen=True)
class _Try:
    """What is worth knowing about one run of the model."""

    batch: int
    batched: tuple[bool, ...]
    """Which outputs have as many rows as the inputs."""
    is_finite: bool

    @staticmethod
    def make(arrays: Sequence[Any], outputs: Sequence[Any]) -> _Try:
        first = arrays[0]
        batched = tuple(bool(each.shape[:1] == first.shape[:1]) for each in outputs)
        return _Try(int(first.shape[0]) if first.ndim else 1, batched, parity.anything_finite(outputs))


def _answers(session: Any, arrays: Sequence[Any], may_be_fixed: bool) -> list[Any]:
    try:
        return parity.answers(session, arrays)
    except OnnxException as error:
        if not may_be_fixed:
            raise
        hint = "The file works with one batch size only. If that is intended, specify dynamic_batch=False."
        raise OnnxException(error.headline, cause=error.cause, hint=hint) from None


def _inputs(source: Source, dynamic_batch: bool, more: int = 0) -> Iterator[Sequence[Any]]:
    """The inputs for model and file. They are the same in every export, so that the result does not vary."""
    yield source.samples.arrays
    for seed, batch in enumerate((*_BATCHES, *[1] * more)):
        # The additional ones extend beyond the range of the sample.
        reach = 0.0 if seed < len(_BATCHES) else 1.0
        yield random_like(source.samples, batch if dynamic_batch else None, seed, reach)


def _quantize(
    exported: Exported, source: Source, kind: str, calibration: Any, labelled: Any
) -> tuple[Exported, str]:  # fmt: skip
    small = os.path.join(os.path.dirname(exported.path), "int8.onnx")
    quantizing.quantize(exported.path, small, kind, calibration)
    names = [each.name for each in exported.outputs]
    dynamic = any(isinstance(size, str) for each in exported.inputs for size in each.shape or ())
    found = quantizing.measure(kind, exported.path, small, list(_inputs(source, dynamic)), names, labelled)
    return replace(exported, quantized=found, opset=read(small).opset), small


def _keep_facts(path: str, exported: Exported) -> None:
    """Writes the facts into the file, so that they stay with it."""

    def add(proto: Any) -> None:
        entry = proto.metadata_props.add()
        entry.key, entry.value = FACTS_KEY, json.dumps(exported.facts())

    _edit(path, add)


def _edit(path: str, change: Callable[[Any], None]) -> None:
    onnx = load("onnx")
    proto = onnx.load(path)
    change(proto)
    onnx.save(proto, path)


def _refusal(difference: parity.Difference, tolerance: float, batch: int) -> OnnxException:
    return OnnxException(
        "the answers of the ONNX file differ from those of the model, so the file was not kept",
        cause=f"On a batch of {batch}: {difference.excess}. "
        f"Largest difference {difference.absolute:.3g}, tolerance {tolerance:g}.",
        hint="A model that draws random numbers cannot be compared. If the difference is only rounding, "
        "specify a larger tolerance.",
    )


def _names(given: Sequence[str] | None, own: Sequence[str], parameter: str) -> tuple[str, ...]:
    names = tuple(own) if given is None else tuple(given)
    if len(names) != len(own):
        raise UserErrorException(f"{parameter} has {len(names)} names, but the model has {len(own)}: {', '.join(own)}")
    if len(set(names)) != len(names) or not all(isinstance(name, str) and name for name in names):
        raise UserErrorException(f"{parameter} must be different names, not {list(names)}")
    return names


def _check(path: str, opset: Any, tolerance: Any) -> None:
    if os.path.isdir(path):
        raise UserErrorException(
            f"{path} is a folder", hint="Specify the path of the file, such as outputs/model.onnx."
        )
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or not 0 <= tolerance < float("inf"):
        raise UserErrorException(f"tolerance must be a number of at least 0, not {tolerance!r}")
    if opset is not None and (isinstance(opset, bool) or not isinstance(opset, int) or opset < 7):
        raise UserErrorException(f"opset must be an integer of at least 7, not {opset!r}")
