"""The claim: only the process that creates it executes the plan."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from trainmaster.job.agent import claim


def refuse_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a file system without hard links does."""

    def link(source: str, target: str) -> None:
        raise OSError(errno.EPERM, "Operation not permitted", source)

    monkeypatch.setattr(os, "link", link)


@pytest.mark.parametrize("has_links", [True, False])
def test_only_the_first_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool) -> None:
    if not has_links:
        refuse_links(monkeypatch)
    assert claim.make(str(tmp_path), None, cancelled=True)
    assert not claim.make(str(tmp_path), "/a/cgroup")
    found = json.loads((tmp_path / claim.NAME).read_text())
    assert (found["pid"], found["cancelled"], found["cgroup"]) == (os.getpid(), True, None)
    assert os.listdir(tmp_path) == [claim.NAME], "nothing half-made is left behind"
