"""Scripts on other machines ask their workspace: secrets, datasets, datastores, models. Real sshd, a real Slurm."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from tests.cluster.hosts import SHARED, Hosts
from tests.cluster.slurm import MiniSlurm, variables
from tests.conftest import contents as contents_of
from tests.conftest import dispatcher_handle, end_workspace, ended, files_below, until, wait_gone

from trainmaster import (
    ComputeTarget,
    Dataset,
    Datastore,
    Environment,
    Estimator,
    Experiment,
    Model,
    SshCompute,
    Workspace,
)
from trainmaster.environments.pythons import all_pythons
from trainmaster.sdk.compute.slurm import SlurmCompute
from trainmaster.sdk.estimators.distributed_training import Gloo
from trainmaster.shared.folders import WorkspaceFolder

VALUE = "hunter22-öäü"
HEAD = "import json, os, sys\nfrom azureml.core import Run\nrun = Run.get_context()\n"


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with Hosts(tmp_path_factory.mktemp("cluster") / "hosts", 2) as made:
        yield made


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with MiniSlurm(tmp_path_factory.mktemp("slurm") / "cluster", nodes=1) as made, variables(made):
        yield made


@pytest.fixture(scope="module")
def ws(tmp_path_factory, hosts, slurm):
    workspace = Workspace.create("elsewhere", path=tmp_path_factory.mktemp("elsewhere") / "ws", show_output=False)
    names = [host.name for host in hosts]
    known = {"config_file": hosts.ssh_config, "lost_after_seconds": 30}
    ComputeTarget.create(workspace, "pair", SshCompute.configuration(names, **known))
    ComputeTarget.create(workspace, "sharing", SshCompute.configuration(names, shared_folder=f"{SHARED}/tm", **known))
    there = {"shared_folder": str(workspace.path.parent), "cpus_per_node": 1}
    ComputeTarget.create(workspace, "cluster", SlurmCompute.configuration("main", max_nodes=1, **there))
    workspace.get_default_keyvault().set_secret("token", VALUE)
    yield workspace
    end_workspace(workspace.path)


@pytest.fixture
def send(ws, tmp_path):
    numbers = iter(range(100))

    def submit(script, **settings):
        source = tmp_path / f"source{next(numbers)}"
        source.mkdir()
        (source / "train.py").write_text(HEAD + script)
        settings = {"compute_target": "pair", "user_managed": True, **settings}
        return Experiment(ws, "asking").submit(Estimator(str(source), entry_script="train.py", **settings))

    return submit


def log(run, name="azureml-logs/70_driver_log.txt"):
    return run.get_details_with_logs()["logFiles"].get(name, "")


def completed(run):
    details = ended(run)
    assert details["status"] == "Completed", (details.get("error"), log(run))
    return log(run)


@pytest.mark.parametrize("target", ["pair", "sharing", "cluster"])
def test_a_secret(send, target):
    script = "value = run.get_secret('token')\nprint(len(value), value)\nprint(run.get_secret('none'))\n"
    told = completed(send(script, compute_target=target))
    assert f"{len(VALUE)} *" in told
    assert "hunter22" not in told


# What a script sees of the workspace, as one JSON line; the model in outputs/ is too large to come by itself so soon.
WORKSPACE = """
from concurrent.futures import ThreadPoolExecutor
from azureml.core import Dataset, Model
ws = run.experiment.workspace
seen = {"keyvault": len(ws.get_default_keyvault().get_secret("token"))}
files = Dataset.get_by_name(ws, "numbers")
seen["files"] = sorted(os.path.basename(path) for path in files.to_path())
seen["downloaded"] = [open(path).read() for path in sorted(files.download("numbers"))]
with ThreadPoolExecutor(4) as crowd:
    seen["folders"] = [os.listdir(path) for path in crowd.map(Model.get_model_path, ["folder"] * 4)]
seen["model"] = open(os.path.join(Model(ws, "folder", version=1).download("got"), "a.txt")).read()
with open("outputs/weights", "wb") as file:
    file.truncate(65 << 20)
seen["registered"] = run.register_model("weights", "outputs/weights", tags={"from": "job"}).id
os.makedirs("parts/sub")
for name in ("parts/a", "parts/sub/b", "parts/c"):
    open(name, "w").write(name)
with run.child_run("part") as child:
    child.upload_file("results/a", "parts/a")
    seen["child"] = child.register_model("of_child", "results/a").id
seen["parts"] = Model.register(ws, "parts", "parts", child_paths=["a", "sub"]).id
seen["one"] = open(Model(ws, "parts").path + "/sub/b").read()
seen["names"] = sorted({model.name for model in Model.list(ws)})
Model(ws, "parts").add_tags({"kind": "test"})
try:
    Model(ws, "nothing")
except Exception as error:
    seen["error"] = type(error).__name__
try:
    Model.register(ws, "no/such/path", "missing")
except Exception as error:
    seen["missing"] = type(error).__name__
seen["left"] = os.listdir(os.environ["TRAINMASTER_LETTERS"])
seen["mode"] = oct(os.stat(os.environ["TRAINMASTER_LETTERS"]).st_mode & 0o777)
print("SEEN " + json.dumps(seen))
"""


@pytest.fixture(scope="module")
def contents(ws, tmp_path_factory):
    """A dataset of files in the workspace's own datastore, and a model."""
    place = tmp_path_factory.mktemp("data")
    for number in range(3):
        (place / f"{number}.csv").write_text(f"n\n{number}\n")
    (place / "other.txt").write_text("not of the dataset")
    store = ws.get_default_datastore()
    store.upload(str(place), "numbers", show_progress=False)
    Dataset.File.from_files((store, "numbers/*.csv")).register(ws, "numbers")
    (place / "folder").mkdir()
    (place / "folder" / "a.txt").write_text("a")
    Model.register(ws, str(place / "folder"), "folder")


def oldest_python():
    """The job side works on Python 3.6: on the cluster, whose nodes have what this machine has."""
    pythons = all_pythons()
    environment = Environment("oldest")
    environment.python.user_managed_dependencies = True
    environment.python.interpreter_path = pythons[min(pythons, key=lambda each: tuple(map(int, each.split("."))))]
    return {"environment_definition": environment, "user_managed": False}


@pytest.mark.parametrize("target", ["pair", "cluster"])
def test_datasets_and_models(ws, send, contents, target):
    run = send(WORKSPACE, compute_target=target, **(oldest_python() if target == "cluster" else {}))
    told = completed(run)
    seen = json.loads(told.partition("SEEN ")[2])
    version = Model(ws, "parts").version
    assert seen == {
        "keyvault": len(VALUE),
        "files": ["0.csv", "1.csv", "2.csv"],
        "downloaded": ["n\n0\n", "n\n1\n", "n\n2\n"],
        "folders": [["a.txt"]] * 4,
        "model": "a",
        "registered": f"weights:{version}",
        "child": f"of_child:{version}",
        "parts": f"parts:{version}",
        "one": "parts/sub/b",
        "names": ["folder", "of_child", "parts", "weights"],
        "error": "ModelNotFoundException",
        "missing": "ModelPathNotFoundException",
        "left": [],
        "mode": "0o700",
    }
    weights = Model(ws, "weights")
    assert (weights.run_id, weights.tags) == (run.id, {"from": "job"})
    assert Path(weights.path).stat().st_size == 65 << 20
    assert Model(ws, "parts").tags == {"kind": "test"}
    (child,) = run.get_children()
    assert child.get_file_names() == ["results/a"]
    assert Path(Model(ws, "of_child").path).read_text() == "parts/a"
    parts = Path(Model(ws, "parts").path)
    assert sorted(str(path.relative_to(parts)) for path in parts.rglob("*") if path.is_file()) == ["a", "sub/b"]


STORES = """
from azureml.core import Datastore
ws = run.experiment.workspace
os.makedirs("made/sub")
for name in ("made/a", "made/sub/b"):
    open(name, "w").write(name)
seen = {}
for store in (ws.get_default_datastore(), ws.datastores["far"]):
    open("made/a", "w").write("made/a")
    reference = store.upload("made", sys.argv[1], show_progress=False)
    open("made/a", "w").write("newer")
    store.upload_files(["made/a"], target_path=sys.argv[1], show_progress=False)
    count = store.download("got", prefix=sys.argv[1] + "/a", overwrite=True, show_progress=False)
    seen[store.name] = [reference.path_on_datastore, count, open("got/" + sys.argv[1] + "/a").read()]
    seen[store.name].append(store.download("none", "no/such", show_progress=False))
seen["seen"] = ws.get_default_datastore().visible_folder() is not None
place = os.environ["TRAINMASTER_RUN_FOLDER"]
seen["left"] = [os.listdir(os.path.join(place, "errands")), os.listdir(os.environ["TRAINMASTER_LETTERS"])]
print("SEEN " + json.dumps(seen))
"""


@pytest.mark.parametrize("target", ["pair", "cluster"])
def test_datastores(ws, send, target, tmp_path):
    far = Datastore.register(ws, "far", f"simplecache::file://{tmp_path}/far", overwrite=True)
    settings = oldest_python() if target == "cluster" else {}
    run = send(STORES, compute_target=target, script_params={target: ""}, **settings)
    seen = json.loads(completed(run).partition("SEEN ")[2])
    one = [target, 1, "made/a", 0]
    # The cluster's nodes see the workspace's own folder, the hosts do not.
    assert seen == {"workspaceblobstore": one, "far": one, "seen": target == "cluster", "left": [[], []]}
    for store in (ws.get_default_datastore(), far):
        got = tmp_path / "got" / store.name
        assert store.download(str(got), prefix=target, show_progress=False) == 2
        assert ((got / target / "a").read_text(), (got / target / "sub" / "b").read_text()) == ("made/a", "made/sub/b")


KILLED = """
import glob, signal, time
child = os.fork()
if not child:
    # It has asked, and would look for the answer next, which may be there already.
    os.listdir = lambda path: os.kill(os.getpid(), signal.SIGSTOP)
    run.get_secret("token")
letters = os.environ["TRAINMASTER_LETTERS"]
while not glob.glob(letters + "/*.answer"):
    time.sleep(0.05)
os.kill(child, signal.SIGKILL)
print("here", [oct(os.stat(path).st_mode & 0o777) for path in glob.glob(letters + "/*.answer")], flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("target", ["pair", "cluster"])
def test_nothing_of_a_secret_stays(send, ws, hosts, target):
    """A process is killed while it waits: its answer is taken by nobody."""
    run = send(KILLED, compute_target=target)
    until(lambda: "here" in log(run), what="the script's line")
    assert "here ['0o600']" in log(run)
    run.cancel()
    assert ended(run)["status"] == "Canceled"
    places = [ws.path / "runs" / run.id, *(host.home for host in hosts)]
    assert [path for place in places for path in traces(place)] == []
    assert not (ws.path / "runs" / run.id / "letters").exists()


def traces(place):
    """The files below `place` that hold the secret."""
    return [str(path) for path in files_below(place) if VALUE.encode() in contents_of(path)]


def test_each_node_gets_its_own_answer(send):
    script = "value = run.get_secret('token')\nprint('length', len(value))\n"
    run = send(script, node_count=2, distributed_training=Gloo())
    details = ended(run)
    assert details["status"] == "Completed", details.get("error")
    for rank in range(2):
        assert f"length {len(VALUE)}" in log(run, f"azureml-logs/70_driver_log_{rank}.txt")


GATED = """
import time
print("here", flush=True)
while not os.path.exists({gate!r}):
    time.sleep(0.05)
print("length", len(run.get_secret("token")))
"""


def waits_for_an_answer(run, folder):
    """Until a letter of the run is below `folder`."""
    until(lambda: any(run.id in str(path) and path.suffix == ".ask" for path in files_below(folder)), what="a letter")


def test_the_dispatcher_is_killed_and_the_next_one_answers(send, ws, hosts, tmp_path):
    gate = tmp_path / "gate"
    there = send(GATED.format(gate="/tmp/shared/gate"), compute_target="sharing")
    cluster = send(GATED.format(gate=str(gate)), compute_target="cluster")
    for run in (there, cluster):
        until(lambda run=run: "here" in log(run), what="the script's line")
    handle = dispatcher_handle(WorkspaceFolder(ws.path))
    signal.pidfd_send_signal(handle, signal.SIGKILL)
    wait_gone(handle)
    gate.touch()
    (hosts.shared / "gate").touch()
    waits_for_an_answer(there, hosts.shared)
    waits_for_an_answer(cluster, ws.path / "runs")
    for run in (there, cluster):
        assert f"length {len(VALUE)}" in completed(run)


def test_a_host_is_cut_off_while_its_script_asks(send, hosts):
    gate = "/tmp/gate"
    run = send(GATED.format(gate=gate))
    until(lambda: "here" in log(run), what="the script's line")
    (host,) = [host for host in hosts if host.processes(run.id)]
    host.cut()
    (host.folder / "tmp" / "gate").touch()
    waits_for_an_answer(run, host.home)
    host.mend()
    assert f"length {len(VALUE)}" in completed(run)
