import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from trainmaster.job.errors import DatastoreException, UserErrorException, from_wire
from trainmaster.shared.job_spec import DataBinding, DatasetOutput
from trainmaster.shared.records import DatastoreRecord
from trainmaster.storage import stage
from trainmaster.storage.staging import DataPlan, Link, Transfer, plan_data, read_plan, write_plan


@pytest.fixture
def place(tmp_path):
    """A run folder with code in it, a folder store `local`, and stores elsewhere."""

    class Place:
        run = tmp_path / "run"
        code = tmp_path / "run" / "code"
        store = tmp_path / "store"

        def __init__(self):
            self.stores = {
                "local": DatastoreRecord("local", str(tmp_path / "store"), is_default=True),
                "memory": DatastoreRecord("memory", "memory://bucket"),
            }

        def plan(self, *bindings):
            return plan_data(bindings, self.stores, self.run, self.code)

        def do(self, plan, when):
            """What the stage and the agent do; what was said."""
            said = []
            (stage.bring_in if when == "before" else stage.send_back)(plan, said.append)
            if when == "before":
                for link in plan.links:
                    Path(link.path).parent.mkdir(parents=True, exist_ok=True)
                    Path(link.path).symlink_to(link.target)
            return said

    made = Place()
    made.code.mkdir(parents=True)
    (made.store / "set").mkdir(parents=True)
    (made.store / "set" / "a.txt").write_text("a")
    return made


def seen(plan, name="d"):
    return plan.variables[f"AZUREML_DATAREFERENCE_{name}"]


def test_mount_of_a_folder_store_is_the_store_itself(place):
    plan = place.plan(DataBinding("d", "local", "set"))
    assert seen(plan) == str(place.store / "set")
    assert plan == DataPlan(variables=plan.variables, outside=(str(place.store / "set"),))
    assert not plan.before
    assert not plan.after


def test_mount_of_a_file(place):
    plan = place.plan(DataBinding("d", "local", "set/a.txt"))
    assert Path(seen(plan)).read_text() == "a"
    assert not plan.before


@pytest.mark.parametrize("mode", ["mount", "download"])
@pytest.mark.parametrize(
    ("path", "beside"),
    [
        ("st", "It has: set."),
        ("set/a.tx", "set has: a.txt."),
        ("set/deep/er", "set has: a.txt."),
        ("zzz", "It has: set."),
    ],
)
def test_a_path_that_is_not_there_is_refused_and_not_made(place, mode, path, beside):
    with pytest.raises(DatastoreException) as refused:
        place.plan(DataBinding("d", "local", path, mode))
    assert refused.value.headline == f"Datastore 'local' has nothing at {path}"
    assert refused.value.cause == f"Data reference 'd' is to {mode} it. {beside}"
    assert "as_upload" in refused.value.hint
    assert [path.name for path in place.store.rglob("*")] == ["set", "a.txt"]


@pytest.mark.parametrize("mode", ["mount", "download"])
def test_a_datastore_whose_folder_is_not_there_is_not_made(place, tmp_path, mode):
    place.stores["typo"] = DatastoreRecord("typo", str(tmp_path / "typo"))
    with pytest.raises(DatastoreException, match=r"nothing at /(?s:.)*Its folder .*typo does not exist"):
        place.plan(DataBinding("d", "typo", "", mode))
    assert not (tmp_path / "typo").exists()


def test_outputs_are_made(place):
    made = plan_data((), place.stores, place.run, place.code, outputs=(DatasetOutput("d", "local", "new/folder"),))
    place.do(made, "before")
    assert Path(seen(made)) == place.store / "new" / "folder"
    assert Path(seen(made)).is_dir()


@pytest.mark.parametrize(("path", "inner"), [("set", "a.txt"), ("set/a.txt", "")])
def test_mount_at_a_place_is_a_link(place, path, inner):
    plan = place.plan(DataBinding("d", "local", path, path_on_compute="in/data"))
    assert plan.links == (Link(str(place.code / "in/data"), str(place.store / path)),)
    assert seen(plan) == str(place.code / "in/data")
    place.do(plan, "before")
    assert (Path(seen(plan)) / inner).read_text() == "a"


def test_mount_at_an_absolute_place(place, tmp_path):
    binding = DataBinding("d", "local", "set", path_on_compute=str(tmp_path / "mnt" / "data"))
    plan = place.plan(binding)
    assert plan.links == ()
    assert place.do(plan, "before")[0].startswith("Linked ")
    assert (tmp_path / "mnt" / "data" / "a.txt").read_text() == "a"
    assert place.do(plan, "before") == []  # The next run finds the link.
    other = place.plan(DataBinding("d", "local", "", path_on_compute=binding.path_on_compute))
    with pytest.raises(DatastoreException, match=r"path_on_compute .* already exists(?s:.)*link to .*earlier run"):
        place.do(other, "before")


def test_an_absolute_place_in_the_working_folder_is_left_to_the_agent(place):
    plan = place.plan(DataBinding("d", "local", "set", path_on_compute=str(place.code / "x")))
    assert plan.outer_links == ()
    assert plan.links[0].path == str(place.code / "x")


@pytest.mark.parametrize(
    ("path", "local", "inner"),
    [("", "data/d", "set/a.txt"), ("set", "data/d/set", "a.txt"), ("set/a.txt", "data/d/a.txt", "")],
)
@pytest.mark.parametrize("on_compute", ["", "in/data"])
def test_download_copies(place, path, local, inner, on_compute):
    plan = place.plan(DataBinding("d", "local", path, "download", on_compute))
    assert plan.downloads[0].local == str(place.run / local)
    assert seen(plan) == str(place.code / on_compute if on_compute else place.run / local)
    place.do(plan, "before")
    file = Path(seen(plan)) / inner
    assert file.read_text() == "a"
    file.write_text("changed")
    assert (place.store / "set" / "a.txt").read_text() == "a"


def test_download_to_an_absolute_place(place, tmp_path):
    (tmp_path / "abs").mkdir()
    (tmp_path / "abs" / "a.txt").write_text("mine")
    for overwrite, expected in ((False, "mine"), (True, "a")):
        plan = place.plan(DataBinding("d", "local", "set", "download", str(tmp_path / "abs"), overwrite))
        place.do(plan, "before")
        assert (Path(seen(plan)) / "a.txt").read_text() == expected


def test_download_of_an_empty_folder(place):
    (place.store / "empty").mkdir()
    plan = place.plan(DataBinding("d", "local", "empty", "download"))
    place.do(plan, "before")
    assert Path(seen(plan)).is_dir()


def test_download_of_nothing_is_refused_by_name(place):
    with pytest.raises(DatastoreException, match="Datastore 'local' has nothing at missing"):
        place.plan(DataBinding("d", "local", "missing", "download"))


@pytest.mark.parametrize("mode", ["mount", "download"])
def test_a_store_elsewhere_is_copied(place, memory, tree, mode):
    memory.upload(tree({"set/x": b"x", "set/sub/y": b"y", "one": b"1"}), show_progress=False)
    place.stores["memory"] = DatastoreRecord("memory", memory.url)
    folder, file = DataBinding("d", "memory", "set", mode, "data"), DataBinding("e", "memory", "one", mode)
    plan = place.plan(folder, file)
    said = place.do(plan, "before")
    assert (Path(seen(plan)) / "sub" / "y").read_bytes() == b"y"
    assert Path(seen(plan, "e")).read_bytes() == b"1"
    assert "Downloaded set/x (1 bytes)" in said
    assert place.plan(folder, file) == plan
    missing = place.plan(DataBinding("d", "memory", "missing", mode))
    with pytest.raises(DatastoreException, match="Datastore 'memory' has nothing at missing"):
        stage.bring_in(missing, print)


def test_upload_takes_back_what_the_script_wrote(place):
    plan = place.plan(DataBinding("d", "local", "results", "upload"))
    assert seen(plan) == str(place.run / "data" / "d")
    place.do(plan, "before")
    (Path(seen(plan)) / "sub").mkdir()
    (Path(seen(plan)) / "sub" / "r").write_text("1")
    assert plan.after
    place.do(plan, "after")
    assert (place.store / "results" / "sub" / "r").read_text() == "1"


@pytest.mark.parametrize("on_compute", ["out", "./out/deep/", "/abs"])
def test_upload_from_a_place(place, tmp_path, on_compute):
    on_compute = str(tmp_path / "abs") if on_compute == "/abs" else on_compute
    plan = place.plan(DataBinding("d", "local", "r", "upload", on_compute))
    place.do(plan, "before")
    assert seen(plan) == str(place.code / on_compute)
    (place.code / on_compute / "model").write_text("m")
    place.do(plan, "after")
    assert (place.store / "r" / "model").read_text() == "m"


@pytest.mark.parametrize("on_compute", ["outputs", "outputs/model", "logs/x", "model.pkl"])
def test_upload_of_what_has_to_stay_real_in_the_working_folder(place, on_compute):
    plan = place.plan(DataBinding("d", "local", "r", "upload", on_compute))
    assert plan.links == ()
    place.do(plan, "before")
    assert not (place.code / on_compute).exists()
    assert place.do(plan, "after") == [
        f"Nothing to upload to datastore 'local': the script did not write {place.code / on_compute}"
    ]
    file = place.code / on_compute / "f" if "." not in on_compute else place.code / on_compute
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("m")
    place.do(plan, "after")
    assert (place.store / "r" / file.name).read_text() == "m"


def test_upload_of_a_file_at_an_absolute_place(place, tmp_path):
    plan = place.plan(DataBinding("d", "local", "", "upload", str(tmp_path / "new" / "m.bin")))
    place.do(plan, "before")
    Path(seen(plan)).write_text("m")
    place.do(plan, "after")
    assert (place.store / "m.bin").read_text() == "m"


@pytest.mark.parametrize(("overwrite", "expected"), [(False, "a"), (True, "new")])
def test_upload_over_what_is_there(place, overwrite, expected):
    plan = place.plan(DataBinding("d", "local", "set", "upload", overwrite=overwrite))
    place.do(plan, "before")
    (Path(seen(plan)) / "a.txt").write_text("new")
    said = place.do(plan, "after")
    assert any("Skipped" in line for line in said) is not overwrite
    assert (place.store / "set" / "a.txt").read_text() == expected


def test_upload_does_not_follow_links_out(place, tmp_path):
    (tmp_path / "secret").write_text("secret")
    plan = place.plan(DataBinding("d", "local", "r", "upload"))
    place.do(plan, "before")
    (Path(seen(plan)) / "link").symlink_to(tmp_path / "secret")
    assert "a link out of the folder" in place.do(plan, "after")[0]
    assert not (place.store / "r").exists()


@pytest.mark.parametrize(
    "binding",
    [
        DataBinding("d", "local", "../x"),
        DataBinding("../d", "local", "set", "download"),
        DataBinding("d\n", "local"),
        DataBinding("", "local"),
        DataBinding("d", "local", path_on_compute="../x"),
        DataBinding("d", "local", path_on_compute="."),
        DataBinding("d", "local", mode="hdfs"),
    ],
)
def test_bindings_that_are_refused(place, binding):
    with pytest.raises(UserErrorException):
        place.plan(binding)


def test_an_unknown_store(place):
    with pytest.raises(DatastoreException, match="no datastore 'gone'") as caught:
        place.plan(DataBinding("d", "gone"))
    assert "local, memory" in caught.value.hint


def test_no_store_means_the_default_one(place):
    assert seen(place.plan(DataBinding("d", "", "set"))) == str(place.store / "set")


def test_two_bindings_in_each_others_way(place):
    same = DataBinding("d", "local", "set")
    assert len(place.plan(same, same).variables) == 1
    with pytest.raises(UserErrorException, match="have the same name: d"):
        place.plan(same, DataBinding("d", "local"))
    for first, second in (("x", "x"), ("x", "x/y"), ("x/y/z", "./x")):
        with pytest.raises(UserErrorException, match="overlap"):
            place.plan(
                DataBinding("d", "local", path_on_compute=first), DataBinding("e", "local", path_on_compute=second)
            )
    place.plan(DataBinding("d", "local", path_on_compute="x"), DataBinding("e", "local", path_on_compute="xy"))


def test_a_plan_survives_its_file(place):
    record = DatastoreRecord("k", "memory://k", options={"key": "secret", "nested": {"a": [1]}})
    plan = plan_data(
        [DataBinding("d", "k", "x", "download", "in"), DataBinding("e", "local", "set", path_on_compute="/mnt/e")],
        {**place.stores, "k": record},
        place.run,
        place.code,
    )
    file = place.run / "data.json"
    write_plan(plan, file)
    assert read_plan(file) == plan
    assert file.stat().st_mode & 0o777 == 0o600
    assert set(plan.stores) == {"k"}  # A mounted folder needs no key, so none is written for it.


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": "x"}', '{"surprise": 1}'])
def test_a_broken_plan(tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(DatastoreException, match="is not a data plan"):
        read_plan(tmp_path / "plan.json")
    with pytest.raises(DatastoreException, match="is not a data plan"):
        read_plan(tmp_path / "missing.json")


def run_stage(plan, path, when):
    if plan is not None:
        write_plan(plan, path)
    command = [sys.executable, "-P", "-m", "trainmaster.storage.stage", str(path), when]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_stage_as_a_process(place, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("inner/x.txt", "x")
    place.stores["packed"] = DatastoreRecord("packed", f"zip://::{tmp_path / 'a.zip'}")
    plan = place.plan(DataBinding("d", "packed", "inner"), DataBinding("e", "local", "r", "upload"))
    done = run_stage(plan, place.run / "data.json", "before")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Downloaded inner/x.txt (1 bytes)" in done.stdout
    assert (Path(seen(plan)) / "x.txt").read_text() == "x"
    (Path(seen(plan, "e")) / "r.txt").write_text("r")
    done = run_stage(None, place.run / "data.json", "after")
    assert done.returncode == 0
    assert (place.store / "r" / "r.txt").read_text() == "r"


def test_the_stage_says_what_is_wrong(place, tmp_path):
    place.stores["packed"] = DatastoreRecord("packed", f"zip://::{tmp_path / 'missing.zip'}")
    done = run_stage(place.plan(DataBinding("d", "packed", "x")), place.run / "data.json", "before")
    assert done.returncode == 1
    error = from_wire(json.loads(done.stderr.splitlines()[-1]))
    assert isinstance(error, DatastoreException)
    assert "missing.zip cannot be opened" in error.headline
    assert "Traceback" not in done.stdout + done.stderr
    assert error.headline in done.stdout


@pytest.mark.parametrize("when", ["before", "sideways"])
def test_the_stage_without_a_plan(tmp_path, when):
    done = run_stage(None, tmp_path / "missing.json", when)
    assert done.returncode == 1
    assert json.loads(done.stderr.splitlines()[-1])["headline"]


def test_a_stage_told_to_stop_leaves_nothing_half_made(place):
    plan = DataPlan(uploads=(Transfer("local", "out", str(place.run / "up")),), stores={"local": place.stores["local"]})
    (place.run / "up").mkdir()
    for number in range(3000):
        (place.run / "up" / str(number)).write_bytes(b"x" * 4000)
    write_plan(plan, place.run / "data.json")
    command = [sys.executable, "-m", "trainmaster.storage.stage", str(place.run / "data.json"), "after"]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)
    deadline = time.monotonic() + 30
    while not (place.store / "out").exists() and time.monotonic() < deadline:
        os.sched_yield()
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) in (0, 143)
    files = list((place.store / "out").iterdir())
    assert not [file for file in files if file.name.endswith(".part")]
    assert {file.stat().st_size for file in files} <= {4000}
