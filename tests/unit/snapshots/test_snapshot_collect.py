"""Snapshots that nobody needs go, and with them what only they had."""

import json
import os
import threading

from snapshot_folders import fill, laid_out, let_it_settle
from tests.conftest import overwrite

from trainmaster.snapshots import take_snapshot, verify_snapshot
from trainmaster.snapshots.collect import YOUNG_SECONDS, collect, taking


def old(workspace):
    """Makes all manifests so old that nobody can be about to use them."""
    for path in (workspace / "snapshots").glob("*.json"):
        os.utime(path, (0, 0))


def kept(workspace):
    return {path.stem for path in (workspace / "snapshots").glob("*.json")}


def contents(workspace):
    return sorted(path.read_text() for path in (workspace / "blobs").glob("??/*"))


def two(source, workspace):
    fill(source, {"a.py": "both", "b.py": "first"})
    first = take_snapshot(source, workspace).id
    fill(source, {"b.py": "second"})
    let_it_settle(source)
    return first, take_snapshot(source, workspace).id


def test_what_others_have_stays(source, workspace):
    first, second = two(source, workspace)
    old(workspace)
    assert collect(workspace, {second}) > 0
    assert kept(workspace) == {second} and contents(workspace) == ["both", "second"]
    verify_snapshot(workspace, second)
    assert collect(workspace, {second}) == 0
    # A snapshot of the same folder is taken as if it were new.
    fill(source, {"b.py": "first"})
    assert take_snapshot(source, workspace).id == first
    verify_snapshot(workspace, first)


def test_a_young_one_stays_until_a_run_names_it(source, workspace):
    first, second = two(source, workspace)
    assert collect(workspace, ()) == 0 and kept(workspace) == {first, second}
    old(workspace)
    # Nothing changed, and nothing is read: it is young again all the same.
    assert take_snapshot(source, workspace).id == second
    collect(workspace, ())
    assert kept(workspace) == {second} and contents(workspace) == ["both", "second"]
    now = (workspace / "snapshots" / f"{second}.json").stat().st_mtime + YOUNG_SECONDS
    collect(workspace, (), now)
    assert kept(workspace) == set() and contents(workspace) == []
    laid_out(workspace, take_snapshot(source, workspace))


def test_nothing_goes_while_somebody_takes_one(source, workspace):
    first, _ = two(source, workspace)
    old(workspace)
    taker, collected = threading.Event(), threading.Event()

    def take():
        with taking(str(workspace)):
            taker.set()
            assert collected.wait(60)

    thread = threading.Thread(target=take)
    thread.start()
    assert taker.wait(60)
    try:
        assert collect(workspace, ()) == 0 and first in kept(workspace)
    finally:
        collected.set()
        thread.join()
    assert collect(workspace, ()) > 0


def test_a_damaged_manifest_keeps_all_contents(source, workspace):
    first, second = two(source, workspace)
    overwrite(workspace / "snapshots" / f"{second}.json", json.dumps({"version": 1}).encode())
    old(workspace)
    assert collect(workspace, {second}) == 0
    assert contents(workspace) == ["both", "first", "second"] and first in kept(workspace)


def test_a_workspace_without_snapshots(tmp_path):
    assert collect(tmp_path, ()) == 0
    assert list(tmp_path.iterdir()) == []
