"""The version of a store in a file: whoever reads the same number twice knows that nothing was written meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmaster.dispatcher.store import Store
from trainmaster.shared.store_version import StoreVersion, VersionReader


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "version"


@pytest.fixture
def store(tmp_path: Path, file: Path) -> Store:
    store = Store.create(tmp_path / "trainmaster.db")
    store.publish(StoreVersion(file))
    return store


def test_every_write_changes_the_number(store: Store, file: Path) -> None:
    reader = VersionReader(file)
    first = reader.read()
    assert first is not None
    assert reader.read() == first
    store.facts.put("a", 1)
    second = reader.read()
    assert second not in (None, first)
    store.facts.get("a")
    assert reader.read() == second


def test_there_is_no_number_while_a_transaction_writes(store: Store, file: Path) -> None:
    reader = VersionReader(file)
    before = reader.read()
    with store._database.write():
        assert reader.read() is None
    assert reader.read() not in (None, before)


def test_a_write_that_fails_changes_the_number_too(store: Store, file: Path) -> None:
    reader = VersionReader(file)
    before = reader.read()
    with pytest.raises(ZeroDivisionError), store._database.write():
        raise ZeroDivisionError
    assert reader.read() not in (None, before)


def test_there_is_no_number_after_the_store_was_closed(store: Store, file: Path) -> None:
    reader = VersionReader(file)
    store.close()
    assert reader.read() is None


def test_the_next_dispatcher_counts_on_in_the_same_file(file: Path) -> None:
    """One that was killed leaves its last number, and a server may still have the file open."""
    killed = StoreVersion(file)
    killed.end_change()
    reader = VersionReader(file)
    before = reader.read()
    following = StoreVersion(file)
    assert reader.read() is None
    following.end_change()
    assert reader.read() not in (None, before)


def test_one_that_is_killed_while_it_writes_leaves_no_number(file: Path) -> None:
    killed = StoreVersion(file)
    killed.end_change()
    reader = VersionReader(file)
    before = reader.read()
    killed.begin_change()
    assert reader.read() is None
    StoreVersion(file).end_change()
    assert reader.read() not in (None, before)


def test_a_file_that_was_cut_off_has_no_number(file: Path) -> None:
    StoreVersion(file).end_change()
    reader = VersionReader(file)
    file.write_bytes(b"")
    assert reader.read() is None


def test_a_link_is_not_followed(tmp_path: Path, file: Path) -> None:
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        StoreVersion(file)
    with pytest.raises(OSError, match="symbolic"):
        VersionReader(file)
