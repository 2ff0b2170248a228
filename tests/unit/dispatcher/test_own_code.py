"""A process sees that what it has loaded is another file by now."""

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from trainmaster.dispatcher.own_code import OwnCode


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module of ours that this process has loaded."""
    path = tmp_path / "loaded.py"
    path.write_text("one = 1\n")
    module = ModuleType("trainmaster.loaded_for_a_test")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return path


def test_nothing_has_changed(loaded: Path) -> None:
    code = OwnCode()
    assert not code.has_changed() and not code.has_changed()


@pytest.mark.parametrize("change", ["written over", "put in its place", "touched", "removed"])
def test_a_file_has(loaded: Path, change: str) -> None:
    code = OwnCode()
    if change == "written over":
        loaded.write_text("another = 2\n")
    elif change == "put in its place":
        (loaded.parent / "new.py").write_text("another = 2\n")
        (loaded.parent / "new.py").rename(loaded)
    elif change == "touched":
        os.utime(loaded, (1, 1))
    else:
        loaded.unlink()
    assert code.has_changed()


def test_what_is_loaded_later_counts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = OwnCode()
    module = ModuleType("trainmaster.loaded_later_for_a_test")
    module.__file__ = str(tmp_path / "later.py")
    (tmp_path / "later.py").write_text("")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert not code.has_changed()
    (tmp_path / "later.py").write_text("more")
    assert code.has_changed()


def test_what_others_have_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("trainmaster_of_somebody_else")
    module.__file__ = str(tmp_path / "other.py")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    code = OwnCode()
    (tmp_path / "other.py").write_text("new")
    assert not code.has_changed()
