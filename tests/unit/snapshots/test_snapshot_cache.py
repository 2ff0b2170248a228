"""The second snapshot: what changed is seen, what did not is not read again."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from snapshot_folders import contents, fill, laid_out, let_it_settle, taken
from tests.conftest import overwrite

from trainmaster.job.errors import SnapshotException
from trainmaster.snapshots import drop_caches, parallel, take, take_snapshot, verify_snapshot
from trainmaster.snapshots.blobs import store_file
from trainmaster.snapshots.recheck import fast_pack_names, open_folder, pack, pack_names, sign, unpack


@pytest.fixture
def hashed(monkeypatch):
    """The names of the files that were read."""
    names = []

    def recording(blobs, path):
        names.append(os.path.basename(os.fsdecode(path)))
        return store_file(blobs, path)

    monkeypatch.setattr(take, "store_file", recording)
    return names


@pytest.fixture
def settled(source, workspace, hashed):
    """A source that was taken, and whose cache holds."""
    fill(source, {"a.py": "1", "b.py": "2", "sub/c.py": "3", "sub/deep/d.py": "4"})
    (source / "link").symlink_to("a.py")
    let_it_settle(source)
    snapshot = take_snapshot(source, workspace)
    assert sorted(hashed) == ["a.py", "b.py", "c.py", "d.py"]
    hashed.clear()
    return snapshot


def test_nothing_is_read_when_nothing_changed(source, workspace, settled, hashed):
    assert take_snapshot(source, workspace) == settled
    assert hashed == []


def test_only_the_changed_file_is_read(source, workspace, settled, hashed):
    (source / "sub/c.py").write_text("33")
    assert taken(source, workspace)["sub/c.py"] == "33"
    assert hashed == ["c.py"]


def test_a_touched_file_gives_the_same_snapshot(source, workspace, settled, hashed):
    os.utime(source / "a.py")
    assert take_snapshot(source, workspace) == settled
    assert hashed == ["a.py"]


def test_a_change_behind_a_restored_time_is_seen(source, workspace, settled):
    before = (source / "a.py").stat()
    (source / "a.py").write_text("9")
    os.utime(source / "a.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (source / "a.py").stat().st_size == before.st_size
    assert taken(source, workspace)["a.py"] == "9"


def test_a_file_replaced_by_one_of_the_same_size_and_time_is_seen(source, workspace, settled):
    before = (source / "a.py").stat()
    (source / "new").write_text("9")
    os.utime(source / "new", ns=(before.st_atime_ns, before.st_mtime_ns))
    (source / "new").rename(source / "a.py")
    assert taken(source, workspace)["a.py"] == "9"


def test_a_file_too_young_to_be_trusted_is_read_again(source, workspace, hashed, monkeypatch):
    """The clock of file times may not tick between the copy and the next change: git's racy problem."""
    fill(source, {"a.py": "1"})
    same_tick = (source / "a.py").stat().st_ctime_ns + 1
    monkeypatch.setattr(take.time, "time_ns", lambda: same_tick)
    take_snapshot(source, workspace)
    hashed.clear()
    take_snapshot(source, workspace)
    assert hashed == ["a.py"]


def test_changes_in_quick_succession_are_all_seen(source, workspace):
    fill(source, {"a.py": "0"})
    for turn in range(60):
        (source / "a.py").write_text(f"{turn:03}")
        if turn % 3 == 0:
            (source / f"new-{turn}").touch()
        snapshot = take_snapshot(source, workspace)
        assert (workspace / "snapshots" / f"{snapshot.id}.json").read_text().count('"path"') == 2 + turn // 3
        assert contents(laid_out(workspace, snapshot, f"out{turn}"))["a.py"] == f"{turn:03}"


@pytest.mark.parametrize("whole_seconds", [False, True])
def test_file_systems_with_whole_seconds_are_given_more_time(whole_seconds):
    from trainmaster.snapshots.tree import _settle

    now = 1_700_000_000_000_000_000
    stamp = now - 1_000_000_000 + (0 if whole_seconds else 1)
    signature = (stamp, stamp, 1, 1)
    assert (_settle(signature, now) == signature) is not whole_seconds


def test_a_file_from_the_future_is_not_trusted(source, workspace, settled, hashed):
    os.utime(source / "a.py", (time.time() + 1e6, time.time() + 1e6))
    for _ in range(2):
        hashed.clear()
        take_snapshot(source, workspace)
        assert hashed == ["a.py"]


@pytest.mark.parametrize(
    "change",
    [
        lambda source: (source / "b.py").rename(source / "z.py"),
        lambda source: (source / "b.py").unlink(),
        lambda source: (source / "a.py").chmod(0o755),
        lambda source: (source / "new/empty").mkdir(parents=True),
        lambda source: (source / "sub").rename(source / "bus"),
        lambda source: ((source / "b.py").unlink(), (source / "b.py").mkdir()),
        lambda source: ((source / "b.py").unlink(), (source / "b.py").symlink_to("a.py")),
        lambda source: ((source / "link").unlink(), (source / "link").symlink_to("b.py")),
        lambda source: ((source / "sub/deep/d.py").unlink(), (source / "sub/deep").rmdir()),
        lambda source: fill(source, {".gitignore": "*.py\n"}),
        lambda source: fill(source, {"sub/.gitignore": "d.py\n"}),
        lambda source: fill(source, {".amlignore": "sub\n"}),
        lambda source: fill(source, {"sub/deep/pyvenv.cfg": ""}),
    ],
)
def test_every_kind_of_change_is_seen(source, workspace, settled, change, tmp_path):
    change(source)
    fresh = take_snapshot(source, tmp_path / "fresh")
    assert take_snapshot(source, workspace) == fresh
    assert fresh.id != settled.id


def test_a_changed_ignore_file_decides_anew_for_all_below(source, workspace):
    fill(source, {"sub/.gitignore": "nothing\n", "sub/x/y/a.csv": "", "sub/x/y/b.py": ""})
    let_it_settle(source)
    assert take_snapshot(source, workspace).file_count == 3
    (source / "sub/.gitignore").write_text("*.csv\n")
    assert take_snapshot(source, workspace).file_count == 2
    (source / "sub/.gitignore").unlink()
    assert take_snapshot(source, workspace).file_count == 2
    assert "sub/x/y/a.csv" in taken(source, workspace)


def test_an_environment_that_is_none_any_more_is_taken(source, workspace):
    fill(source, {"env/pyvenv.cfg": "", "env/train.py": ""})
    let_it_settle(source)
    assert take_snapshot(source, workspace).file_count == 0
    (source / "env/pyvenv.cfg").unlink()
    assert take_snapshot(source, workspace).file_count == 1


def cache_file(workspace):
    (path,) = (workspace / "snapshots/.cache").iterdir()
    return path


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:20],
        lambda content: content[:-5],
        lambda content: content[:100] + b"\xff" + content[101:],
        lambda content: b"\0" * len(content),
        lambda content: content + b"x",
    ],
)
def test_a_damaged_cache_is_made_anew(source, workspace, settled, hashed, damage):
    path = cache_file(workspace)
    overwrite(path, damage(path.read_bytes()))
    assert take_snapshot(source, workspace) == settled
    assert len(hashed) == 4
    hashed.clear()
    assert take_snapshot(source, workspace) == settled
    assert hashed == []


def test_lost_manifests_and_blobs_are_written_again(source, workspace, settled, hashed):
    (workspace / "snapshots" / f"{settled.id}.json").unlink()
    (workspace / "blobs").rename(workspace / "gone")
    assert take_snapshot(source, workspace) == settled
    assert len(hashed) == 4
    verify_snapshot(workspace, settled.id)


def test_blobs_are_looked_after_once_after_a_reboot(source, workspace, settled, hashed, monkeypatch):
    (workspace / "blobs").rename(workspace / "gone")
    monkeypatch.setattr(take, "boot_id", lambda: "another boot")
    assert take_snapshot(source, workspace) == settled
    verify_snapshot(workspace, settled.id)
    hashed.clear()
    assert take_snapshot(source, workspace) == settled
    assert hashed == []


def test_a_manifest_cut_short_is_written_again(source, workspace, settled, monkeypatch):
    manifest = workspace / "snapshots" / f"{settled.id}.json"
    manifest.chmod(0o644)
    manifest.write_bytes(b"")
    monkeypatch.setattr(take, "boot_id", lambda: "another boot")
    assert take_snapshot(source, workspace) == settled
    verify_snapshot(workspace, settled.id)


def test_the_cache_of_another_version_is_not_used(source, workspace, settled, hashed, monkeypatch):
    monkeypatch.setattr("trainmaster.snapshots.cache._VERSION", "0")
    assert take_snapshot(source, workspace) == settled
    assert len(hashed) == 4


def test_dropped_caches_make_a_full_snapshot(source, workspace, settled, hashed):
    drop_caches(workspace)
    assert take_snapshot(source, workspace) == settled
    assert len(hashed) == 4
    drop_caches(workspace / "nowhere")


def test_a_second_process_gives_the_same_answers(source, workspace, monkeypatch, hashed):
    fill(source, {f"d{n:02}/f{m}": f"{n} {m}" for n in range(30) for m in range(5)})
    let_it_settle(source)
    first = take_snapshot(source, workspace)
    monkeypatch.setattr(parallel, "_MANY_FILES", 0)
    monkeypatch.setattr(parallel, "_may_fork", lambda: True)
    hashed.clear()
    assert take_snapshot(source, workspace) == first
    assert hashed == []
    (source / "d29/f0").write_text("new")
    (source / "d00/f0").write_text("new")
    assert take_snapshot(source, workspace).id != first.id
    assert sorted(hashed) == ["f0", "f0"]


@pytest.mark.parametrize("fault", ["cannot be started", "dies at once", "has threads"])
def test_a_second_process_that_does_not_work_is_not_missed(source, workspace, settled, monkeypatch, hashed, fault):
    monkeypatch.setattr(parallel, "_MANY_FILES", 0)
    monkeypatch.setattr(parallel, "_may_fork", lambda: fault != "has threads")
    if fault == "cannot be started":
        monkeypatch.setattr(os, "fork", refuse_to_fork)
    if fault == "dies at once":
        monkeypatch.setattr(parallel, "_answer", lambda *_: os._exit(1))
    assert take_snapshot(source, workspace) == settled
    assert hashed == []


def refuse_to_fork():
    raise BlockingIOError("Resource temporarily unavailable")


def test_a_process_with_threads_is_not_forked(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert not parallel._may_fork()
    finally:
        done.set()
        thread.join()


stamps = st.integers(-(10**18), 10**19)
signatures = st.tuples(stamps, stamps, st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))


@given(st.lists(signatures, max_size=5))
def test_signatures_survive_packing(some):
    assert unpack(pack(some)) == some


def test_both_ways_of_packing_agree(source):
    fill(source, {f"f{n}": "x" * n for n in range(30)} | {"é": ""})
    (source / "link").symlink_to("/nowhere")
    (source / "folder").mkdir()
    os.utime(source / "f1", ns=(0, -1_500_000_000))
    os.utime(source / "f2", ns=(0, 5_000_000_000_000_000_001))
    names = [os.fsencode(path.name) for path in source.iterdir()]
    descriptor = open_folder(os.fsencode(source), b"")
    try:
        fast = fast_pack_names()
        for some in (names, [], names[:1], names * 50):
            assert fast(descriptor, some) == pack_names(descriptor, some)
        assert unpack(fast(descriptor, names))[0] == sign(os.lstat(source / os.fsdecode(names[0])))
        with pytest.raises(FileNotFoundError):
            fast(descriptor, [b"missing"])
    finally:
        os.close(descriptor)


TAKER = "import sys; from trainmaster.snapshots import *; print(take_snapshot(*sys.argv[1:]).id)"


def test_two_at_once_get_along(source, workspace):
    fill(source, {f"d{n}/f{m}": f"{n} {m}" * 50 for n in range(10) for m in range(30)})
    command = [sys.executable, "-c", TAKER, str(source), str(workspace)]
    takers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    ids = {taker.communicate()[0].strip() for taker in takers}
    assert [taker.returncode for taker in takers] == [0, 0, 0]
    (snapshot_id,) = ids
    verify_snapshot(workspace, snapshot_id)
    assert list((workspace / "blobs/.partial").iterdir()) == []


def test_killed_in_the_middle_leaves_nothing_that_looks_whole(source, workspace):
    fill(source, {f"f{n}": f"{n}" * 1000 for n in range(400)})
    command = [sys.executable, "-c", TAKER, str(source), str(workspace)]
    taker = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and len(list((workspace / "blobs").glob("??/*"))) < 20:
        pass
    taker.kill()
    taker.wait()
    sizes = {len(str(n) * 1000) for n in range(400)}
    assert {path.stat().st_size for path in (workspace / "blobs").glob("??/*")} <= sizes
    snapshot = take_snapshot(source, workspace)
    verify_snapshot(workspace, snapshot.id)
    assert snapshot.file_count == 400


def test_what_killed_ones_left_is_swept_later(source, workspace):
    fill(source, {"a": "1"})
    partial = workspace / "blobs/.partial"
    partial.mkdir(parents=True)
    (partial / "old").touch()
    os.utime(partial / "old", (1, 1))
    (partial / "of-another-that-still-copies").touch()
    take_snapshot(source, workspace)
    assert [path.name for path in partial.iterdir()] == ["of-another-that-still-copies"]


def test_a_file_that_goes_away_meanwhile_is_no_error(source, workspace, monkeypatch):
    fill(source, {"a": "1", "swap": "2"})

    def vanishing(blobs, path):
        (source / "swap").unlink(missing_ok=True)
        return store_file(blobs, path)

    monkeypatch.setattr(take, "store_file", vanishing)
    assert take_snapshot(source, workspace).file_count == 1


def test_a_file_that_never_rests_is_named(source, workspace, monkeypatch):
    fill(source, {"busy.log": "1"})
    real_pread = os.pread

    def growing(descriptor, size, position):
        with open(source / "busy.log", "a") as file:
            file.write("more")
        return real_pread(descriptor, size, position)

    monkeypatch.setattr(os, "pread", growing)
    with pytest.raises(SnapshotException, match=r"busy\.log keeps changing"):
        take_snapshot(source, workspace)
    assert list((workspace / "snapshots").glob("*.json")) == []


def test_a_full_disk_leaves_nothing_half_made(source, workspace, monkeypatch):
    fill(source, {"a": "1"})

    def full(descriptor, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(SnapshotException, match="No space left on device"):
        take_snapshot(source, workspace)
    monkeypatch.undo()
    assert [path for path in workspace.rglob("*") if path.is_file()] == []


names = st.sampled_from(["a", "b", "c", "sub", "a.csv", ".gitignore", "pyvenv.cfg", "outputs"])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)


class AnyChanges(RuleBasedStateMachine):
    """Whatever is done to the source, the cached snapshot equals one that was made from nothing."""

    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.source = self.root / "source"
        self.source.mkdir()
        self.turn = 0

    def teardown(self):
        if hasattr(self, "folder"):
            self.folder.cleanup()

    def attempt(self, action):
        with contextlib.suppress(OSError):  # a change that cannot be made there is no change
            action()

    @rule(path=paths, text=st.sampled_from(["", "1", "22", "*.csv", "!a.csv\n*", "/sub", "a/", "!outputs"]))
    def write(self, path, text):
        def action():
            (self.source / path).parent.mkdir(parents=True, exist_ok=True)
            (self.source / path).write_text(text)

        self.attempt(action)

    @rule(path=paths)
    def make_folder(self, path):
        self.attempt(lambda: (self.source / path).mkdir(parents=True))

    @rule(path=paths)
    def remove(self, path):
        target = self.source / path
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            self.attempt(target.unlink)

    @rule(old=paths, new=paths)
    def rename(self, old, new):
        self.attempt(lambda: (self.source / old).rename(self.source / new))

    @rule(path=paths, where=paths)
    def link(self, path, where):
        self.attempt(lambda: (self.source / path).symlink_to(where))

    @rule(path=paths)
    def toggle_x(self, path):
        self.attempt(lambda: (self.source / path).chmod(0o755))

    @rule()
    def wait(self):
        let_it_settle(self.source)
        take_snapshot(self.source, self.root / "workspace")

    @invariant()
    def the_cache_tells_the_truth(self):
        if not hasattr(self, "source"):
            return
        self.turn += 1
        cached = take_snapshot(self.source, self.root / "workspace")
        assert cached == take_snapshot(self.source, self.root / f"fresh-{self.turn}")


AnyChanges.TestCase.settings = settings(
    max_examples=8, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
TestAnyChanges = AnyChanges.TestCase
