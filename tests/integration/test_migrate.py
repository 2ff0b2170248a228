"""`trainmaster migrate` as people call it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

GOOD = "from azureml.core import Run\nrun = Run.get_context()\nrun.log('loss', 1)\n"
BAD = "from azureml.pipeline.core import Pipeline\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "mine"
    for path, text in {
        "good.py": GOOD,
        "sub/bad.py": BAD,
        "none.py": "import os\n",
        ".gitignore": "left_out/\n*_copy.py\n",
        "left_out/bad.py": BAD,
        "bad_copy.py": BAD,
        "env/pyvenv.cfg": "",
        "env/lib/bad.py": BAD,
        ".ipynb_checkpoints/bad.py": BAD,
        "notes.txt": BAD,
    }.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
    return place


def migrate(*words: object, code: int, **variables: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "trainmaster.cli", "migrate", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **variables},
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done


def test_a_folder_is_walked_and_left_as_it_is(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = migrate(folder, code=1)
    assert f"{folder}/good.py" in done.stdout
    assert done.stdout.count("bad.py") == 1
    assert "1            missing            azureml.pipeline.core.Pipeline: There are no pipelines" in done.stdout
    assert done.stdout.endswith("3 files, 2 with azureml: 3 uses work, 0 work differently, 1 are missing.\n")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_problems_alone(folder: Path) -> None:
    done = migrate("--problems", folder, code=1)
    assert "good.py" not in done.stdout
    assert "sub/bad.py" in done.stdout


def test_exit_codes(folder: Path) -> None:
    migrate(folder / "good.py", code=0)
    assert "1 file, none with azureml." in migrate(folder / "none.py", code=0).stderr
    (folder / "broken.py").write_text("import azureml\nclass\n")
    done = migrate(folder, code=2)
    # The others are told all the same.
    assert "cannot be read" in done.stdout and "Run.log" in done.stdout
    assert "does not exist" in migrate(folder / "nothing", code=2).stderr
    migrate(code=2)


def test_json(folder: Path) -> None:
    data = json.loads(migrate(folder, "--json", code=1).stdout)
    assert data["summary"] == {
        "files": 3,
        "files_with_uses": 2,
        "works": 3,
        "differs": 0,
        "absent": 1,
        "unreadable": 0,
    }
    uses = {Path(file["path"]).name: file["uses"] for file in data["files"]}
    assert uses["none.py"] == []
    assert uses["good.py"][2] == {
        "line": 3,
        "column": 1,
        "name": "Run.log",
        "kind": "call",
        "verdict": "works",
        "sentence": None,
    }


def test_without_its_packages_it_says_what_to_install(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "shadow").mkdir()
    (tmp_path / "shadow/libcst.py").write_text("raise ImportError('No module named libcst')")
    done = migrate(folder, code=2, PYTHONPATH=str(tmp_path / "shadow"))
    assert "pip install 'trainmaster[migrate]'" in done.stderr


def test_what_is_said_to_work_works(folder: Path) -> None:
    """The script with nothing but 'works' runs, with the names of v1."""
    done = subprocess.run(
        [sys.executable, str(folder / "good.py")], capture_output=True, text=True, check=True, timeout=120
    )
    assert "loss" in done.stdout
