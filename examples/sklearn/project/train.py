"""Tells irises apart: accuracy as a metric, the model as files: for scikit-learn and as ONNX."""

import argparse

import joblib
from sklearn import datasets
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

import trainmaster.onnx
from trainmaster import Run

parser = argparse.ArgumentParser()
parser.add_argument("--kernel", default="rbf")
parser.add_argument("--penalty", type=float, default=1.0)
options = parser.parse_args()

run = Run.get_context()
iris = datasets.load_iris()
model = SVC(kernel=options.kernel, C=options.penalty)
for accuracy in cross_val_score(model, iris.data, iris.target, cv=5):
    run.log("accuracy", accuracy)
joblib.dump(model.fit(iris.data, iris.target), "outputs/model.joblib")
# Kept only if it answers as the model does.
print(trainmaster.onnx.export(model, iris.data.astype("float32"), "outputs/model.onnx"))
