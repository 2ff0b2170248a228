"""Estimators and pipelines of scikit-learn, by skl2onnx."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainmaster.job.errors import OnnxException, UserErrorException
from trainmaster.job.onnx.graph import rename
from trainmaster.job.onnx.needed import load
from trainmaster.job.onnx.samples import Samples
from trainmaster.job.onnx.source import Wish, Written, words_of

# Of the operators for trees and the like; some estimators cannot be written with a newer one.
_ML_OPSET = 3


class SklearnSource:
    """An estimator that was fitted. Its numbers are float32 in the file, as ONNX's operators for it want them."""

    framework = "scikit-learn"

    def __init__(self, model: Any, samples: Samples) -> None:
        self.version = str(load("sklearn").__version__)
        self._model = model
        self._numpy = load("numpy")
        if len(samples.arrays) != 1 and not samples.names:
            raise UserErrorException(
                f"an estimator has one input, a table; sample_inputs has {len(samples.arrays)}",
                hint="Give one array with a row for each example, or a dict with an array for each column.",
            )
        self.samples = Samples(tuple(self._column(array) for array in samples.arrays), samples.names)

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
                return [self._column(model.transform(table))]
            found = [model.predict(table)]
            if self._is_classifier():
                found += self._scores(table)
            return [self._plain(self._numpy.asarray(each)) for each in found]
        except Exception as error:
            raise OnnxException(
                "the model itself cannot be run on the sample",
                cause=f"{type(error).__name__}: {error}",
                hint="It must be fitted, and sample_inputs as it was fitted with.",
            ) from error

    def write(self, path: str, wish: Wish) -> Written:
        converter, onnx = load("skl2onnx"), load("onnx")
        try:
            proto = self._convert(converter, wish)
        except Exception as error:
            raise OnnxException(
                f"skl2onnx cannot convert this {type(self._model).__name__}",
                cause=words_of(error),
                hint="See the list of estimators in its documentation.",
            ) from error
        # Scores whose sense differs from one estimator to the next are left out; run() knows which.
        del proto.graph.output[len(wish.outputs) :]
        rename(proto.graph, wish.inputs, wish.outputs)
        onnx.save(proto, path)
        return Written(f"skl2onnx {converter.__version__}")

    def _convert(self, converter: Any, wish: Wish) -> Any:
        settings = {"initial_types": self._types(wish), "target_opset": self._opset(wish)}
        if not self._is_classifier():
            return converter.convert_sklearn(self._model, **settings)
        try:
            # An array of probabilities and no list of dicts.
            return converter.convert_sklearn(self._model, options={id(self._model): {"zipmap": False}}, **settings)
        except NameError:
            # Some have no probabilities, and so no such option.
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
            raise UserErrorException(f"opset {wish.opset} is newer than skl2onnx knows: {newest}")
        return {"": newest if wish.opset is None else wish.opset, "ai.onnx.ml": _ML_OPSET}

    def _table(self, arrays: Sequence[Any]) -> Any:
        # The same numbers in the type that the model was most likely fitted with.
        wide = [array if array.dtype.kind == "O" else array.astype(self._numpy.float64) for array in arrays]
        if not self.samples.names:
            return wide[0]
        columns = {name: array.reshape(-1) for name, array in zip(self.samples.names, wide)}
        return load("pandas").DataFrame(columns)

    def _column(self, array: Any) -> Any:
        """Numbers as float32; a column is a table of one."""
        if hasattr(array, "toarray"):
            array = array.toarray()
        array = self._numpy.asarray(array)
        if array.ndim == 1:
            array = array.reshape(-1, 1)
        return array.astype(object) if array.dtype.kind in "OSU" else array.astype(self._numpy.float32)

    def _scores(self, table: Any) -> list[Any]:
        """A number for each class; of two classes without probabilities scikit-learn has only one."""
        if hasattr(self._model, "predict_proba"):
            return [self._model.predict_proba(table)]
        if not hasattr(self._model, "decision_function"):
            return []
        scores = self._numpy.asarray(self._model.decision_function(table))
        return [scores] if scores.ndim == 2 else []

    def _plain(self, array: Any) -> Any:
        """As ONNX shapes it: predictions of numbers are a column, labels a row."""
        if array.dtype.kind == "f" and array.ndim == 1:
            return array.reshape(-1, 1)
        return array
