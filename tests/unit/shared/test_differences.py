"""What differs between two runs."""

from __future__ import annotations

import json

from trainmaster.shared.differences import (
    LARGEST_FILE,
    ValueDifference,
    compare_code,
    compare_values,
    list_arguments,
    list_environment,
    list_settings,
)


def make_spec(**fields) -> str:
    return json.dumps({"script": "train.py", "snapshot_id": "x", "inherited_variables": {"PATH": "/bin"}, **fields})


def test_arguments_by_name():
    left = list_arguments(make_spec(arguments=["--lr", "0.1", "--fast"]))
    right = list_arguments(make_spec(arguments=["--lr=0.2", "--seed", "3"]))
    assert compare_values(left, right) == (
        ValueDifference("fast", "true", None),
        ValueDifference("lr", "0.1", "0.2"),
        ValueDifference("seed", None, "3"),
    )
    assert list_arguments(make_spec(command=["python train.py --lr 3"])) == {"lr": "3"}
    assert list_arguments(make_spec(arguments=["one", "two"])) == {"0": "one", "1": "two"}
    assert list_arguments("") == list_arguments("[") == {}


def test_settings_and_environment_by_name():
    spec = make_spec(
        node_count=2, distribution={"kind": "mpi"}, environment={"pip_packages": ["a", "b"], "horovod": ""}
    )
    assert list_settings(spec) == {"script": "train.py", "node_count": "2", "distribution.kind": "mpi"}
    assert list_environment(spec) == {"pip_packages": "a\nb"}


def test_long_values_are_cut():
    (found,) = compare_values({"a": "x" * 5000}, {})
    assert len(found.left) < 2100


def test_code():
    contents = {
        "1": b"a\nb\nc\n",
        "2": b"a\nB\nc\n",
        "3": b"new",
        "4": b"\0binary",
        "5": None,
        "6": b"x\n" * 20_000,
    }
    left = {"same.py": "1", "train.py": "1", "gone.py": "1", "model.bin": "1", "big.csv": "1", "long.txt": "1"}
    right = {"same.py": "1", "train.py": "2", "added.py": "3", "model.bin": "4", "big.csv": "5", "long.txt": "6"}
    files, notices = compare_code(left, right, lambda digest, size: contents[digest])
    found = {each.path: each for each in files}
    assert "same.py" not in found and notices == []
    assert found["train.py"].diff == "--- a/train.py\n+++ b/train.py\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
    assert (found["train.py"].added, found["train.py"].removed, found["train.py"].kind) == (1, 1, "changed")
    assert (found["added.py"].kind, found["gone.py"].kind) == ("added", "removed")
    assert found["added.py"].diff.endswith("+new\n\\ No newline at end of file\n")
    for path in ("model.bin", "big.csv", "long.txt"):
        assert found[path].notice and not found[path].diff


def test_comparing_ends_when_there_is_no_time_left():
    times = iter([True, False, False])
    left, right = {"a": "1", "b": "1", "c": "1"}, {"a": "2", "b": "2", "c": "2"}
    files, _ = compare_code(left, right, lambda digest, size: digest.encode(), lambda: next(times))
    assert [bool(each.diff) for each in files] == [True, False, False] and files[1].notice


def test_only_so_much_is_compared():
    asked = []

    def read(digest: str, size: int) -> bytes:
        asked.append(size)
        return b"".join(b"%d %s\n" % (number, digest.encode()) for number in range(9000))

    left = {f"{number}.py": "l" for number in range(600)}
    files, notices = compare_code(left, dict.fromkeys(left, "r"), read)
    assert len(files) == 500 and notices == ["100 more files differ."]
    assert sum(len(each.diff) for each in files) < 3_000_000 and files[0].notice and files[-1].notice
    assert set(asked) == {LARGEST_FILE}
