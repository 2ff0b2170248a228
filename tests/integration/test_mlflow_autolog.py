"""`mlflow.autolog()` in a job, of each framework: parameters, metrics and the model are in the run of the job.

One job trains with all of them, each in a nested run: importing the frameworks takes the longest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.conftest import end_workspace, ended
from tests.mlflow_releases import NEWEST
from tests.python_environments import make_environment

from trainmaster import Environment, Estimator, Experiment, Run, Workspace

pytestmark = pytest.mark.timeout(900)

PACKAGES = (
    f"mlflow=={NEWEST}",
    "torch==2.13.0",
    "tensorflow-cpu==2.21.0",
    "xgboost-cpu==3.2.0",
    "lightgbm==4.7.0",
    "statsmodels==0.15.0",
    "tensorboard==2.21.0",
    "spacy==3.8.18",
)

BEGIN = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import mlflow, numpy

x = numpy.random.default_rng(1).normal(size=(64, 3)).astype("float32")
y = (x.sum(axis=1) > 0).astype("float32")


def train(name, function):
    with mlflow.start_run(run_name=name, nested=True) as run:
        function()
    for output in mlflow.get_run(run.info.run_id).outputs.model_outputs:
        files = mlflow.artifacts.list_artifacts("models:/" + output.model_id)
        assert "MLmodel" in [each.path for each in files], (name, files)


with mlflow.start_run():
"""

XGBOOST = """
    import xgboost
    mlflow.xgboost.autolog(model_format="json")

    def fit():
        data = xgboost.DMatrix(x, label=y)
        xgboost.train({"max_depth": 2, "eta": 0.3}, data, num_boost_round=4, evals=[(data, "train")], verbose_eval=0)

    train("xgboost", fit)
"""

LIGHTGBM = """
    import lightgbm
    mlflow.lightgbm.autolog()

    def fit():
        data = lightgbm.Dataset(x, y)
        settings = {"objective": "binary", "num_leaves": 4, "min_data_in_leaf": 2, "verbose": -1, "metric": "auc"}
        lightgbm.train(settings, data, num_boost_round=4, valid_sets=[data], valid_names=["train"])

    train("lightgbm", fit)
"""

KERAS = """
    import keras
    mlflow.tensorflow.autolog()

    def fit():
        net = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
        net.compile("sgd", "binary_crossentropy", metrics=["accuracy"])
        net.fit(x, y, epochs=3, batch_size=16, verbose=0)

    train("keras", fit)
"""

STATSMODELS = """
    import statsmodels.api
    mlflow.statsmodels.autolog()
    train("statsmodels", lambda: statsmodels.api.OLS(y, x).fit())
"""

PYTORCH = """
    import torch
    mlflow.pytorch.autolog(log_every_n_step=1)

    def fit():
        from torch.utils.tensorboard import SummaryWriter

        net, values = torch.nn.Linear(3, 1), torch.tensor(x)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        with SummaryWriter("events") as writer:
            for step in range(3):
                loss = torch.nn.functional.mse_loss(net(values)[:, 0], torch.tensor(y))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                writer.add_scalar("loss", loss.item(), step)
        mlflow.pytorch.log_model(net, name="net", input_example=x[:2])

    train("pytorch", fit)
"""

SPACY = """
    import spacy
    from spacy.training import Example

    def fit():
        net = spacy.blank("en")
        net.add_pipe("textcat_multilabel").add_label("good")
        words = [("well done", 1.0), ("oh no", 0.0)]
        examples = [Example.from_dict(net.make_doc(text), {"cats": {"good": value}}) for text, value in words]
        optimizer = net.initialize(lambda: examples)
        for step in range(3):
            mlflow.log_metric("loss", net.update(examples, sgd=optimizer)["textcat_multilabel"], step=step)
        mlflow.spacy.log_model(net, name="net")

    train("spacy", fit)
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Run]]:
    """The nested run of each framework, by its name."""
    workspace = Workspace.create("auto", path=tmp_path_factory.mktemp("auto") / "workspace", show_output=False)
    try:
        source = tmp_path_factory.mktemp("source")
        (source / "train.py").write_text(BEGIN + XGBOOST + LIGHTGBM + STATSMODELS + KERAS + PYTORCH + SPACY)
        environment = Environment("frameworks")
        environment.python.user_managed_dependencies = True
        environment.python.interpreter_path = str(make_environment("mlflow-autolog", *PACKAGES))
        job = Experiment(workspace, "auto").submit(
            Estimator(str(source), compute_target="local", entry_script="train.py", environment_definition=environment)
        )
        details = ended(job)
        assert details["status"] == "Completed", details.get("error")
        yield {each.display_name: each for each in job.get_children()}
    finally:
        end_workspace(workspace.path)


def _read(run: Run) -> tuple[dict[str, str], dict[str, Any], set[str]]:
    """The parameters, the metrics and the names of the files of a run that has ended well."""
    assert run.status == "Completed"
    return run.get_details().get("parameters", {}), run.get_metrics(), set(run.get_file_names())


def test_xgboost(runs: dict[str, Run]) -> None:
    params, metrics, files = _read(runs["xgboost"])
    assert (params["max_depth"], params["num_boost_round"]) == ("2", "4")
    assert len(metrics["train-rmse"]) == 4
    assert "feature_importance_weight.json" in files


def test_lightgbm(runs: dict[str, Run]) -> None:
    params, metrics, files = _read(runs["lightgbm"])
    assert (params["num_leaves"], params["num_boost_round"]) == ("4", "4")
    assert len(metrics["train-auc"]) == 4
    assert "feature_importance_gain.json" in files


def test_statsmodels(runs: dict[str, Run]) -> None:
    _, metrics, files = _read(runs["statsmodels"])
    assert 0 < metrics["rsquared"] <= 1
    assert "model_summary.txt" in files


def test_keras(runs: dict[str, Run]) -> None:
    params, metrics, files = _read(runs["keras"])
    assert (params["epochs"], params["batch_size"]) == ("3", "16")
    assert len(metrics["loss"]) == len(metrics["accuracy"]) == 3
    assert "model_summary.txt" in files


def test_pytorch(runs: dict[str, Run]) -> None:
    """Without Lightning, MLflow takes the values that are written for TensorBoard."""
    _, metrics, _ = _read(runs["pytorch"])
    assert len(metrics["loss"]) == 3


def test_spacy(runs: dict[str, Run]) -> None:
    """MLflow has no autologging for it, but a callback and a flavour for models."""
    _, metrics, _ = _read(runs["spacy"])
    assert len(metrics["loss"]) == 3
