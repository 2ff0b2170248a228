"""TensorFlow models: functions, Keras models, folders of SavedModels. Converted by tf2onnx.

Every model becomes a TensorFlow function first, because tf2onnx cannot read models of Keras 3.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

from trainmaster.job.errors import OnnxException, UserErrorException
from trainmaster.job.onnx.graph import rename
from trainmaster.job.onnx.needed import load
from trainmaster.job.onnx.samples import Samples
from trainmaster.job.onnx.source import Wish, Written, cannot_run, number_names, words_of

_SERVING = "serving_default"


class TensorFlowSource:
    """A model as one function from tensors to tensors."""

    framework = "TensorFlow"

    def __init__(self, model: Any, samples: Samples) -> None:
        self._tf = load("tensorflow")
        self.version = str(self._tf.__version__)
        self.samples = samples
        if isinstance(model, (str, os.PathLike)):
            model = self._load_serving_function(os.fspath(model))
        self._model = model
        self._function: Callable[..., Any] = (
            self._call_with_keywords(model) if self.samples.by_keyword else self._call_with_positions(model)
        )

    def input_names(self) -> list[str]:
        return list(self.samples.names) or number_names("input", len(self.samples.arrays))

    def output_names(self, outputs: Sequence[Any]) -> list[str]:
        answer = self._answer(self.samples.arrays)
        if isinstance(answer, dict) and len(answer) == len(outputs):
            return [str(name) for name in sorted(answer)]
        return number_names("output", len(outputs))

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        try:
            return [each.numpy() for each in self._leaves(self._answer(arrays))]
        except Exception as error:
            raise cannot_run(arrays, error) from error

    def write(self, path: str, wish: Wish) -> Written:
        tf, onnx = self._tf, load("onnx")
        logging.getLogger("tf2onnx").setLevel(logging.ERROR)
        convert = load("tf2onnx.convert")
        signature = [
            tf.TensorSpec((None if wish.dynamic_batch else array.shape[0], *array.shape[1:]) if array.ndim else (),
                          tf.as_dtype(array.dtype), name=f"input_{place}")
            for place, array in enumerate(self.samples.arrays)
        ]  # fmt: skip

        # A function of exactly these tensors that returns a tuple, so that the order of both is known.
        traced = tf.function(
            lambda *tensors: tuple(tf.identity(each) for each in self._leaves(self._function(*tensors))),
            input_signature=signature,
        )
        try:
            proto, _ = convert.from_function(traced, input_signature=signature, opset=wish.opset)
        except Exception as error:
            raise OnnxException(
                "tf2onnx cannot convert this model",
                cause=words_of(error),
                hint="Another opset may work (opset=17).",
            ) from error
        self._check_inputs(proto, wish)
        rename(proto.graph, wish.inputs, wish.outputs)
        onnx.save(proto, path)
        return Written(f"tf2onnx {load('tf2onnx').__version__}")

    @staticmethod
    def _check_inputs(proto: Any, wish: Wish) -> None:
        found = len(proto.graph.input)
        if found != len(wish.inputs):
            raise OnnxException(
                f"the model uses {found} of its {len(wish.inputs)} inputs",
                hint="Give sample_inputs only for the inputs that it uses.",
            )

    def _answer(self, arrays: Sequence[Any]) -> Any:
        return self._function(*(self._tf.constant(array) for array in arrays))

    def _leaves(self, answer: Any) -> list[Any]:
        if isinstance(answer, dict):
            # The order that TensorFlow uses.
            answer = [answer[name] for name in sorted(answer)]
        if isinstance(answer, (tuple, list)):
            return [leaf for each in answer for leaf in self._leaves(each)]
        return [self._tf.convert_to_tensor(answer)]

    def _call_with_positions(self, model: Any) -> Callable[..., Any]:
        if not self._is_keras(model):
            return lambda *tensors: model(*tensors)
        return lambda *tensors: model(tensors[0] if len(tensors) == 1 else list(tensors), training=False)

    def _call_with_keywords(self, model: Any) -> Callable[..., Any]:
        names = self.samples.names
        if self._is_keras(model):
            return lambda *tensors: model(dict(zip(names, tensors)), training=False)
        return lambda *tensors: model(**dict(zip(names, tensors)))

    @staticmethod
    def _is_keras(model: Any) -> bool:
        return any(kind.__module__.partition(".")[0] in ("keras", "tf_keras") for kind in type(model).__mro__)

    def _load_serving_function(self, folder: str) -> Any:
        """The serving function of a SavedModel; names positional samples in its order."""
        loaded = self._tf.saved_model.load(folder)
        signatures = dict(loaded.signatures)
        if not signatures:
            raise OnnxException(
                f"the SavedModel in {folder} has no signature",
                hint="Save it with tf.saved_model.save(model, folder, signatures=function), or pass the function.",
            )
        function = signatures.get(_SERVING) or next(iter(signatures.values()))
        names = tuple(sorted(function.structured_input_signature[1]))
        if not self.samples.by_keyword:
            if len(names) != len(self.samples.arrays):
                raise UserErrorException(
                    f"the SavedModel has {len(names)} inputs ({', '.join(names)}); "
                    f"sample_inputs has {len(self.samples.arrays)}"
                )
            self.samples = Samples(self.samples.arrays, names, by_keyword=True)
        # Keeps the variables alive.
        function._trainmaster_model = loaded
        return function
