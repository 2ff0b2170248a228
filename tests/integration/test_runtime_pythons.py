"""The job side on every CPython of this machine: the kit alone, without site-packages, warnings as errors."""

import functools
import glob
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from trainmaster.environments.kit import ensure_kit
from trainmaster.job.script.journal import read_records

SCRIPT = """
import os, sys, warnings
from azureml.core import Run, VERSION
from azureml.core.run import Run as SameRun, _OfflineRun
from azureml.exceptions import AzureMLException, UserErrorException
import trainmaster
from trainmaster import Run as OwnRun

assert Run is SameRun is OwnRun and VERSION == trainmaster.__version__
run = Run.get_context()
assert isinstance(run, Run) and not isinstance(run, _OfflineRun)
for n in range(3):
    run.log("loss", 1.0 / (n + 1))
run.log("text", u"z\\u00fcg", step=4)
for value in (float("nan"), float("-inf"), 2 ** 70, True, None):
    run.log("odd", value)
run.log_list("list", (n for n in range(3)))
run.log_row("row", x=1, y="a")
run.log_table("table", {"x": [1, 2], "y": [None, 0.5]})
run.log_confusion_matrix("cm", {"schema_type": "confusion_matrix", "data": {}})
run.tag("k", "v"); run.add_properties({"p": "1"}); run.display_name = "named"
with open("a.txt", "w") as file:
    file.write("contents")
run.upload_file("outputs/a.txt", "a.txt")
run.upload_folder("all", ".")
with open("i.gif", "wb") as file:
    file.write(b"GIF89a")
run.log_image("image", path="i.gif")
with run.child_run("kid") as child:
    child.log("m", 1)
try:
    run.log("m", [1])
    raise SystemExit("a list was taken")
except UserErrorException as error:
    assert "log_list" in error.message
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    run.log("strange", 1j)
assert [w.filename for w in caught] == [__file__], caught
assert run.get_metrics()["loss"] == [1.0, 0.5, 1.0 / 3], run.get_metrics()
assert "outputs/a.txt" in run.get_file_names()
run.download_file("outputs/a.txt", "b.txt")
from azureml.core import Dataset
files = Dataset.File.from_files("a.txt")
assert files.to_path() == ["/a.txt"] and trainmaster.Dataset is Dataset
with files.mount() as mounted:
    assert os.listdir(mounted.mount_point) == ["a.txt"]
assert run.input_datasets == run.output_datasets == {}
pid = os.fork()
if pid == 0:
    run.log("forked", 1)
    os._exit(0)
os.waitpid(pid, 0)
for statement, words in (
    ("import azureml.core.nonsense", "azureml.core.nonsense"),
    ("from azureml.core import nonsense", "nonsense"),
    ("import azureml.nonsense", "azureml.nonsense"),
):
    try:
        exec(statement)
        raise SystemExit(statement)
    except ImportError as error:
        assert words in str(error), error

# What a job does not have can be imported, named and asked for, and says so when it is used.
import azureml.core
from azureml.core import Dataset, Datastore, Environment, Experiment, Keyvault, Model, Webservice, Workspace
from azureml.core.authentication import MsiAuthentication
from azureml.core.compute import ComputeTarget
from azureml.core.dataset import Dataset as SameDataset
from azureml.core.model import Model as SameModel
from azureml.core.workspace import Workspace as SameWorkspace
from azureml.data import FileDataset, OutputFileDatasetConfig, TabularDataset
from azureml.telemetry import set_diagnostics_collection
from azureml.train.dnn import PyTorch
from azureml.train.hyperdrive import HyperDriveConfig, choice
from azureml.train.hyperdrive.policy import BanditPolicy
import azureml.train.hyperdrive.runconfig
assert Dataset is SameDataset and Model is SameModel and Workspace is SameWorkspace
assert not isinstance(run, Workspace) and azureml.core.model.Model is Model
assert Workspace.from_config().name == "lab"
set_diagnostics_collection(send_diagnostics=True)
for use, kind, words in (
    (lambda: Workspace("a", "b", "c"), AzureMLException, "workspace 'c' cannot be opened in this job"),
    (lambda: Workspace.create("c"), AzureMLException, "Workspace.create cannot be used"),
    (lambda: MsiAuthentication(), AzureMLException, "trainmaster-azureml"),
    (lambda: Model.get_model_path("m"), AzureMLException, "there is no model 'm' here"),
    (lambda: Model(None), AzureMLException, "by its name or its id"),
    (lambda: Model(None, "m"), AzureMLException, "TRAINMASTER_SOCKET is not set"),
    (lambda: Webservice(None), AzureMLException, "Webservice cannot be used in this job"),
    (lambda: choice(1, 2), AzureMLException, "azureml.train.hyperdrive.choice cannot be used in this job"),
    (lambda: BanditPolicy(slack_factor=0.1), AzureMLException, "BanditPolicy cannot be used in this job"),
    (lambda: azureml.train.hyperdrive.runconfig.HyperDriveConfig(), AzureMLException, "cannot be used in this job"),
    (lambda: PyTorch("."), AzureMLException, "PyTorch cannot be used in this job"),
    (lambda: run.experiment.workspace.datastores, AzureMLException, "datastores are not available here"),
    (lambda: Datastore.get(None, "d"), AzureMLException, "TRAINMASTER_SOCKET is not set"),
    (lambda: Datastore.register_dbfs(None, "d"), AzureMLException, "Datastore.register_dbfs cannot be used"),
    (lambda: run.experiment.workspace.datasets, AttributeError, "the workspace has no 'datasets'"),
    (lambda: run.experiment.submit, AttributeError, "the experiment has no 'submit'"),
):
    try:
        use()
        raise SystemExit(words)
    except kind as error:
        assert words in str(error), error
assert not hasattr(sys.modules["azureml.core"], "anything")
import azureml.other
assert azureml.other.here
run.complete()
"""

ONNX = """
import sys
import trainmaster
try:
    import trainmaster.onnx
except ImportError as error:
    assert sys.version_info < (3, 7) and "needs Python 3.7 or newer" in str(error), error
    sys.exit()
assert sys.version_info >= (3, 7)
estimator = type("BaseEstimator", (), {"__module__": "sklearn.base"})()
try:
    trainmaster.onnx.export(estimator, [[1.0]], "outputs/model.onnx")
except trainmaster.onnx.OnnxException as error:
    assert "pip_packages=['skl2onnx', 'onnx', 'onnxruntime']" in error.hint, error.hint
else:
    raise SystemExit("converted with nothing")
"""

KILLED = """
import os, signal
from azureml.core import Run
run = Run.get_context()
for n in range(10000):
    run.log("n", n)
os.kill(os.getpid(), signal.SIGKILL)
"""

OFFLINE = """
from azureml.core import Run
run = Run.get_context()
assert run.id.startswith("OfflineRun_") and not hasattr(run, "experiment")
run.log("loss", 0.5)
run.upload_file("a.py", __file__)
from azureml.core.model import Model
import trainmaster
assert trainmaster.Model is Model and Model.get_model_path(__file__) == __file__
"""


@functools.cache
def pythons():
    """Every CPython from 3.6 on that can be found, one per minor version."""
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    candidates = sorted(glob.glob(os.path.join(root, "versions", "3.*", "bin", "python")))
    candidates += filter(None, (shutil.which(f"python3.{minor}") for minor in range(6, 20)))
    found = {}
    for candidate in candidates:
        question = "import sys, platform; print(platform.python_implementation(), *sys.version_info[:2])"
        answer = subprocess.run([candidate, "-c", question], capture_output=True, text=True, check=False).stdout
        match = re.fullmatch(r"CPython 3 (\d+)\n", answer)
        if match and int(match[1]) >= 6:
            found.setdefault(int(match[1]), candidate)
    return [found[minor] for minor in sorted(found)]


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    return ensure_kit(tmp_path_factory.mktemp("workspace"))


@pytest.fixture(params=pythons(), ids=lambda path: Path(path).parent.parent.name)
def start(request, kit, tmp_path):
    """Starts a script as a job does; returns the finished process."""
    folder = tmp_path / "runs" / "run_1"
    for place in ("files", "journals", "code/outputs", "code/logs"):
        (folder / place).mkdir(parents=True)
    (folder / "files" / "outputs").symlink_to("../code/outputs")
    (folder / "files" / "logs").symlink_to("../code/logs")
    other = tmp_path / "installed" / "azureml"
    (other / "other").mkdir(parents=True)
    (other / "__init__.py").write_text("raise ImportError('this part of the package must not be the first')")
    (other / "other" / "__init__.py").write_text("here = True")
    (other / "core").mkdir()
    for name in ("__init__", "model", "workspace"):
        (other / "core" / f"{name}.py").write_text("raise ImportError('another SDK is none of ours')")
    script = tmp_path / "script.py"

    def start(text, **variables):
        script.write_text(text)
        env = {"PYTHONPATH": f"{kit}:{tmp_path / 'installed'}", "PATH": os.environ["PATH"], **variables}
        # Without site: whatever is not in the standard library or the kit cannot be imported.
        return subprocess.run(
            [request.param, "-S", "-W", "error", str(script)],
            cwd=folder / "code",
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    start.variables = {
        "TRAINMASTER_RUN_ID": "run_1",
        "TRAINMASTER_RUN_FOLDER": str(folder),
        "TRAINMASTER_EXPERIMENT": "digits",
        "TRAINMASTER_WORKSPACE": "lab",
        "TRAINMASTER_RANK": "0",
    }
    start.folder = folder
    return start


def _records(folder):
    return [r for path in sorted((folder / "journals").iterdir()) for r in read_records(path)]


def test_there_is_a_python_to_test_with():
    assert pythons()


def test_a_script_of_both_names(start):
    done = start(SCRIPT, **start.variables)
    assert (done.returncode, done.stderr) == (0, "")
    records = _records(start.folder)
    kinds = {kind: [r for r in records if r["k"] == kind] for kind in {r["k"] for r in records}}
    assert [r["v"] for r in kinds["metric"] if r["n"] == "loss"] == [1.0, 0.5, 1 / 3]
    assert [r["v"] for r in kinds["metric"] if r["n"] == "text"] == ["züg"]
    odd = [r["v"] for r in kinds["metric"] if r["n"] == "odd"]
    assert odd[0] != odd[0] and odd[1:] == [float("-inf"), 2**70, True, None]
    assert kinds["table"][0]["v"] == {"x": [1, 2], "y": [None, 0.5]}
    assert [r["v"] for r in kinds["state"]] == ["Completed"]
    assert [r["v"] for r in kinds["metric"] if r.get("r")] == [1]
    assert [r["v"] for r in kinds["metric"] if r["n"] == "forked"] == [1]
    assert len(list((start.folder / "journals").iterdir())) == 2
    for name in ("outputs/a.txt", "all/a.txt", "i.gif", kinds["json"][0]["v"]):
        assert (start.folder / "files" / name).is_file()
    assert (start.folder / "code" / "b.txt").read_text() == "contents"


def test_what_log_returned_from_survives_a_kill(start):
    done = start(KILLED, **start.variables)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [r["v"] for r in _records(start.folder)] == list(range(10000))


def test_outside_of_a_job(start):
    done = start(OFFLINE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Attempted to log metric 'loss': 0.5\nAttempted to upload ")


def test_onnx_needs_nothing_to_say_what_it_needs(start):
    process = start(ONNX, **start.variables)
    assert process.returncode == 0, process.stderr
    assert os.listdir(start.folder / "code" / "outputs") == []
