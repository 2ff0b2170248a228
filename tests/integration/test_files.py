"""The files of a run: names, downloads, logs; nothing but its files can be had."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.backends import folder_of
from tests.conftest import ended

from trainmaster.cli.entry import run as run_command
from trainmaster.job.errors import UserErrorException

BACKENDS = ("local", "server")

WRITES = """
import os
from trainmaster import Run
run = Run.get_context()
os.makedirs('outputs/deep', exist_ok=True)
open('outputs/model.txt', 'w').write('model')
open('outputs/deep/more.bin', 'wb').write(bytes(range(256)))
os.makedirs('logs', exist_ok=True)
open('logs/events.txt', 'w').write('events')
open('elsewhere.txt', 'w').write('not kept')
run.upload_file('extra/named.txt', 'elsewhere.txt')
print('printed')
"""
NAMES = [
    "azureml-logs/70_driver_log.txt",
    "extra/named.txt",
    "logs/events.txt",
    "outputs/deep/more.bin",
    "outputs/model.txt",
]


@pytest.fixture
def run(launch):
    run = launch(WRITES)
    ended(run)
    return run


def test_names(run):
    assert run.get_file_names() == NAMES


def test_what_is_left_elsewhere_is_named_listed_and_downloaded(launch, shared, project, tmp_path, capsys):
    project(part="X = 1\n", same="Y = 1\n")
    script = (
        "import os, part, same\n"
        "os.makedirs('deep/er')\n"
        "for n in range(7): open(f'deep/er/{n}.bin', 'wb').write(b'x' * 1000 * n)\n"
        "open('part.py', 'w').write('X = 2\\n')\n"
        "open('outputs/kept', 'w').write('kept')\n"
    )
    run = launch(script)
    (warning,) = ended(run)["warnings"]
    assert warning["message"] == (
        "The script left 8 files (20.5 kB) outside of outputs/ and logs/: deep/er/6.bin (5.9 kB), "
        "deep/er/5.bin (4.9 kB), deep/er/4.bin (3.9 kB), deep/er/3.bin (2.9 kB), deep/er/2.bin (2.0 kB), 3 more. "
        f"'trainmaster download {run.id} code/' copies them."
    )
    assert "outputs/kept" in run.get_file_names() and not [n for n in run.get_file_names() if n.startswith("code/")]
    where = ["--workspace", shared.backend.location, "--json"]
    assert run_command(["files", run.id, "--all", *where]) == 0
    left = {each["name"]: each["bytes"] for each in json.loads(capsys.readouterr().out)}
    assert left.pop("outputs/kept") == 4
    assert {name: size for name, size in left.items() if name.startswith("code/")} == {
        "code/part.py": 6,
        **{f"code/deep/er/{n}.bin": 1000 * n for n in range(7)},
    }
    assert run_command(["download", run.id, "code/deep", "-o", str(tmp_path / "got"), *where]) == 0
    assert (tmp_path / "got/code/deep/er/6.bin").stat().st_size == 6000
    assert not (tmp_path / "got/code/part.py").exists()
    run.download_file("code/part.py", str(tmp_path / "part.py"))
    assert (tmp_path / "part.py").read_text() == "X = 2\n"
    for name in ("code/../spec.json", "code/missing", "code"):
        with pytest.raises(UserErrorException, match="has no file"):
            run.download_file(name)


def test_a_script_that_keeps_to_its_outputs_leaves_nothing(launch, project):
    project(part="X = 1\n")
    assert ended(launch("import part\nopen('outputs/kept', 'w').write('kept')\n"))["warnings"] == []


def test_names_while_it_runs(launch, gate):
    here = gate("here")
    run = launch(WRITES + here.wait)
    here.await_arrival()
    assert run.get_file_names() == NAMES
    here.open()
    ended(run)
    assert run.get_file_names() == NAMES


def test_download_one(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run.download_file("outputs/model.txt")
    assert Path("model.txt").read_text() == "model"
    run.download_file("outputs/model.txt", "there/renamed.txt")
    assert Path("there/renamed.txt").read_text() == "model"
    run.download_file("outputs/deep/more.bin", "there")
    assert Path("there/more.bin").read_bytes() == bytes(range(256))
    run.download_file("outputs/model.txt", "new-folder/")
    assert Path("new-folder/model.txt").read_text() == "model"


def test_download_several(run, tmp_path):
    def below(name):
        return sorted(str(p.relative_to(tmp_path / name)) for p in (tmp_path / name).rglob("*") if p.is_file())

    run.download_files(output_directory=tmp_path / "all")
    assert below("all") == NAMES
    run.download_files(prefix="outputs", output_directory=tmp_path / "some")
    assert below("some") == NAMES[3:]
    run.download_files(prefix="outputs", output_directory=tmp_path / "short", append_prefix=False)
    assert below("short") == ["deep/more.bin", "model.txt"]
    run.download_files(prefix="outputs/model", output_paths=["given.txt"], output_directory=tmp_path / "given")
    assert below("given") == ["given.txt"]
    with pytest.raises(UserErrorException, match="2 files"):
        run.download_files(prefix="outputs", output_paths=["one"])


def test_logs(run, tmp_path):
    found = run.get_all_logs(tmp_path / "logs")
    assert [str(Path(path).relative_to(tmp_path / "logs")) for path in found] == [NAMES[0], NAMES[2]]
    assert Path(found[0]).read_text() == "printed\n"


@pytest.mark.parametrize(
    "name",
    ["nothing.txt", "outputs", "../spec.json", "outputs/../../spec.json", "/etc/passwd", "", ".", "a\0b", "x" * 10_000],
)
def test_what_is_no_file_of_the_run(run, tmp_path, name):
    with pytest.raises(UserErrorException, match="has no file"):
        run.download_file(name, tmp_path / "got")
    assert not (tmp_path / "got").exists()


def test_links_and_pipes_are_no_files(launch, tmp_path):
    (tmp_path / "secret").write_text("secret")
    run = launch(
        f"""
import os
os.makedirs('outputs', exist_ok=True)
os.symlink({str(tmp_path / "secret")!r}, 'outputs/outside')
os.symlink({str(tmp_path)!r}, 'outputs/folder')
os.symlink('../../spec.json', 'outputs/spec')
os.symlink('nowhere', 'outputs/dangling')
os.symlink('real', 'outputs/inside')
os.symlink('.', 'outputs/loop')
os.mkfifo('outputs/pipe')
open('outputs/real', 'w').write('real')
"""
    )
    assert ended(run)["status"] == "Completed"
    assert run.get_file_names() == ["azureml-logs/70_driver_log.txt", "outputs/inside", "outputs/real"]
    run.download_files(output_directory=tmp_path / "got")
    assert (tmp_path / "got/outputs/inside").read_text() == "real"
    for name in ("outputs/outside", "outputs/folder/secret", "outputs/spec", "outputs/pipe", "outputs/dangling"):
        with pytest.raises(UserErrorException, match="has no file"):
            run.download_file(name, tmp_path / "leak")


def test_target_that_is_in_the_way(run, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserErrorException, match="cannot be copied"):
        run.download_file("outputs/model.txt", tmp_path / "file" / "below")
    assert (tmp_path / "file").read_text() == "in the way"


def test_files_of_failed_and_killed_scripts_are_kept(launch):
    run = launch(WRITES + "\nos.kill(os.getpid(), 9)")
    assert ended(run)["status"] == "Failed"
    assert run.get_file_names() == NAMES


def test_outputs_replaced_by_the_script(launch):
    run = launch("import os, shutil\nshutil.rmtree('outputs', ignore_errors=True)\nopen('outputs', 'w').write('file')")
    assert ended(run)["status"] == "Completed"
    assert "azureml-logs/70_driver_log.txt" in run.get_file_names()


def test_outputs_in_the_snapshot_are_not_outputs_of_the_run(launch, project):
    source = project(train="")
    (source / "outputs").mkdir()
    (source / "outputs" / "old.txt").write_text("of an earlier run")
    (source / ".amlignore").write_text("outputs\n")
    run = launch("open('outputs/new.txt', 'w').write('new')")
    assert ended(run)["status"] == "Completed"
    assert "outputs/new.txt" in run.get_file_names()
    assert "outputs/old.txt" not in run.get_file_names()


def test_uploads_from_outside(run, tmp_path):
    (tmp_path / "note.txt").write_text("later")
    run.upload_file("notes/note.txt", tmp_path / "note.txt")
    assert "notes/note.txt" in run.get_file_names()
    with pytest.raises(UserErrorException):
        run.upload_file("../../escaped.txt", tmp_path / "note.txt")
    assert not list(folder_of(run.experiment.workspace).rglob("escaped.txt"))


def test_outputs_replaced_by_a_link_to_elsewhere(launch, tmp_path):
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key.txt").write_text("key")
    replace = f"import os, shutil\nshutil.rmtree('outputs')\nos.symlink({str(tmp_path / 'private')!r}, 'outputs')"
    run = launch(replace)
    assert ended(run)["status"] == "Completed"
    assert run.get_file_names() == ["azureml-logs/70_driver_log.txt"]
    with pytest.raises(UserErrorException, match="has no file"):
        run.download_file("outputs/key.txt", tmp_path / "leak")


def test_script_that_removes_the_folder_of_its_run(launch):
    run = launch(
        """
import os, shutil, time
folder = os.environ['TRAINMASTER_RUN_FOLDER']
# The last that its agent writes while it runs: what comes into a folder that is being removed would keep it.
while not os.path.exists(folder + '/nodes/0/result.json.part'):
    time.sleep(0.01)
shutil.rmtree(folder, ignore_errors=True)
"""
    )
    details = ended(run)
    assert details["status"] == "Failed"
    assert run.id in details["error"]["message"]
    assert ended(launch(""))["status"] == "Completed"
