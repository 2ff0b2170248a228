"""Datastores from inside real jobs whose Python has nothing of Trainmaster installed."""

from __future__ import annotations

import json

import pytest
from tests.conftest import ended

from trainmaster import Dataset, Datastore, Environment
from trainmaster.environments.pythons import all_pythons
from trainmaster.shared.folders import WorkspaceFolder

SCRIPT = """
import json, os, sys
from azureml.core import Dataset, Datastore, Run
run = Run.get_context()
ws = run.experiment.workspace
os.makedirs("made/sub")
for name in ("made/a.txt", "made/sub/b.txt"):
    with open(name, "w") as file:
        file.write(name)
seen = {}
for key, ds in (("folder", ws.get_default_datastore()), ("far", Datastore.get(ws, "far"))):
    there = sys.argv[1]
    reference = ds.upload("made", there, show_progress=False)
    with open("made/a.txt", "a") as file:
        file.write("+")
    ds.upload_files(["made/a.txt"], target_path=there, show_progress=False)
    kept = ds.download("kept-" + key, prefix=there, show_progress=False)
    ds.upload_files(["made/a.txt", "made/sub/b.txt"], target_path=there, overwrite=True, show_progress=False)
    seen[key] = {
        "name": ds.name,
        "reference": [reference.path_on_datastore, reference.datastore.name, str(reference)[:23]],
        "kept": [kept, open(os.path.join("kept-" + key, there, "a.txt")).read()],
        "counts": [ds.download("kept-" + key, there, show_progress=False), ds.download("none", "no/such"),
                   ds.download("part", prefix=there + "/sub/b", overwrite=True, show_progress=False)],
        "new": [ds.download("kept-" + key, there, overwrite=True, show_progress=False),
                open(os.path.join("kept-" + key, there, "a.txt")).read()],
    }
    with open("made/a.txt", "w") as file:
        file.write("made/a.txt")
default = ws.get_default_datastore()
seen["names"] = sorted(ws.datastores) == sorted(ws.datastores()) and "far" in ws.datastores
seen["type"] = [default.datastore_type, default.account_name, default.path("x").as_mount().mode]
files = Dataset.File.from_files((default, sys.argv[1] + "/**/*.txt"))
seen["dataset"] = sorted(files.to_path())
for use in (lambda: Datastore.get(ws, "nothing"), lambda: default.upload("no-such"), lambda: default.path("../x"),
            lambda: Dataset.File.from_files((ws.datastores["far"], "x")), lambda: Datastore.register(ws, "a", "b")):
    try:
        use()
        raise SystemExit("not refused")
    except Exception as error:
        seen.setdefault("refused", []).append(error.headline)
try:
    import trainmaster.sdk.workspace.workspace
    raise SystemExit("the full Trainmaster is here")
except ImportError:
    pass
seen["left"] = os.listdir(os.path.join(os.environ["TRAINMASTER_RUN_FOLDER"], "errands"))
print("SEEN " + json.dumps(seen))
"""


def oldest_python():
    pythons = all_pythons()
    environment = Environment("oldest")
    environment.python.user_managed_dependencies = True
    environment.python.interpreter_path = pythons[min(pythons, key=lambda each: tuple(map(int, each.split("."))))]
    return {"environment_definition": environment, "user_managed": False}


@pytest.mark.parametrize("kind", ["oldest", "built"])
def test_a_script_uses_the_datastores_of_its_workspace(shared, launch, tmp_path, kind):
    settings = oldest_python() if kind == "oldest" else {"user_managed": False, "pip_packages": ["six"]}
    # To Trainmaster an address like any other, which only a driver can open.
    far = Datastore.register(shared, "far", f"simplecache::file://{tmp_path}/far", overwrite=True)
    run = launch(SCRIPT, script_params={kind: ""}, **settings)
    assert ended(run)["status"] == "Completed", run.get_details_with_logs()
    log = run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"]
    copied = {"kept": [2, "made/a.txt"], "counts": [0, 0, 1], "new": [2, "made/a.txt+"]}
    seen = json.loads(log.partition("SEEN ")[2])
    for name, found in (("workspaceblobstore", seen.pop("folder")), ("far", seen.pop("far"))):
        assert found == {"name": name, "reference": [kind, name, "$AZUREML_DATAREFERENCE_"], **copied}
    assert seen == {
        "names": True,
        "type": ["AzureBlob", "local", "mount"],
        "dataset": ["/a.txt", "/sub/b.txt"],
        "refused": [
            "Workspace 'shared' has no datastore 'nothing'",
            "The folder to upload, no-such, does not exist",
            "The path '../x' leaves the datastore",
            "datastore 'far' cannot be used inside this job",
            "azureml.core.datastore.Datastore.register cannot be used in this job",
        ],
        "left": [],
    }
    for store in (shared.get_default_datastore(), far):
        got = tmp_path / "got" / store.name
        assert store.download(str(got), prefix=kind, show_progress=False) == 2
        assert (got / kind / "a.txt").read_text() == "made/a.txt+"
    files = Dataset.File.from_files((shared.get_default_datastore(), f"{kind}/**/*.txt"))
    assert sorted(files.to_path()) == ["/a.txt", "/sub/b.txt"], "a job names the files of a dataset as a client does"


def test_what_the_driver_says_reaches_the_script(shared, launch, tmp_path):
    (tmp_path / "taken").write_text("a file")
    Datastore.register(shared, "taken", f"simplecache::file://{tmp_path}/taken/below", overwrite=True)
    script = """
from azureml.core import Datastore, Run
ds = Datastore.get(Run.get_context().experiment.workspace, "taken")
open("a.txt", "w").close()
try:
    ds.upload_files(["a.txt"])
except Exception as error:
    print(type(error).__name__, error.headline)
"""
    run = launch(script, **oldest_python())
    assert ended(run)["status"] == "Completed", run.get_details_with_logs()
    log = run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"]
    assert log.startswith("DatastoreException ") and "a.txt" in log, log


def test_a_killed_script_leaves_nothing_on_its_way(shared, launch):
    script = """
import os, signal
from trainmaster.job.script.datastores import _StorageRequest
from trainmaster.job.script.store_sources import Source
open("a.txt", "w").close()
_StorageRequest().__enter__().add((Source("a.txt", "a.txt"),))
assert os.listdir(os.path.join(os.environ["TRAINMASTER_RUN_FOLDER"], "errands"))
os.kill(os.getpid(), signal.SIGKILL)
"""
    run = launch(script, **oldest_python())
    assert "SIGKILL" in ended(run)["error"]["message"]
    folder = WorkspaceFolder(shared.path).run(run.id).path
    assert (folder / "code" / "a.txt").exists() and not (folder / "errands").exists()
