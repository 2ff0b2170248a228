"""Makes the pictures of the studio: `.venv/bin/python docs/pictures/studio.py [page ...]`.

Every picture shows runs that were really run, in a workspace of their own, in the distribution's chromium.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from trainmaster import (
    Estimator,
    Experiment,
    HyperDriveConfig,
    PrimaryMetricGoal,
    RandomParameterSampling,
    Run,
    Workspace,
    choice,
    loguniform,
    uniform,
)

IMAGES = Path(__file__).parents[1] / "images"
PROGRAMS = Path(sys.executable).parent
MOST_BYTES = 120_000
TRAIN = """
import argparse, math, os, random
from trainmaster import Run

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--momentum", type=float, default=0.0)
parser.add_argument("--decay", type=float, default=0.0)
parser.add_argument("--features", type=int, default=6)
parser.add_argument("--epochs", type=int, default=120)
parser.add_argument("--break-at", type=int, default=-1)
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
    if epoch == options.break_at:
        raise ValueError("the loss is not a number: reduce --lr")
    random.shuffle(training)
    norm = 0.0
    for start in range(0, len(training), 16):
        batch = training[start:start + 16]
        errors = [(guess(x) - y, x) for x, y in batch]
        slopes = [sum(e * x[i] for e, x in errors) / len(batch) + options.decay * w for i, w in enumerate(weights)]
        speed = [options.momentum * s - options.lr * g for s, g in zip(speed, slopes)]
        weights = [w + s for w, s in zip(weights, speed)]
        norm += sum(g * g for g in slopes) ** 0.5
    loss, accuracy = measure(training)
    val_loss, val_accuracy = measure(validation)
    run.log("loss", loss); run.log("accuracy", accuracy)
    run.log("val_loss", val_loss); run.log("val_accuracy", val_accuracy)
    run.log("gradient_norm", norm)
    if epoch % 5 == 0:
        print(f"\\033[36mepoch {epoch:3d}\\033[0m  loss {loss:.4f}  validation {val_loss:.4f}, {val_accuracy:.3f}")
os.makedirs("outputs", exist_ok=True)
with open("outputs/weights.txt", "w") as file:
    file.write("\\n".join(map(str, weights)))
"""


def describe(project: Path, arguments: dict[str, float]) -> Estimator:
    """The script with some arguments."""
    return Estimator(
        str(project), entry_script="train.py", script_params=arguments, compute_target="local", user_managed=True
    )


def submit_runs(workspace: Workspace, project: Path) -> list[Run]:
    """Some runs of two experiments, one of which fails."""
    settings: list[tuple[str, dict[str, float]]] = [
        ("moons", {"--lr": 0.03, "--momentum": 0.9}),
        ("moons", {"--lr": 0.1, "--momentum": 0.9}),
        ("moons", {"--lr": 0.3, "--momentum": 0.5, "--decay": 0.001}),
        ("moons", {"--lr": 1.0, "--momentum": 0.9, "--features": 12}),
        ("moons", {"--lr": 3.0, "--momentum": 0.95, "--break-at": 38}),
        ("moons-wide", {"--lr": 0.1, "--features": 24}),
        ("moons-wide", {"--lr": 0.3, "--features": 24, "--momentum": 0.9}),
        *(
            ("moons-wide", {"--lr": lr, "--features": 32, "--decay": decay})
            for lr in (0.03, 1)
            for decay in (0.0001, 0.01)
        ),
        *(("moons-long", {"--lr": lr, "--epochs": 400}) for lr in (0.01, 0.03, 0.1, 0.3, 1)),
    ]
    runs = [Experiment(workspace, name).submit(describe(project, given)) for name, given in settings]
    for run in runs:
        run.wait_for_completion(raise_on_error=False)
    return runs


def submit_sweep(workspace: Workspace, project: Path) -> Run:
    """A sweep of 32 trials."""
    space = {
        "--lr": loguniform(-5, 1),
        "--momentum": uniform(0, 0.95),
        "--features": choice(2, 4, 8, 16, 32),
        "--decay": loguniform(-9, -3),
    }
    config = HyperDriveConfig(
        estimator=describe(project, {"--epochs": 40}),
        hyperparameter_sampling=RandomParameterSampling(space),
        primary_metric_name="val_loss",
        primary_metric_goal=PrimaryMetricGoal.MINIMIZE,
        max_total_runs=32,
        max_concurrent_runs=2,
    )
    sweep = Experiment(workspace, "moons-sweep").submit(config)
    sweep.wait_for_completion()
    return sweep


@contextmanager
def open_page() -> Iterator[Page]:
    """A page of the own studio, signed in."""
    command = [str(PROGRAMS / "trainmaster"), "studio", "--json", "--no-browser"]
    studio = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert studio.stdout is not None
    link = json.loads(studio.stdout.readline())["url"]
    try:
        with sync_playwright() as playwright:
            arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(link)
            page.wait_for_url("**/w/**")
            yield page
            browser.close()
    finally:
        studio.terminate()
        studio.wait()


def save(picture: bytes, path: Path) -> None:
    """Writes a picture; a large one with 256 colours, which is a third of the size and looks almost the same."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.save(path, optimize=True)
    if path.stat().st_size > MOST_BYTES:
        image.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(path, f"{path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        os.environ["TRAINMASTER_HOME"] = f"{place}/home"
        project = Path(place, "moons")
        project.mkdir()
        (project / "train.py").write_text(TRAIN)
        workspace = Workspace.from_config()
        sweep = submit_sweep(workspace, project)
        runs = submit_runs(workspace, project)
        best = runs[1]
        pages = {
            "runs": "runs?filter=not%20experiment%20%3D%20%27moons-sweep%27",
            "run": f"runs/{runs[4].id}",
            "charts": f"runs/{best.id}/charts",
            "logs": f"runs/{best.id}/logs",
            "compare": f"compare?runs={','.join(run.id for run in runs[:4])}",
            "sweep": f"sweeps/{sweep.id}",
        }
        IMAGES.mkdir(exist_ok=True)
        chosen = sys.argv[1:] or [*pages, "dark"]
        with open_page() as page:
            base = page.url.rpartition("/")[0]
            for name in chosen:
                theme = "dark" if name == "dark" else "light"
                page.emulate_media(color_scheme=theme)
                page.goto(f"{base}/{pages['charts' if name == 'dark' else name]}")
                page.get_by_role("heading").first.wait_for()
                # Charts are drawn after their values have arrived.
                page.wait_for_timeout(4000)
                save(page.screenshot(), IMAGES / f"studio-{name}.png")
        subprocess.run([str(PROGRAMS / "trainmaster"), "down"], check=True)


if __name__ == "__main__":
    main()
