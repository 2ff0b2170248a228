"""What the manifest of an environment notices, and what it does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainmaster.environments import manifest


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    packages = ("lib/site/one/__init__.py", "lib/site/one/part.so", "lib/site/two/deep/module.py")
    for name in ("bin/python", "lib/python3.11/site-packages/module.py", *packages):
        file = tmp_path / "prefix" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    manifest.record(tmp_path / "prefix")
    return tmp_path / "prefix"


def age(folder: Path) -> None:
    """The clock of a file system may be coarser than this test is fast."""
    os.utime(folder, ns=(1, 1))


def test_untouched(prefix: Path) -> None:
    assert manifest.is_whole(prefix)


@pytest.mark.parametrize("name", ["bin/python", "lib/site/one/part.so", "lib/site/two/deep/module.py"])
def test_a_file_that_is_missing(prefix: Path, name: str) -> None:
    (prefix / name).unlink()
    age((prefix / name).parent)
    assert not manifest.is_whole(prefix)
    assert not manifest.is_whole(prefix), "it was taken for whole the second time"


@pytest.mark.parametrize("name", ["bin/python", "lib/python3.11/site-packages/module.py"])
def test_a_file_that_was_written_over(prefix: Path, name: str) -> None:
    with open(prefix / name, "a") as file:
        file.write("more")
    assert manifest.list_changed(prefix) == [name]
    assert not manifest.is_whole(prefix)


def test_one_that_was_built_by_an_earlier_release(prefix: Path) -> None:
    (prefix / "sizes.json").unlink()
    assert manifest.list_changed(prefix) == [] and manifest.is_whole(prefix)


def test_a_folder_that_is_missing(prefix: Path) -> None:
    (prefix / "lib/site/two").rename(prefix / "elsewhere")
    assert not manifest.is_whole(prefix)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"lib": "x"}', '{"no/such": 1}', "7"])
def test_a_manifest_that_is_broken(prefix: Path, text: str) -> None:
    (prefix / "manifest.json").write_text(text)
    (prefix / "contents.json").write_text(text)
    assert not manifest.is_whole(prefix)


def test_no_manifest(tmp_path: Path) -> None:
    assert not manifest.is_whole(tmp_path)


def test_what_is_added_is_looked_at_once(prefix: Path) -> None:
    (prefix / "lib/site/one/cache.bin").write_text("x")
    age(prefix / "lib/site/one")
    assert manifest.is_whole(prefix)
    # Its new time is kept: the names are not needed any more.
    (prefix / "contents.json").unlink()
    assert manifest.is_whole(prefix)


def test_caches_of_imports_change_nothing(prefix: Path) -> None:
    (prefix / "lib/site/one/__pycache__").mkdir()
    age(prefix / "lib/site/one")
    assert manifest.is_whole(prefix)
    (prefix / "lib/site/one/__pycache__").rmdir()
    age(prefix / "lib/site/one")
    assert manifest.is_whole(prefix)
