"""Makes the pictures of the studio: `.venv/bin/python docs/pictures/studio.py [picture ...]`.

Every picture shows runs, a sweep and a service that were really run, on a server with a few users, in the
distribution's chromium. `--all FOLDER` takes every page in light and dark, wide and as on a phone, into a folder, for
somebody who changes the pages and wants to look at all of them.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from PIL import Image
from playwright.sync_api import Page

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.conftest import until
from tests.server_people import add_user, grant
from tests.service_bench import onnx_times
from tests.studio import WORKSPACE, Studio, run_studio
from tests.studio_team import ask, use_workspace

from trainmaster import (
    AciWebservice,
    Dataset,
    Environment,
    Estimator,
    Experiment,
    Gloo,
    HyperDriveConfig,
    InferenceConfig,
    MedianStoppingPolicy,
    Model,
    PrimaryMetricGoal,
    PyTorch,
    RandomParameterSampling,
    Run,
    Workspace,
    choice,
    loguniform,
    uniform,
)

IMAGES = Path(__file__).parents[1] / "images"
MOST_BYTES = 120_000

# A small classifier of two moons, trained by hand.
MOONS = '''"""Logistic regression on radial features."""
import argparse, math, os, random
from trainmaster import Run

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--momentum", type=float, default=0.0)
parser.add_argument("--decay", type=float, default=0.0)
parser.add_argument("--features", type=int, default=6)
parser.add_argument("--epochs", type=int, default=120)
options = parser.parse_args()
run = Run.get_context()
random.seed(7)


def moon(n):
    side = n % 2
    angle = random.random() * math.pi
    x = math.cos(angle) if side == 0 else 1 - math.cos(angle)
    y = math.sin(angle) if side == 0 else 0.5 - math.sin(angle)
    return [x + random.gauss(0, 0.18), y + random.gauss(0, 0.18)], side


centres = [(random.uniform(-1, 2), random.uniform(-0.7, 1.2)) for _ in range(options.features)]
expand = lambda p: [1, *p, *(math.exp(-2 * ((p[0] - a) ** 2 + (p[1] - b) ** 2)) for a, b in centres)]
data = [(expand(p), side) for p, side in map(moon, range(240))]
training, validation = data[:160], data[160:]
weights = [0.0] * len(data[0][0])
speed = [0.0] * len(weights)
guess = lambda x: 1 / (1 + math.exp(-max(-30, min(30, sum(w * v for w, v in zip(weights, x))))))


def measure(rows):
    losses = [-math.log(max(1e-9, guess(x) if y else 1 - guess(x))) for x, y in rows]
    right = sum((guess(x) > 0.5) == bool(y) for x, y in rows)
    return sum(losses) / len(rows), right / len(rows)


for epoch in range(options.epochs):
    random.shuffle(training)
    norm = 0.0
    for start in range(0, len(training), 16):
        batch = training[start : start + 16]
        errors = [(guess(x) - y, x) for x, y in batch]
        slopes = [sum(e * x[i] for e, x in errors) / len(batch) + options.decay * w for i, w in enumerate(weights)]
        speed = [options.momentum * s - options.lr * g for s, g in zip(speed, slopes)]
        weights = [w + s for w, s in zip(weights, speed)]
        norm += sum(g * g for g in slopes) ** 0.5
    loss, accuracy = measure(training)
    val_loss, val_accuracy = measure(validation)
    run.log("loss", loss), run.log("accuracy", accuracy)
    run.log("val_loss", val_loss), run.log("val_accuracy", val_accuracy)
    run.log("gradient_norm", norm)
os.makedirs("outputs", exist_ok=True)
with open("outputs/weights.txt", "w") as file:
    file.write("\\n".join(map(str, weights)))
'''

# Logs what a network on images would; goes on until a file is there.
IMAGES_SCRIPT = """
import math, os, random, sys, time
from trainmaster import Run

run = Run.get_context()
random.seed(3)
run.log("parameters", 11173962)
for step in range(800):
    rate = 0.05 if step < 400 else 0.005
    warm = min(1, step / 40)
    loss = 2.3 * math.exp(-step / 260) * (1 if step < 400 else 0.8) + random.gauss(0, 0.08) * math.exp(-step / 400)
    run.log("train/loss", abs(loss), step=step)
    run.log("train/accuracy", min(0.999, 1 - abs(loss) / 2.6 + random.gauss(0, 0.01)), step=step)
    run.log("train/learning_rate", rate * warm, step=step)
    if step % 25 == 24:
        print(f"epoch {step // 25:2d}  loss {abs(loss):.4f}", flush=True)
        run.log("val/loss", 0.3 + 2.0 * math.exp(-step / 220), step=step)
        run.log("val/accuracy", 0.93 - 0.83 * math.exp(-step / 200), step=step)
        run.log("val/top 5 accuracy", 0.995 - 0.5 * math.exp(-step / 150), step=step)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.1)
"""

# Two ranks, the second of which fails.
RANKS = """
import logging, math, os, random, sys, time
from trainmaster import Run

rank = int(os.environ["RANK"])
run = Run.get_context()
random.seed(rank)
logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)


def check_loss(loss, step):
    if math.isnan(loss):
        raise FloatingPointError(f"the loss is {loss} at step {step}")


for epoch in range(12):
    for step in range(6):
        loss = 2.1 * math.exp(-(epoch * 6 + step) / 40) + random.gauss(0, 0.01)
        logging.info("epoch %d step %d loss %.4f, %d images/s", epoch, step, loss, 1400 + random.randrange(20))
        run.log("train/loss", loss)
        time.sleep(0.01)
    accuracy = 0.9 - 0.8 * math.exp(-epoch / 5)
    run.log("val/accuracy", accuracy)
    print(f"\\033[32m✓ epoch {epoch}\\033[0m validated accuracy {accuracy:.3f}", flush=True)
if rank == 1:
    check_loss(float("nan"), 72)
time.sleep(600)
"""

WAITING = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]):\n    time.sleep(0.1)\n"

SCORE = """
import json
import numpy
from azureml.core.model import Model
from inference_schema.parameter_types.numpy_parameter_type import NumpyParameterType
from inference_schema.parameter_types.standard_py_parameter_type import StandardPythonParameterType
from inference_schema.schema_decorators import input_schema


def init():
    global weight
    with open(Model.get_model_path("churn")) as file:
        weight = json.load(file)["weight"]


@input_schema("features", NumpyParameterType(numpy.array([[0.4, 12.0, 3.0]])))
@input_schema("threshold", StandardPythonParameterType(0.5))
@input_schema("customer", StandardPythonParameterType({"plan": "monthly", "active": True}))
def run(features, threshold, customer):
    scores = (features.sum(axis=1) * weight).round(3)
    return {"scores": scores.tolist(), "churns": (scores > threshold).tolist(), "plan": customer["plan"]}
"""

# A report that draws itself, as plots in HTML do.
REPORT = """<!doctype html><title>Calibration</title>
<style>body { font: 15px system-ui; margin: 2rem } svg { border: 1px solid #ccc }</style>
<h1>Calibration of churn</h1><p>Predicted against observed share, by tenths of the customers.</p>
<svg id="plot" width="520" height="320" xmlns="http://www.w3.org/2000/svg"></svg>
<script>
  const plot = document.getElementById("plot");
  const observed = [0.03, 0.08, 0.17, 0.22, 0.34, 0.41, 0.55, 0.63, 0.78, 0.91];
  plot.innerHTML = '<line x1="40" y1="280" x2="500" y2="20" stroke="#bbb"/>' + observed.map((share, n) =>
    `<circle cx="${63 + 46 * n}" cy="${280 - 260 * share}" r="6" fill="#2456c7"/>`).join("");
</script>
"""


@dataclass
class Scene:
    """What the pictures show."""

    studio: Studio
    folder: Path
    ids: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, text: str) -> str:
        """A folder with a script."""
        place = self.folder / name
        place.mkdir(exist_ok=True)
        (place / "train.py").write_text(text)
        return str(place)

    def use(self, who: str) -> Any:
        return use_workspace(self.studio, who, self.folder / f"cache-{who}")

    @property
    def gate(self) -> str:
        return str(self.folder / "gate")


def set_up(scene: Scene) -> None:
    """Users, targets and quotas."""
    studio = scene.studio
    for name, role in (("ana", "contributor"), ("jonas", "contributor"), ("mei", "contributor"), ("ada", "owner")):
        studio._tokens[name] = add_user(studio.server, name)
        grant(studio.server, WORKSPACE, name, role)
    size: dict[str, Any] = {"engine": "local", "nodes": 8, "cpus_per_node": 2, "gpus_per_node": 0}
    ask(studio, "PUT", "/targets/cpu-cluster", {**size, "options": {"class": "LocalCompute"}})
    ssh = {"engine": "ssh", "nodes": 3, "cpus_per_node": 32, "gpus_per_node": 4}
    ask(
        studio,
        "PUT",
        "/targets/gpu-boxes",
        {**ssh, "options": {"hosts": ["ada", "grace", "hedy"], "class": "SshCompute"}},
    )
    slurm = {"engine": "slurm", "nodes": 12, "cpus_per_node": 64, "gpus_per_node": 8}
    options = {"partition": "long", "login": "login.cluster.lan", "class": "SlurmCompute"}
    ask(studio, "PUT", "/targets/slurm-long", {**slurm, "options": options})
    ask(studio, "PATCH", "/quotas", {"owner": "mei", "runs": 2, "nodes": 4})


def submit(workspace: Workspace, experiment: str, code: str, name: str, **settings: Any) -> Run:
    """Submit a script under a name."""
    maker = PyTorch if "distributed_training" in settings else Estimator
    estimator = maker(code, entry_script="train.py", compute_target="cpu-cluster", user_managed=True, **settings)
    run = Experiment(workspace, experiment).submit(estimator)
    run.display_name = name
    return run


def train(scene: Scene) -> None:
    """Runs of several people that have ended, and one that goes on."""
    moons = scene.write("moons", MOONS)
    settings: dict[str, list[tuple[str, str, dict[str, float]]]] = {
        "ana": [
            ("moons", "momentum 0.9", {"--lr": 0.03, "--momentum": 0.9}),
            ("moons", "faster", {"--lr": 0.1, "--momentum": 0.9}),
            ("moons", "with decay", {"--lr": 0.3, "--momentum": 0.5, "--decay": 0.001}),
            ("moons", "12 features", {"--lr": 1.0, "--momentum": 0.9, "--features": 12}),
        ],
        "jonas": [
            ("moons-wide", f"wide {features}, lr {lr}", {"--lr": lr, "--features": features})
            for features in (16, 24, 32)
            for lr in (0.1, 1)
        ],
        "mei": [("moons-long", f"400 epochs, lr {lr}", {"--lr": lr, "--epochs": 400}) for lr in (0.01, 0.1, 1)],
    }
    runs: list[Run] = []
    for who, wanted in settings.items():
        with scene.use(who) as workspace:
            mine = [
                submit(workspace, experiment, moons, name, script_params=given) for experiment, name, given in wanted
            ]
            for run in mine:
                run.wait_for_completion(raise_on_error=False)
                run.tag("stage", "baseline" if run is mine[0] else "trial")
            runs += mine
    scene.ids["best"], scene.ids["compared"] = runs[1].id, ",".join(run.id for run in runs[:4])
    with scene.use("ana") as workspace:
        going = submit(
            workspace,
            "cifar10",
            scene.write("images", IMAGES_SCRIPT),
            "resnet18, learning rate 0.05",
            script_params={scene.gate: ""},
        )
        scene.ids["going"] = going.id
        broken = submit(
            workspace,
            "cifar10",
            scene.write("ranks", RANKS),
            "resnet18 on two nodes",
            node_count=2,
            distributed_training=Gloo(),
        )
        broken.description = "The baseline, twice as **fast**."
        broken.tag("dataset", "cifar10")
        broken.tag("model", "resnet18")
        broken.wait_for_completion(raise_on_error=False)
        scene.ids["broken"] = broken.id
        summaries = f"/runs/{going.id}/metric-summaries"
        until(lambda: any(each["count"] >= 800 for each in ask(scene.studio, "GET", summaries)["metrics"]))


def sweep(scene: Scene) -> None:
    """A sweep of 32 trials, some of which are cut."""
    space = {
        "--lr": loguniform(-5, 1),
        "--momentum": uniform(0, 0.95),
        "--features": choice(2, 4, 8, 16, 32),
        "--decay": loguniform(-9, -3),
    }
    with scene.use("ana") as workspace:
        estimator = Estimator(
            scene.write("moons", MOONS),
            entry_script="train.py",
            script_params={"--epochs": 60},
            compute_target="cpu-cluster",
            user_managed=True,
        )
        config = HyperDriveConfig(
            estimator=estimator,
            hyperparameter_sampling=RandomParameterSampling(space, {"seed": 5}),
            policy=MedianStoppingPolicy(evaluation_interval=5, delay_evaluation=10),
            primary_metric_name="val_loss",
            primary_metric_goal=PrimaryMetricGoal.MINIMIZE,
            max_total_runs=32,
            max_concurrent_runs=4,
        )
        run = Experiment(workspace, "moons-sweep").submit(config)
        run.wait_for_completion()
        scene.ids["sweep"] = run.id


def deploy(scene: Scene) -> None:
    """A model of a run, with files of many kinds, its ONNX form, a dataset, and a service."""
    folder = scene.folder
    code = folder / "scoring"
    code.mkdir()
    (code / "score.py").write_text(SCORE)
    (folder / "model.json").write_text(json.dumps({"weight": 0.05}))
    (folder / "model.onnx").write_bytes(onnx_times(2.0, 3))
    (folder / "report.html").write_text(REPORT)
    (folder / "customers.csv").write_text(
        "age,plan,churns\n" + "".join(f"{20 + n},monthly,{n % 3 == 0}\n" for n in range(40))
    )
    cells = [
        {"cell_type": "markdown", "source": "# Churn\nWhich customers leave?"},
        {"cell_type": "code", "execution_count": 1, "source": "len(customers)", "outputs": [
            {"output_type": "execute_result", "data": {"text/plain": "40"}}]},
    ]  # fmt: skip
    (folder / "explore.ipynb").write_text(
        json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    environment = Environment("scoring")
    environment.python.user_managed_dependencies = True
    environment.python.interpreter_path = sys.executable
    with scene.use("jonas") as workspace:
        store = workspace.get_default_datastore()
        store.upload_files([str(folder / "customers.csv")], target_path="churn")
        Dataset.Tabular.from_delimited_files((store, "churn/customers.csv")).register(workspace, "customers")
        run = Experiment(workspace, "churn-training").start_logging(snapshot_directory=None)
        run.display_name = "gradient boosting"
        for value in (0.71, 0.8, 0.84):
            run.log("auc", value)
        for name in ("model.json", "model.onnx", "report.html", "customers.csv", "explore.ipynb"):
            run.upload_file(f"outputs/{name}", str(folder / name))
        run.complete()
        scene.ids["files"] = run.id
        model = run.register_model("churn", "outputs/model.json", tags={"stage": "live"}, model_framework="ScikitLearn")
        onnx = run.register_model("churn-onnx", "outputs/model.onnx", model_framework="Onnx")
        tensor = {"type": "float32", "shape": ["batch", 3]}
        onnx.add_facts(
            {
                "opset": 17,
                "framework": "ScikitLearn",
                "framework_version": "1.5",
                "exporter": "skl2onnx 1.17",
                "converted_from": "churn:1",
                "inputs": [{"name": "features", **tensor}],
                "outputs": [{"name": "probabilities", "type": "float32", "shape": ["batch", 2]}],
                "parity": {"max_absolute": 1.2e-7, "max_relative": 3e-7, "tolerance": 1e-5, "batches": [4, 1]},
            }
        )
        inference = InferenceConfig("score.py", source_directory=str(code), environment=environment)
        deployment = AciWebservice.deploy_configuration(auth_enabled=True, description="Who leaves next month?")
        service = Model.deploy(workspace, "churn-scoring", [model], inference, deployment)
        service.wait_for_deployment()
        environment.register(workspace)


def fill_queue(scene: Scene) -> None:
    """Jobs of several people, one of which waits."""
    code = scene.write("waiting", WAITING)
    wanted = {
        "ana": ["resnet50 baseline", "resnet50 cosine"],
        "jonas": ["churn xgboost"],
        "mei": ["bert-small lr 3e-5", "bert-small lr 5e-5", "bert-small lr 1e-4"],
    }
    for who, names in wanted.items():
        with scene.use(who) as workspace:
            for name in names:
                submit(workspace, "finetuning", code, name, script_params={scene.gate: ""})
    states = ["Running"] * 6 + ["Queued"]
    until(lambda: [run["status"] for run in ask(scene.studio, "GET", "/queue")["queue"]] == states)


def try_service(page: Page) -> None:
    """Fill the form of the service, and send it."""
    page.get_by_role("button", name="Add a row").click()
    for number, value in enumerate(("2.5", "-3", "3")):
        page.get_by_label(f"features, row 2, {number}").fill(value)
    page.get_by_role("button", name="Send").click()
    page.get_by_text("200 OK").wait_for()


def jump_to_error(page: Page) -> None:
    """Search, and go to the error."""
    page.get_by_placeholder("Search").fill("validated")
    page.get_by_role("button", name="Jump to the error").click()
    page.wait_for_timeout(1000)


@dataclass(frozen=True)
class Picture:
    """One page."""

    path: str
    who: str = "ada"
    size: tuple[int, int] = (1280, 800)
    prepare: Callable[[Page], None] | None = None
    theme: Literal["light", "dark"] = "light"


def list_pictures(ids: dict[str, str]) -> dict[str, Picture]:
    """The pictures of the guide and the README."""
    charts = f"runs/{ids['going']}/charts?smooth=0.7"
    return {
        "runs": Picture("runs?filter=metric.val_loss%20%3C%200.25%20or%20experiment%20%3D%20cifar10"),
        "run": Picture(f"runs/{ids['broken']}", size=(1280, 860)),
        "run-dark": Picture(f"runs/{ids['broken']}", size=(1280, 860), theme="dark"),
        "charts": Picture(charts, size=(1280, 860)),
        "charts-dark": Picture(charts, size=(1280, 860), theme="dark"),
        "logs": Picture(f"runs/{ids['broken']}/logs", size=(1100, 690), prepare=jump_to_error),
        "files": Picture(f"runs/{ids['files']}/files?file=outputs/report.html", size=(1280, 640)),
        "compare": Picture(f"compare?runs={ids['compared']}"),
        "sweep": Picture(f"sweeps/{ids['sweep']}", size=(1280, 860)),
        "queue": Picture("queue", size=(1280, 860)),
        "service": Picture("services/churn-scoring/try", "ana", (1280, 640), try_service),
    }


def list_all_pages(ids: dict[str, str]) -> dict[str, str]:
    """Every page and part of a page."""
    run, sweep_id, compared = ids["broken"], ids["sweep"], ids["compared"]
    pages = {
        name: name for name in ("runs", "sweeps", "queue", "models", "services", "environments", "data", "settings")
    }
    pages |= {f"run-{part}": f"runs/{run}/{part}" for part in ("", "charts", "logs", "files", "code", "environment")}
    pages |= {
        f"sweep-{tab}": f"sweeps/{sweep_id}?tab={tab}" for tab in ("trials", "charts", "decisions", "specification")
    }
    pages |= {f"compare-{tab}": f"compare?runs={compared}&tab={tab}" for tab in ("table", "curves", "code", "charts")}
    for name in ("report.html", "customers.csv", "explore.ipynb", "model.onnx"):
        pages[f"file-{name}"] = f"runs/{ids['files']}/files?file=outputs/{name}"
    pages |= {"going": f"runs/{ids['going']}", "going-charts": f"runs/{ids['going']}/charts"}
    pages |= {"model": "models/churn", "model-onnx": "models/churn-onnx", "origin": f"runs/{ids['files']}"}
    pages |= {"target": "queue/cpu-cluster", "service": "services/churn-scoring"}
    pages |= {"groups": "runs?group=experiment&differ=1"}
    return pages


def take(studio: Studio, picture: Picture, path: Path) -> None:
    """Open a page, and write its picture."""
    width, height = picture.size
    page = studio.open(picture.path, picture.who, theme=picture.theme, width=width, height=height)
    page.get_by_role("heading").first.wait_for()
    if picture.prepare:
        picture.prepare(page)
    # Charts are drawn after their values have arrived.
    page.wait_for_timeout(2500)
    save(page.screenshot(), path)
    page.context.close()


def save(picture: bytes, path: Path) -> None:
    """Writes a picture; a large one with 256 colours, which is a third of the size and looks almost the same."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.save(path, optimize=True)
    if path.stat().st_size > MOST_BYTES:
        image.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(path, f"{path.stat().st_size / 1000:.0f} kB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", nargs="*", help="names of pictures; default: all")
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="take every page into this folder instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trainmaster-") as place, run_studio(Path(place) / "root") as studio:
        scene = Scene(studio, Path(place))
        for part in (set_up, sweep, train, deploy, fill_queue):
            began = time.monotonic()
            part(scene)
            print(f"{part.__name__}: {time.monotonic() - began:.0f} s", flush=True)
        try:
            if options.all:
                take_all(scene, options.all)
            else:
                pictures = list_pictures(scene.ids)
                for name in options.pictures or pictures:
                    take(studio, pictures[name], IMAGES / f"studio-{name}.png")
        finally:
            Path(scene.gate).touch()
            with scene.use("jonas") as workspace:
                workspace.webservices["churn-scoring"].delete()


def take_all(scene: Scene, folder: Path) -> None:
    """Every page, light and dark, wide and as on a phone."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes: list[tuple[str, tuple[int, int], Literal["light", "dark"]]] = [
        ("light", (1280, 900), "light"),
        ("dark", (1280, 900), "dark"),
        ("wide", (2200, 1100), "light"),
        ("phone", (390, 844), "dark"),
    ]
    for kind, size, theme in sizes:
        for name, path in list_all_pages(scene.ids).items():
            take(scene.studio, Picture(path, "administrator", size, theme=theme), folder / f"{kind}-{name}.png")


if __name__ == "__main__":
    main()
