"""What `trainmaster.onnx.export` does with estimators of scikit-learn."""

import os

import joblib
import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import IsolationForest, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

import trainmaster.onnx
from azureml.core import Run
from trainmaster.job.errors import OnnxException

run = Run.get_context()
os.makedirs("outputs", exist_ok=True)
flowers, kinds = load_iris(return_X_y=True)
patients, progress = load_diabetes(return_X_y=True)
iris = LogisticRegression(max_iter=500).fit(flowers, kinds)

ESTIMATORS = [
    (iris, flowers, ["label", "probabilities"]),
    (
        make_pipeline(StandardScaler(), SVC()).fit(flowers, np.array(["a", "b", "c"])[kinds]),
        flowers,
        ["label", "scores"],
    ),
    (SVC().fit(flowers[:100], kinds[:100]), flowers, ["label"]),
    (LinearSVC().fit(flowers, kinds), flowers, ["label", "scores"]),
    (RandomForestClassifier(10, random_state=0).fit(flowers, kinds), flowers, ["label", "probabilities"]),
    (LinearRegression().fit(patients, progress), patients, ["output"]),
    (RandomForestRegressor(10, random_state=0).fit(patients, progress), patients, ["output"]),
    (KMeans(3, random_state=0).fit(flowers), flowers, ["output"]),
    (IsolationForest(n_estimators=5, random_state=0).fit(flowers), flowers, ["output"]),
    (StandardScaler().fit(patients), patients, ["output"]),
]
for estimator, rows, outputs in ESTIMATORS:
    exported = trainmaster.onnx.export(estimator, rows[:20], "outputs/each.onnx")
    assert [each.name for each in exported.outputs] == outputs, exported
    assert all(each.shape[0] == "batch" for each in (*exported.inputs, *exported.outputs)), exported
    assert exported.parity.max_relative < 1e-5, exported

# A table with columns of its own types: an input for each.
people = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0], "city": ["a", "b", "a", "c"]})
columns = ColumnTransformer([("n", StandardScaler(), ["age"]), ("c", OneHotEncoder(handle_unknown="ignore"), ["city"])])
table = make_pipeline(columns, LogisticRegression()).fit(people, [0, 1, 0, 1])
exported = trainmaster.onnx.export(table, people, "outputs/each.onnx")
assert [(each.name, each.type) for each in exported.inputs] == [("age", "float32"), ("city", "object")], exported

try:
    trainmaster.onnx.export(LogisticRegression(), flowers, "outputs/unfitted.onnx")
except OnnxException as error:
    assert "not fitted yet" in error.message
else:
    raise AssertionError("a model that was not fitted was converted")
assert sorted(os.listdir("outputs")) == ["each.onnx"]

exported = trainmaster.onnx.export(iris, flowers, "outputs/iris.onnx")
run.log("difference", exported.parity.max_absolute)
joblib.dump(iris, "outputs/iris.joblib")
joblib.dump(table, "outputs/table.joblib")
