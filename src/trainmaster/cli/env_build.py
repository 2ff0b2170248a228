"""Building an environment with its log on the screen, and the options that say which packages it has."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.cli.parsing import Options
from trainmaster.job.errors import TrainmasterError
from trainmaster.sdk.backend.local.connection import Subscription
from trainmaster.sdk.backend.local.following import follow
from trainmaster.sdk.display.text import without_lines
from trainmaster.sdk.growing_text import GrowingText
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.serialization import to_plain

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace


def packages_of(options: Options) -> list[str]:
    """The packages of --pip and --pip-file."""
    from trainmaster.environments.requirements_file import check_requirement, read_requirements_file
    from trainmaster.sdk.estimators.requirements import merge

    packages = list(options.pip or ())
    for package in packages:
        check_requirement("--pip", package)
    if not options.pip_file:
        return packages
    return merge(packages, read_requirements_file(Path(options.pip_file), f"--pip-file {options.pip_file!r}"))


def build_environment(workspace: Workspace, spec: EnvironmentSpec, refresh: bool, as_json: bool) -> Path:
    """Builds through the dispatcher and shows the log on standard error as it grows; returns the environment's folder.

    Unless the error is printed `as_json`, it does not repeat what the log has shown.
    """
    from trainmaster.environments import cleanup
    from trainmaster.environments.accelerator import on_this_machine
    from trainmaster.environments.prefix import digest
    from trainmaster.environments.sources import source_variables

    spec = on_this_machine(spec)
    folder = WorkspaceFolder(workspace.path)
    log = _ShownLog(cleanup.log_of(folder.environments, digest(spec)))
    args = {"spec": to_plain(spec), "sources": source_variables(os.environ), "refresh": refresh}
    try:
        with Subscription[dict[str, Any]](folder, "environments.build", args) as build:
            for result in follow(build, [folder.environments]):
                log.show()
                if result is not None:
                    return Path(result["folder"])
    except TrainmasterError as error:
        log.show()
        if not as_json:
            error.cause = without_lines(error.cause, log.shown)
            error.hint = without_lines(error.hint, log.shown)
        raise
    raise AssertionError("follow does not end by itself")


class _ShownLog:
    """The log of a build, on standard error."""

    def __init__(self, path: Path) -> None:
        # What an earlier build wrote is not shown.
        path.unlink(missing_ok=True)
        self.shown = ""
        self._text = GrowingText(path)

    def show(self) -> None:
        for part in self._text.read_new():
            self.shown += part
            sys.stderr.write(part)
            sys.stderr.flush()
