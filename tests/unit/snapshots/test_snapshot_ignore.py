"""Ignore rules, with git itself as the judge."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from trainmaster.snapshots.ignore import is_environment, judge, parse_rules

PATHS = [
    "a", "b", "a.py", "b.txt", "foo", "bar", "foobar", "x y", "[a]", "a-b", "é", "!x", "#x", "ab", "A1",
    "dir/a", "dir/b.txt", "dir/foo/a", "dir/foo/bar/a.py", "dir/foo/bar/b", "dir/.hidden", "deep/dir/foo/a",
    "foo1/bar", "foo1/x/bar", "foo1/x/y/bar",
]  # fmt: skip


def ignored_by_git(folder: Path, text: bytes) -> set[str]:
    """Which of PATHS git leaves out: those that `ls-files --others` does not list."""
    (folder / ".gitignore").write_bytes(text)
    command = ["git", "-c", "core.excludesFile=/dev/null", "ls-files", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout
    return set(PATHS) - set(os.fsdecode(listed).split("\0"))


def ignored_by_us(text: bytes) -> set[str]:
    rules = parse_rules(text)
    return {path for path in PATHS if _is_pruned(rules, path)}


def _is_pruned(rules, path):
    parts = path.split("/")
    parents = ["/".join(parts[:n]) for n in range(1, len(parts))]
    if any(judge(rules, os.fsencode(parent), is_folder=True).ignored for parent in parents):
        return True
    return judge(rules, os.fsencode(path), is_folder=False).ignored


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    if not shutil.which("git"):
        pytest.skip("no git")
    folder = tmp_path_factory.mktemp("checkout")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    for path in PATHS:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("")
    return folder


FRAGMENTS = [
    "a", "b", "foo", "bar", "dir", "deep", "x", "*", "**", "?", "/", ".py", ".txt", "[ab]", "[!a]", "[^b]", "[a-c]",
    "[[:alpha:]]", "[]a]", "[", "\\", "\\a", " ", "!", "#", "é", "-", ".", "1", "[[:digit:]a-f]", "[\\a]", "[[:no:]]",
]  # fmt: skip
lines = st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=6).map("".join)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(["*", "!*/", "!*.py"])
@example(["/*", "!/dir", "/dir/*", "!/dir/foo"])
@example(["foo**/bar"])
@example(["foo/**", "!dir/foo/bar/"])
@example(["dir/**/a"])
@example(["**/foo/bar"])
@example(["a\\ ", "x\\ y  "])
@example(["\\!x", "\\#x", "#x", "!x"])
@example(["[[]a]", "[]-a]", "[a-", "[z-a]"])
@example(["dir/", "!dir/b.txt"])
@example(["?", "[[:upper:]][[:digit:]]"])
@example(["a\r"])
@given(text=st.lists(lines, min_size=1, max_size=4))
def test_the_rules_are_gits(checkout, text):
    content = os.fsencode("\n".join(text) + "\n")
    assert ignored_by_us(content) == ignored_by_git(checkout, content)


@pytest.mark.parametrize(
    "path",
    [".git", "sub/.git", ".venv", "venv", "node_modules", "a/__pycache__", "a/b.pyc", ".azureml", ".trainmaster",
     "outputs", "logs", "azureml-logs", ".ipynb_checkpoints", ".tox", ".mypy_cache"],
)  # fmt: skip
def test_defaults_are_left_out_unless_brought_back_by_name(path):
    encoded = os.fsencode(path)
    assert judge(None, encoded, is_folder=True).ignored
    catch_all = parse_rules(b"*\n!*/\n!.*\n!*\n")
    assert judge(catch_all, encoded, is_folder=True).ignored
    by_name = parse_rules(b"!" + encoded)
    verdict = judge(by_name, encoded, is_folder=True)
    assert (verdict.ignored, verdict.wanted) == (False, True)


@pytest.mark.parametrize("path", ["sub/outputs", "sub/logs", "environment", "git", "a.py", "pycache", "logs.txt"])
def test_what_only_looks_like_a_default_is_taken(path):
    assert not judge(None, os.fsencode(path), is_folder=True).ignored


def test_the_deepest_ignore_file_decides():
    upper = parse_rules(b"*.log\n")
    lower = parse_rules(b"!keep.log\n/only-here\n", b"sub", upper)
    assert judge(lower, b"sub/other.log", is_folder=False).ignored
    assert not judge(lower, b"sub/keep.log", is_folder=False).ignored
    assert judge(lower, b"sub/only-here", is_folder=False).ignored
    assert not judge(lower, b"sub/x/only-here", is_folder=False).ignored


def test_an_environment_is_known_by_its_marks():
    assert is_environment({b"pyvenv.cfg", b"bin"})
    assert is_environment({b"conda-meta"})
    assert not is_environment({b"bin", b"lib"})
