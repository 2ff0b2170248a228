"""Training libraries log with their own callbacks for MLflow, to a server and in a job: all of it is in our runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import end_workspace, ended
from tests.mlflow_releases import NEWEST, address_of, run_client
from tests.python_environments import make_environment
from tests.server_process import ServerProcess

from trainmaster import Environment, Estimator, Experiment, Run, Workspace

pytestmark = pytest.mark.timeout(900)

# In one resolution with torch, so that no other torch is installed.
PACKAGES = (
    f"mlflow=={NEWEST}",
    "torch==2.13.0",
    "lightning==2.6.6",
    "transformers==5.23.0",
    "accelerate==1.15.0",
    "optuna==5.0.0",
    "optuna-integration==5.0.0",
)

LIGHTNING = """
import os
import lightning, torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import MLFlowLogger


class Line(lightning.LightningModule):
    def __init__(self, lr=0.1, layers=1):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Linear(2, 1)

    def training_step(self, batch, index):
        loss = torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", torch.nn.functional.mse_loss(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr)


lightning.seed_everything(1)
x = torch.randn(32, 2)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)
logger = MLFlowLogger(
    experiment_name="lightning",
    run_name="line",
    tags={"team": "vision"},
    tracking_uri=os.environ["MLFLOW_TRACKING_URI"],
    log_model="all",
)
trainer = lightning.Trainer(
    max_epochs=3,
    logger=logger,
    log_every_n_steps=1,
    accelerator="cpu",
    enable_progress_bar=False,
    enable_model_summary=False,
    callbacks=[ModelCheckpoint(monitor="val_loss", save_top_k=2, dirpath=os.environ.get("CHECKPOINTS"))],
)
trainer.fit(Line(), loader, loader)
logger.experiment.log_text(logger.run_id, "kept", "notes.txt")
found = {"lightning": logger.run_id}
"""

TRANSFORMERS = """
import mlflow
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

sizes = dict(vocab_size=40, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
data = [{"input_ids": torch.randint(0, 40, (8,)), "labels": torch.tensor(number % 2)} for number in range(16)]
settings = TrainingArguments(
    output_dir=os.environ["CHECKPOINTS"],
    num_train_epochs=2,
    per_device_train_batch_size=4,
    logging_steps=2,
    eval_strategy="epoch",
    save_steps=8,
    report_to=["mlflow"],
    run_name="bert",
    use_cpu=True,
    disable_tqdm=True,
)
model = BertForSequenceClassification(BertConfig(**sizes))
Trainer(model=model, args=settings, train_dataset=data, eval_dataset=data).train()
found["transformers"] = mlflow.last_active_run().info.run_id
mlflow.end_run()
(output,) = mlflow.get_run(found["transformers"]).outputs.model_outputs
files = mlflow.artifacts.list_artifacts(f"models:/{output.model_id}")
assert "MLmodel" in [each.path for each in files], files
"""

OPTUNA = """
import optuna
from optuna_integration.mlflow import MLflowCallback

callback = MLflowCallback(tracking_uri=os.environ["MLFLOW_TRACKING_URI"], metric_name="error")


@callback.track_in_mlflow()
def objective(trial):
    x = trial.suggest_float("x", -1, 1)
    trial.suggest_categorical("kind", ["a", "b"])
    mlflow.log_metric("half", x / 2, step=1)
    if trial.number == 1:
        raise optuna.TrialPruned
    return x * x


study = optuna.create_study(study_name="search", sampler=optuna.samplers.RandomSampler(seed=1))
study.optimize(objective, n_trials=3, callbacks=[callback])
print("best", study.best_trial.number, study.best_value)
"""


FAILING = (
    """
import os
import mlflow

with mlflow.start_run():
    pass
"""
    + OPTUNA
    + """
for name in ("fails and is left so", "fails last"):
    try:
        with mlflow.start_run(run_name=name):
            raise OSError
    except OSError:
        pass
"""
)
"""Trials, of which one is pruned, and runs that really fail."""


@pytest.fixture(scope="module")
def python() -> Path:
    return make_environment("mlflow-libraries", *PACKAGES)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory, python: Path) -> Iterator[Run]:
    """Lightning in a job, which runs while the libraries log to the server."""
    workspace = Workspace.create("job", path=tmp_path_factory.mktemp("job") / "workspace", show_output=False)
    try:
        source = tmp_path_factory.mktemp("source")
        (source / "train.py").write_text(LIGHTNING)
        yield _submit(workspace, source, python)
    finally:
        end_workspace(workspace.path)


def _submit(workspace: Workspace, source: Path, python: Path) -> Run:
    """Start `train.py` with the libraries."""
    environment = Environment("libraries")
    environment.python.user_managed_dependencies = True
    environment.python.interpreter_path = str(python)
    return Experiment(workspace, "job").submit(
        Estimator(str(source), compute_target="local", entry_script="train.py", environment_definition=environment)
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    try:
        made.create_workspace("team")
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def logged(
    server: ServerProcess, job: Run, python: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Workspace, dict[str, str]]:
    """The workspace of the server, and the ids of the runs. One process: importing the libraries takes the longest."""
    variables = {
        "CHECKPOINTS": str(tmp_path_factory.mktemp("checkpoints")),
        "MLFLOW_EXPERIMENT_NAME": "transformers",
        "MLFLOW_TAGS": json.dumps({"team": "text"}),
        "HF_MLFLOW_LOG_ARTIFACTS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    script = LIGHTNING + TRANSFORMERS + OPTUNA + "\nimport json\nprint(json.dumps(found))"
    said = run_client(script, address_of(server, "team"), server.token, variables=variables, python=python)
    return Workspace(path=server.root / "workspaces" / "team"), json.loads(said.splitlines()[-1])


def _check_lightning(run: Run) -> None:
    assert run.status == "Completed"
    assert run.get_details()["parameters"] == {"lr": "0.1", "layers": "1"}
    assert run.get_tags()["team"] == "vision"
    metrics = run.get_metrics()
    # Lightning logs the epoch beside every other value.
    assert {name: len(values) for name, values in metrics.items()} == {
        "train_loss_step": 12,
        "train_loss_epoch": 3,
        "val_loss": 3,
        "epoch": 18,
    }
    assert metrics["val_loss"][2] < metrics["val_loss"][0]
    names = set(run.get_file_names())
    assert {"notes.txt", "epoch=2-step=12/epoch=2-step=12.ckpt", "epoch=2-step=12/aliases.txt"} <= names, names


def test_lightning(logged: tuple[Workspace, dict[str, str]], tmp_path: Path) -> None:
    workspace, ids = logged
    run = Run.get(workspace, ids["lightning"])
    assert (run.experiment.name, run.display_name) == ("lightning", "line")
    _check_lightning(run)
    run.download_file("notes.txt", str(tmp_path / "notes.txt"))
    assert (tmp_path / "notes.txt").read_text() == "kept"


def test_transformers(logged: tuple[Workspace, dict[str, str]]) -> None:
    workspace, ids = logged
    run = Run.get(workspace, ids["transformers"])
    assert (run.experiment.name, run.display_name, run.status) == ("transformers", "bert", "Completed")
    assert run.get_tags()["team"] == "text"
    # The settings of the trainer and of the model, more than MLflow takes at once.
    parameters = run.get_details()["parameters"]
    assert {"hidden_size": "16", "num_train_epochs": "2"}.items() <= parameters.items() and len(parameters) > 100
    metrics = run.get_metrics()
    assert (len(metrics["loss"]), len(metrics["eval_loss"])) == (4, 2)
    assert isinstance(metrics["train_loss"], float)


def test_optuna(logged: tuple[Workspace, dict[str, str]]) -> None:
    workspace, _ = logged
    trials = {run.display_name: run for run in workspace.experiments["search"].get_runs()}
    assert sorted(trials) == ["0", "1", "2"]
    for number, run in trials.items():
        x = float(run.get_details()["parameters"]["x"])
        assert run.status == "Completed"
        assert run.get_tags()["state"] == ("PRUNED" if number == "1" else "COMPLETE")
        expected = {"half": x / 2} if number == "1" else {"half": x / 2, "error": x * x}
        assert run.get_metrics() == pytest.approx(expected)


def test_optuna_in_a_job(job: Run, python: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FAILING)
    trials = _submit(job.experiment.workspace, tmp_path, python)
    details = ended(trials)
    assert details["status"] == "Completed", details.get("error")
    found = {run.display_name: run for run in trials.get_children()}
    states = {name: run.status for name, run in found.items()}
    failed = {"fails and is left so": "Failed", "fails last": "Failed"}
    assert states == {"0": "Completed", "1": "Completed", "2": "Completed", **failed}
    assert [found[number].get_tags()["state"] for number in "012"] == ["COMPLETE", "PRUNED", "COMPLETE"]


def test_lightning_in_a_job(job: Run) -> None:
    details = ended(job)
    assert details["status"] == "Completed", details.get("error")
    _check_lightning(job)
    assert list(job.get_children()) == []
