"""A process sees that what it has loaded is another file by now."""

import gc
import os
import sys
import threading
import time
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


def test_modules_that_threads_load_meanwhile():
    """A dispatcher loads some of its modules when they are first needed, in threads."""
    stop = threading.Event()

    def load():
        number = 0
        while not stop.is_set():
            number = (number + 1) % 5000
            name = f"trainmaster_test_module_{number}"
            if sys.modules.pop(name, None) is None:
                sys.modules[name] = ModuleType(name)

    threads = [threading.Thread(target=load) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    gc.callbacks.append(lambda phase, info: time.sleep(0))
    try:
        for thread in threads:
            thread.start()
        code = OwnCode()
        for _ in range(200):
            code.has_changed()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        gc.callbacks.pop()
        sys.setswitchinterval(interval)
        for name in [name for name in sys.modules if name.startswith("trainmaster_test_module_")]:
            del sys.modules[name]
