"""PyTorch models: modules, TorchScript, programs of torch.export."""

from __future__ import annotations

import contextlib
import inspect
import logging
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from trainmaster.job.errors import OnnxException
from trainmaster.job.onnx.graph import BATCH, rename
from trainmaster.job.onnx.needed import has_newer_exporter, load
from trainmaster.job.onnx.samples import Samples, resize
from trainmaster.job.onnx.source import Wish, Written, cannot_run, number_names, words_of


class TorchSource:
    """A module on its own device; it runs in evaluation mode."""

    framework = "PyTorch"

    def __init__(self, model: Any, samples: Samples) -> None:
        self._torch = load("torch")
        self.version = str(self._torch.__version__)
        self.samples = samples
        self._given = model
        self._is_program = not isinstance(model, self._torch.nn.Module)
        self._model = model.module() if self._is_program else model
        self._is_script = isinstance(model, self._torch.jit.ScriptModule)
        first = next(iter(self._model.parameters()), None)
        self._device = self._torch.device("cpu") if first is None else first.device

    def input_names(self) -> list[str]:
        if self.samples.names:
            return list(self.samples.names)
        names = self._arguments_of_forward()
        count = len(self.samples.arrays)
        return names[:count] if len(names) >= count else number_names("input", count)

    def output_names(self, outputs: Sequence[Any]) -> list[str]:
        with self._quiet():
            answer = self._call(self.samples.arrays)
        if isinstance(answer, dict) and len(answer) == len(outputs):
            return [str(name) for name in answer]
        return number_names("output", len(outputs))

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        with self._quiet():
            try:
                answer = self._call(arrays)
            except Exception as error:
                raise cannot_run(arrays, error) from error
        return [each.detach().cpu().numpy() for each in self._leaves(answer)]

    def write(self, path: str, wish: Wish) -> Written:
        samples = self.samples
        if wish.dynamic_batch and samples.batch == 1:
            # The exporter would treat a batch of one as a constant.
            samples = resize(samples, 2)
        has_dynamo = has_newer_exporter()
        if self._is_script or not has_dynamo:
            return self._write_with_legacy_exporter(path, wish, samples, has_dynamo)
        try:
            self._write_dynamo(path, wish, samples)
            self._rename(path, wish)
        except Exception as error:  # noqa: BLE001 - tracing runs the model's code, which may raise anything
            return self._fall_back_to_legacy(path, wish, samples, error)
        return Written(f"torch.onnx {self.version}")

    def _write_with_legacy_exporter(self, path: str, wish: Wish, samples: Samples, has_dynamo: bool) -> Written:
        """Uses the legacy exporter, where no other one is available."""
        try:
            self._write_legacy(path, wish, samples, has_dynamo)
            self._rename(path, wish)
        except Exception as error:
            raise OnnxException("torch cannot convert this model to ONNX", cause=words_of(error)) from error
        return Written(f"torch.onnx {self.version} (legacy exporter)")

    def _fall_back_to_legacy(self, path: str, wish: Wish, samples: Samples, first: Exception) -> Written:
        reason = words_of(first)
        if self._is_program:
            raise OnnxException("torch cannot convert this program to ONNX", cause=reason) from first
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                self._write_legacy(path, wish, samples, has_dynamo=True)
                self._rename(path, wish)
        except Exception as second:  # noqa: BLE001 - as above
            raise OnnxException(
                "torch cannot convert this model to ONNX",
                cause=f"The exporter: {reason}\nThe legacy exporter: {words_of(second)}",
                hint="Check whether torch.export.export(model, args) accepts it. If only the dynamic batch fails, "
                "specify dynamic_batch=False.",
            ) from first
        notes = [f"the legacy exporter of torch was used, because the newer one failed: {reason.splitlines()[0]}"]
        if any(each.category is self._torch.jit.TracerWarning for each in said):
            notes.append(
                "the model branches on values of its input, and the file always takes the branch of the sample"
            )
        for note in notes:
            warnings.warn(f"trainmaster.onnx: {note}", stacklevel=5)
        return Written(f"torch.onnx {self.version} (legacy exporter)", tuple(notes))

    def _write_dynamo(self, path: str, wish: Wish, samples: Samples) -> None:
        torch = self._torch
        args, kwargs = self._arguments(samples)
        shapes: Any = None
        if wish.dynamic_batch and not self._is_program:
            batch = torch.export.Dim(BATCH)
            shapes = {name: {0: batch} for name in kwargs} if kwargs else tuple({0: batch} for _ in args)
        with self._quiet(), warnings.catch_warnings():
            # The comparison finds the problems that matter.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                self._given,
                args,
                path,
                kwargs=kwargs or None,
                input_names=_temporary_names("input", wish.inputs),
                output_names=_temporary_names("output", wish.outputs),
                opset_version=wish.opset,
                dynamic_shapes=shapes,
                dynamo=True,
                external_data=False,
                verbose=False,
            )

    def _write_legacy(self, path: str, wish: Wish, samples: Samples, has_dynamo: bool) -> None:
        args, kwargs = self._arguments(samples)
        inputs, outputs = _temporary_names("input", wish.inputs), _temporary_names("output", wish.outputs)
        settings: dict[str, Any] = {"dynamo": False} if has_dynamo else {}
        if wish.opset is not None:
            settings["opset_version"] = wish.opset
        if wish.dynamic_batch:
            settings["dynamic_axes"] = {name: {0: BATCH} for name in (*inputs, *outputs)}
        if self._is_script and "example_outputs" in inspect.signature(self._torch.onnx.export).parameters:
            # Releases before 1.10 require them.
            settings["example_outputs"] = self._call(samples.arrays)
        if kwargs:
            # All releases accept this form.
            args = (*args, kwargs)
        with self._quiet():
            self._torch.onnx.export(self._model, args, path, input_names=inputs, output_names=outputs, **settings)

    @staticmethod
    def _rename(path: str, wish: Wish) -> None:
        """Sets the wanted names. The exporters do not check whether inner values already have them."""
        onnx = load("onnx")
        proto = onnx.load(path)
        rename(proto.graph, wish.inputs, wish.outputs)
        onnx.save(proto, path)

    def _call(self, arrays: Sequence[Any]) -> Any:
        args, kwargs = self._arguments(Samples(tuple(arrays), self.samples.names, self.samples.by_keyword))
        return self._model(*args, **kwargs)

    def _arguments(self, samples: Samples) -> tuple[tuple[Any, ...], dict[str, Any]]:
        tensors = tuple(self._torch.from_numpy(array.copy()).to(self._device) for array in samples.arrays)
        if samples.by_keyword:
            return (), dict(zip(samples.names, tensors))
        return tensors, {}

    def _arguments_of_forward(self) -> list[str]:
        if self._is_script:
            return [each.name for each in self._model.forward.schema.arguments[1:]]
        try:
            found = inspect.signature(self._model.forward).parameters.values()
        except (TypeError, ValueError):
            return []
        return [each.name for each in found if each.kind is each.POSITIONAL_OR_KEYWORD]

    def _leaves(self, answer: Any) -> list[Any]:
        if isinstance(answer, self._torch.Tensor):
            return [answer]
        if isinstance(answer, dict):
            answer = list(answer.values())
        if isinstance(answer, (tuple, list)):
            return [leaf for each in answer for leaf in self._leaves(each)]
        if answer is None:
            return []
        raise OnnxException(f"the model returns a {type(answer).__name__} instead of tensors")

    @contextlib.contextmanager
    def _quiet(self) -> Iterator[None]:
        """Evaluation mode without gradients, and without warnings about missing packages."""
        was_training = self._model.training
        logger = logging.getLogger("torch.onnx._internal.exporter._registration")
        level = logger.level
        logger.setLevel(logging.ERROR)
        if was_training and not self._is_program:
            self._model.eval()
        try:
            with self._torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                warnings.simplefilter("ignore", FutureWarning)
                yield
        finally:
            logger.setLevel(level)
            if was_training and not self._is_program:
                self._model.train()


def _temporary_names(word: str, names: Sequence[str]) -> list[str]:
    """Names that no inner value has."""
    return [f"__{word}_{place}__" for place in range(len(names))]
