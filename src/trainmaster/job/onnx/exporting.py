"""From a trained model to a checked file."""

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
from trainmaster.job.onnx.graph import name_batch
from trainmaster.job.onnx.needed import load
from trainmaster.job.onnx.reading import read
from trainmaster.job.onnx.samples import check_batch, random_like, samples_of
from trainmaster.job.onnx.source import Wish, framework_of, source_of

if TYPE_CHECKING:
    from trainmaster.job.onnx.source import Source

# What is tried beside the sample: batches that no sample is likely to have.
_BATCHES = (1, 2, 7)
# How often a file is tried that was written with a reservation.
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
    """Converts a model to one ONNX file, and keeps it only if it answers as the model does.

    `model` is a torch.nn.Module (TorchScript and programs of torch.export too), a tf.function, a Keras model, the
    folder of a SavedModel, or an estimator of scikit-learn. `sample_inputs` is an array or tensor, a tuple of them, or
    a dict by name; their first size is the batch, which may vary in the file unless `dynamic_batch` is False.

    Both run on the sample and on random inputs like it, in batches of several sizes. Where a number differs by more
    than `tolerance * (1 + |number|)` nothing is written and OnnxException says what differs.

    `quantize="dynamic"` or `"static"` (with `calibration_data`, a list of inputs) keeps the weights as int8; what that
    changes is in the result, with the accuracy before and after on `labelled_data=(inputs, labels)`.
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
    work = _beside(target)
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


def _beside(target: str) -> str:
    """A folder for the files on the way, on the same disk."""
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        return tempfile.mkdtemp(prefix=".onnx-", dir=os.path.dirname(target))
    except OSError as error:
        raise UserErrorException(f"{target} cannot be written: {error.strerror}") from None


def _write_and_compare(source: Source, wish: Wish, path: str, tolerance: float) -> Exported:
    written = source.write(path, wish)
    try:
        found = _compared(source, wish, path, tolerance, _MORE_TRIES if written.notes else 0)
    except OnnxException as error:
        # Why the file is as it is may be why it is wrong.
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
class _Compared:
    parity: Parity
    batched: tuple[bool, ...]
    """Which outputs have as many rows as the inputs."""


def _compared(source: Source, wish: Wish, path: str, tolerance: float, more: int) -> _Compared:
    loaded = parity.session(path)
    difference, something = parity.Difference(), False
    batches: list[int] = []
    batched = [wish.dynamic_batch] * len(wish.outputs)
    for arrays in _tries(source, wish.dynamic_batch, more):
        expected = source.run(arrays)
        try:
            got = parity.answers(loaded, arrays)
        except OnnxException as error:
            hint = "It was converted for one size of the batch; dynamic_batch=False says that it is meant so."
            told = hint if batches and wish.dynamic_batch else ""
            raise OnnxException(error.headline, cause=error.cause, hint=told) from None
        difference |= parity.compare(expected, got, wish.outputs, tolerance)
        something = something or parity.anything_finite(expected)
        batches.append(arrays[0].shape[0] if arrays[0].ndim else 1)
        batched = [so_far and each.shape[:1] == arrays[0].shape[:1] for so_far, each in zip(batched, expected)]
        if difference.excess:
            raise _refusal(difference, tolerance, batches[-1])
    if not something:
        raise OnnxException(
            "the model cannot be compared: it answers all inputs with NaN or infinity",
            hint="Give real data as sample_inputs, and see what the model answers to them.",
        )
    sizes = tuple(dict.fromkeys(batches))
    return _Compared(Parity(difference.absolute, difference.relative, tolerance, sizes), tuple(batched))


def _tries(source: Source, dynamic_batch: bool, more: int = 0) -> Iterator[Sequence[Any]]:
    """The inputs that both are run on. The same in every export: no luck decides."""
    yield source.samples.arrays
    for seed, batch in enumerate((*_BATCHES, *[1] * more)):
        # Those beyond the first few reach further than the sample.
        reach = 0.0 if seed < len(_BATCHES) else 1.0
        yield random_like(source.samples, batch if dynamic_batch else None, seed, reach)


def _quantize(
    exported: Exported, source: Source, kind: str, calibration: Any, labelled: Any
) -> tuple[Exported, str]:  # fmt: skip
    small = os.path.join(os.path.dirname(exported.path), "int8.onnx")
    quantizing.quantize(exported.path, small, kind, calibration)
    names = [each.name for each in exported.outputs]
    dynamic = any(isinstance(size, str) for each in exported.inputs for size in each.shape or ())
    found = quantizing.measured(kind, exported.path, small, list(_tries(source, dynamic)), names, labelled)
    return replace(exported, quantized=found, opset=read(small).opset), small


def _keep_facts(path: str, exported: Exported) -> None:
    """Writes them into the file, so that they go where it goes."""

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
        "the ONNX file does not answer as the model does, and is not kept",
        cause=f"On a batch of {batch}: {difference.excess}. "
        f"Largest difference {difference.absolute:.3g}, tolerance {tolerance:g}.",
        hint="A model that draws random numbers cannot be compared. Where the difference is no more than rounding, "
        "give a larger tolerance.",
    )


def _names(given: Sequence[str] | None, own: Sequence[str], parameter: str) -> tuple[str, ...]:
    names = tuple(own) if given is None else tuple(given)
    if len(names) != len(own):
        raise UserErrorException(f"{parameter} has {len(names)} names, and the model has {len(own)}: {', '.join(own)}")
    if len(set(names)) != len(names) or not all(isinstance(name, str) and name for name in names):
        raise UserErrorException(f"{parameter} must be names that differ from one another, not {list(names)}")
    return names


def _check(path: str, opset: Any, tolerance: Any) -> None:
    if os.path.isdir(path):
        raise UserErrorException(f"{path} is a folder", hint="Give the path of the file, such as outputs/model.onnx.")
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or not 0 <= tolerance < float("inf"):
        raise UserErrorException(f"tolerance must be a number of at least 0, not {tolerance!r}")
    if opset is not None and (isinstance(opset, bool) or not isinstance(opset, int) or opset < 7):
        raise UserErrorException(f"opset must be a whole number from 7 on, not {opset!r}")
