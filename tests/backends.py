"""Tests over both backends: a workspace that is a folder of this machine, and one on a server.

A file that says `BACKENDS = ("local", "server")` has each of its tests run twice, if the test uses `workspace`,
`shared`, `submit` or `launch`. A test that looks at the workspace's folder, at its dispatcher or at processes is local
by nature: `@pytest.mark.local_only("reason")`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trainmaster import Workspace

BOTH = ("local", "server")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a test once per backend of its file."""
    kinds = getattr(metafunc.module, "BACKENDS", ())
    if "backend" in metafunc.fixturenames and kinds:
        # With a database for workspaces of this machine (`test_postgresql.py`), servers add nothing.
        is_local = metafunc.definition.get_closest_marker("local_only") or "TRAINMASTER_TESTS_DATABASE" in os.environ
        chosen = ("local",) if is_local else kinds
        metafunc.parametrize("backend", chosen, indirect=True, scope="module")


@pytest.fixture(scope="session")
def team_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One server for all tests of a session that use one."""
    from tests.server_process import ServerProcess

    process = ServerProcess(tmp_path_factory.mktemp("team") / "root")
    yield process
    process.end()


@pytest.fixture(scope="module")
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """None for a workspace on this machine, or the server. Programs find it by variables, as on a laptop."""
    if getattr(request, "param", "local") == "local":
        yield None
        return
    server = request.getfixturevalue("team_server")
    with pytest.MonkeyPatch.context() as patch:
        _roots[server.url] = server.root
        patch.setenv("TRAINMASTER_SERVER", server.url)
        patch.setenv("TRAINMASTER_TOKEN", server.token)
        patch.setenv("TRAINMASTER_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield server


def new_name(start: str) -> str:
    """A name that no other workspace of the server has."""
    return f"{start}-{os.urandom(4).hex()}"


_roots: dict[str, Path] = {}
"""Address of a server to its folder."""


def folder_of(workspace: Workspace) -> Path:
    """The folder of a workspace, also if it is on a server: for tests that look behind it."""
    config = workspace.backend.as_config()
    if "path" in config:
        return Path(config["path"])
    return _roots[config["server"]] / "workspaces" / workspace.name


def opening_code(workspace: Workspace) -> str:
    """An expression with which another program opens this workspace."""
    config = workspace.backend.as_config()
    if "path" in config:
        return f"Workspace(path={config['path']!r})"
    return f"Workspace.get({workspace.name!r}, server={config['server']!r})"
