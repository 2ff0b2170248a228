"""Where the source comes from, as git has it."""

import os
import shutil
import subprocess
import time

import pytest
from snapshot_folders import fill

from trainmaster.snapshots import git as git_module
from trainmaster.snapshots import git_properties, start_git_properties
from trainmaster.snapshots.git import without_credentials

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="no git")


def git(folder, *arguments):
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "commit.gpgsign=false"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(source):
    git(source, "init", "-q", "-b", "main")
    git(source, "remote", "add", "origin", "https://me:secret@example.com/team/project.git")
    fill(source, {"sub/train.py": "1", "other.py": "1"})
    git(source, "add", "-A")
    git(source, "commit", "-qm", "first")
    return source


def test_a_clean_checkout(checkout):
    commit = git(checkout, "rev-parse", "HEAD")
    assert git_properties(checkout) == {
        "azureml.git.repository_uri": "https://example.com/team/project.git",
        "mlflow.source.git.repoURL": "https://example.com/team/project.git",
        "azureml.git.branch": "main",
        "mlflow.source.git.branch": "main",
        "azureml.git.commit": commit,
        "mlflow.source.git.commit": commit,
        "azureml.git.dirty": "False",
    }


def test_only_changes_in_the_source_folder_count(checkout):
    (checkout / "other.py").write_text("2")
    assert git_properties(checkout)["azureml.git.dirty"] == "True"
    assert git_properties(checkout / "sub")["azureml.git.dirty"] == "False"
    (checkout / "sub/new.py").write_text("")
    assert git_properties(checkout / "sub")["azureml.git.dirty"] == "True"


def test_packed_references_branches_with_slashes_and_detached_heads(checkout):
    commit = git(checkout, "rev-parse", "HEAD")
    git(checkout, "checkout", "-qb", "feature/x")
    git(checkout, "pack-refs", "--all")
    properties = git_properties(checkout)
    assert (properties["azureml.git.branch"], properties["azureml.git.commit"]) == ("feature/x", commit)
    git(checkout, "checkout", "-q", "--detach")
    properties = git_properties(checkout)
    assert "azureml.git.branch" not in properties
    assert properties["azureml.git.commit"] == commit


def test_worktrees(checkout, tmp_path):
    git(checkout, "worktree", "add", "-q", "-b", "side", str(tmp_path / "tree"))
    fill(tmp_path / "tree", {"sub/train.py": "2"})
    git(tmp_path / "tree", "commit", "-qam", "second")
    properties = git_properties(tmp_path / "tree")
    assert properties["azureml.git.branch"] == "side"
    assert properties["azureml.git.commit"] == git(tmp_path / "tree", "rev-parse", "HEAD")
    assert properties["azureml.git.repository_uri"] == "https://example.com/team/project.git"


def test_the_remote_of_the_branch_comes_first(checkout):
    git(checkout, "remote", "add", "fork", "git@example.com:me/project.git")
    git(checkout, "config", "branch.main.remote", "fork")
    assert git_properties(checkout)["azureml.git.repository_uri"] == "git@example.com:me/project.git"


def test_outside_a_checkout_there_is_nothing(source):
    if any((parent / ".git").exists() for parent in source.parents):
        pytest.skip("the temporary folder lies in a checkout")
    assert git_properties(source) == {}
    assert git_properties(source / "missing") == {}


def test_a_checkout_without_commits_has_no_commit(source):
    git(source, "init", "-q", "-b", "main")
    assert git_properties(source) == {"azureml.git.branch": "main", "mlflow.source.git.branch": "main"}


def test_the_environment_has_the_last_word(checkout, monkeypatch):
    monkeypatch.setenv("AZUREML_GIT_COMMIT", "abc")
    monkeypatch.setenv("AZUREML_GIT_DIRTY", "False")
    monkeypatch.setenv("AZUREML_GIT_BUILD_ID", "7")
    monkeypatch.setenv("AZUREML_GIT_REPOSITORY_URI", "https://token@example.com/x")
    (checkout / "new").touch()
    properties = git_properties(checkout)
    assert properties["mlflow.source.git.commit"] == "abc"
    assert properties["azureml.git.dirty"] == "False"
    assert properties["azureml.git.build_id"] == "7"
    assert properties["azureml.git.repository_uri"] == "https://example.com/x"


def test_without_git_the_rest_is_still_known(checkout, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    properties = git_properties(checkout)
    assert properties["azureml.git.branch"] == "main"
    assert properties["azureml.git.dirty"] == "unknown"


def fake_git(tmp_path, monkeypatch, script):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


def test_a_git_that_takes_too_long_is_not_waited_for(checkout, tmp_path, monkeypatch):
    fake_git(tmp_path, monkeypatch, "exec sleep 60")
    start = time.monotonic()
    handle = start_git_properties(checkout, timeout=0.2)
    assert handle.result()["azureml.git.dirty"] == "unknown"
    assert time.monotonic() - start < 50
    assert handle.result()["azureml.git.dirty"] == "unknown"


def test_a_git_that_fails_does_not_call_the_folder_clean(checkout, tmp_path, monkeypatch):
    fake_git(tmp_path, monkeypatch, "exit 128")
    assert git_properties(checkout)["azureml.git.dirty"] == "unknown"


@pytest.mark.parametrize("by", ["close", "forgetting it"])
def test_what_is_not_wanted_any_more_is_ended(checkout, tmp_path, monkeypatch, by):
    fake_git(tmp_path, monkeypatch, "exec sleep 60")
    handle = start_git_properties(checkout)
    process = handle._question.process
    if by == "close":
        handle.close()
    del handle
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.parametrize("damage", ["HEAD", "config", "packed-refs"])
def test_damaged_files_of_git_are_no_error(checkout, damage):
    (checkout / ".git" / damage).write_bytes(b"\xff\0 garbage [= \n[remote")
    assert isinstance(git_properties(checkout), dict)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.com/x.git", "https://example.com/x.git"),
        ("https://user:p@ss@example.com:8443/x@y.git", "https://example.com:8443/x@y.git"),
        ("https://token@example.com", "https://example.com"),
        ("ssh://git:pw@example.com/x", "ssh://git@example.com/x"),
        ("git@example.com:me/x.git", "git@example.com:me/x.git"),
        ("/srv/repo.git", "/srv/repo.git"),
        ("", ""),
    ],
)
def test_credentials_are_removed(url, expected):
    assert without_credentials(url) == expected


def test_the_default_time_out_is_short():
    assert git_module._DEFAULT_TIMEOUT <= 1.0
