"""What tests of the studio's pages do as users of its server: open the workspace, and submit jobs that wait."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.studio import WORKSPACE, Studio
from trainmaster import Estimator, Experiment, Run, Workspace

ATTACK = "<img src=x onerror=alert(1)>"
_WAITING = """
import os, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
"""


@contextmanager
def use_workspace(studio: Studio, who: str, cache: Path) -> Iterator[Workspace]:
    """The workspace, as one of its users has it on another machine."""
    variables = {
        "TRAINMASTER_SERVER": studio.server.url,
        "TRAINMASTER_TOKEN": studio.token(who),
        "TRAINMASTER_CACHE": str(cache),
    }
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield Workspace.get(WORKSPACE, server=studio.server.url)
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def submit_waiting(workspace: Workspace, folder: Path, name: str, **settings: Any) -> Run:
    """Submit a job that ends when the file `name` in `folder` exists."""
    code = folder / "code"
    code.mkdir(exist_ok=True)
    (code / "train.py").write_text(_WAITING)
    display_name = settings.pop("display_name", name)
    estimator = Estimator(
        str(code), entry_script="train.py", script_params={str(folder / name): ""}, user_managed=True, **settings
    )
    run = Experiment(workspace, "churn-training").submit(estimator)
    run.display_name = display_name
    return run


def ask(studio: Studio, method: str, path: str, body: Any = None, who: str = "administrator") -> Any:
    """The answer to a request to a route of the workspace."""
    answer = studio.server.request(method, studio.api + path, body, token=studio.token(who))
    assert answer.status == 200, answer
    return answer.json()
