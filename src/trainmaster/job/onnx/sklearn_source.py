"""Estimators and pipelines of scikit-learn, converted by skl2onnx."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainmaster.job.errors import OnnxException, UserErrorException
from trainmaster.job.onnx.graph import rename
from trainmaster.job.onnx.needed import load
from trainmaster.job.onnx.samples import Samples
from trainmaster.job.onnx.source import Wish, Written, words_of

# The opset of the machine-learning operators; some estimators cannot be converted with a newer one.
_ML_OPSET = 3


class SklearnSource:
    """A fitted estimator. Its numbers are float32 in the file, as the ONNX operators require."""

    framework = "scikit-learn"

    def __init__(self, model: Any, samples: Samples) -> None:
        self.version = str(load("sklearn").__version__)
        self._model = model
        self._numpy = load("numpy")
        if len(samples.arrays) != 1 and not samples.names:
            raise UserErrorException(
                f"an estimator has one input, a table, but sample_inputs has {len(samples.arrays)}",
                hint="Give one array with a row per example, or a dict with an array per column.",
            )
        self.samples = Samples(tuple(self._as_table(array) for array in samples.arrays), samples.names)

    def input_names(self) -> list[str]:
        return list(self.samples.names) or ["input"]

    def output_names(self, outputs: Sequence[Any]) -> list[str]:
        if not self._is_classifier():
            return ["output"]
        return ["label", "probabilities" if hasattr(self._model, "predict_proba") else "scores"][: len(outputs)]

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        table = self._table(arrays)
        model = self._model
        try:
            if not hasattr(model, "predict"):
                return [self._as_table(model.transform(table))]
            found = [model.predict(table)]
            if self._is_classifier():
                found += self._scores(table)
            return [self._reshape(self._numpy.asarray(each)) for each in found]
        except Exception as error:
            raise OnnxException(
                "the model itself fails on the sample",
                cause=f"{type(error).__name__}: {error}",
                hint="The model must be fitted, and sample_inputs must have the form of its training data.",
            ) from error

    def write(self, path: str, wish: Wish) -> Written:
        converter, onnx = load("skl2onnx"), load("onnx")
        try:
            proto = self._convert(converter, wish)
        except Exception as error:
            raise OnnxException(
                f"skl2onnx cannot convert this {type(self._model).__name__}",
                cause=words_of(error),
                hint="The documentation of skl2onnx lists the supported estimators.",
            ) from error
        # Leaves out scores whose meaning differs between estimators, as run() does.
        del proto.graph.output[len(wish.outputs) :]
        rename(proto.graph, wish.inputs, wish.outputs)
        onnx.save(proto, path)
        return Written(f"skl2onnx {converter.__version__}")

    def _convert(self, converter: Any, wish: Wish) -> Any:
        settings = {"initial_types": self._types(wish), "target_opset": self._opset(wish)}
        if not self._is_classifier():
            return converter.convert_sklearn(self._model, **settings)
        try:
            # Returns an array of probabilities instead of a list of dicts.
            return converter.convert_sklearn(self._model, options={id(self._model): {"zipmap": False}}, **settings)
        except NameError:
            # Classifiers without probabilities do not have this option.
            return converter.convert_sklearn(self._model, **settings)

    def _is_classifier(self) -> bool:
        return bool(load("sklearn.base").is_classifier(self._model))

    def _types(self, wish: Wish) -> list[tuple[str, Any]]:
        kinds = load("skl2onnx.common.data_types")
        found = []
        for name, array in zip(wish.inputs, self.samples.arrays):
            kind = kinds.StringTensorType if array.dtype.kind in "OSU" else kinds.FloatTensorType
            rows = None if wish.dynamic_batch else array.shape[0]
            found.append((name, kind([rows, *array.shape[1:]])))
        return found

    def _opset(self, wish: Wish) -> Any:
        newest = load("skl2onnx").__max_supported_opset__
        if wish.opset is not None and wish.opset > newest:
            raise UserErrorException(f"skl2onnx supports opsets up to {newest}, not {wish.opset}")
        return {"": newest if wish.opset is None else wish.opset, "ai.onnx.ml": _ML_OPSET}

    def _table(self, arrays: Sequence[Any]) -> Any:
        # In the type that the model was most likely fitted with.
        wide = [array if array.dtype.kind == "O" else array.astype(self._numpy.float64) for array in arrays]
        if not self.samples.names:
            return wide[0]
        columns = {name: array.reshape(-1) for name, array in zip(self.samples.names, wide)}
        return load("pandas").DataFrame(columns)

    def _as_table(self, array: Any) -> Any:
        """Numbers as float32; a flat array becomes a table of one column."""
        if hasattr(array, "toarray"):
            array = array.toarray()
        array = self._numpy.asarray(array)
        if array.ndim == 1:
            array = array.reshape(-1, 1)
        return array.astype(object) if array.dtype.kind in "OSU" else array.astype(self._numpy.float32)

    def _scores(self, table: Any) -> list[Any]:
        """One number per class; none where scikit-learn has only one number for two classes."""
        if hasattr(self._model, "predict_proba"):
            return [self._model.predict_proba(table)]
        if not hasattr(self._model, "decision_function"):
            return []
        scores = self._numpy.asarray(self._model.decision_function(table))
        return [scores] if scores.ndim == 2 else []

    def _reshape(self, array: Any) -> Any:
        """The shape that ONNX uses: numeric predictions are a column, labels a flat array."""
        if array.dtype.kind == "f" and array.ndim == 1:
            return array.reshape(-1, 1)
        return array
