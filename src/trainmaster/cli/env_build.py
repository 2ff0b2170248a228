"""Building an environment with its log on the screen, and the options that say which packages it has."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.cli.parsing import Options
from trainmaster.job.errors import TrainmasterError
from trainmaster.sdk.display.text import without_lines
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


def build_environment(workspace: Workspace, spec: EnvironmentSpec, refresh: bool, as_json: bool) -> str:
    """Builds through the dispatcher and shows the log on standard error as it grows; returns the build's name.

    Unless the error is printed `as_json`, it does not repeat what the log has shown.
    """
    from trainmaster.environments.sources import source_variables
    from trainmaster.sdk.long_work import follow_work

    log = _ShownLog()
    try:
        result = follow_work(
            workspace,
            "environments.follow_build",
            log.show,
            spec=to_plain(spec),
            sources=source_variables(os.environ),
            refresh=refresh,
        )
    except TrainmasterError as error:
        if not as_json:
            error.cause = without_lines(error.cause, log.shown)
            error.hint = without_lines(error.hint, log.shown)
        raise
    return Path(result["folder"]).name


class _ShownLog:
    """The log of a build, on standard error."""

    def __init__(self) -> None:
        self.shown = ""

    def show(self, part: str) -> None:
        self.shown += part
        sys.stderr.write(part)
        sys.stderr.flush()
