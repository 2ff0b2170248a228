"""The builder of environments as the dispatcher starts it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainmaster.environments.build import order
from trainmaster.shared.job_spec import EnvironmentSpec


def start_builder(
    folder: Path, spec: EnvironmentSpec, refresh: bool = False, variables: Mapping[str, str] = os.environ, **more: Any
) -> subprocess.Popen[Any]:
    """A process that builds `spec` into `folder`; `variables` are only its own, not those of who asks ahead."""
    with tempfile.TemporaryFile() as given:
        given.write(order(folder, spec, os.environ, refresh))
        given.seek(0)
        command = [sys.executable, "-P", "-m", "trainmaster.environments"]
        return subprocess.Popen(command, stdin=given, stdout=subprocess.PIPE, env=variables, **more)
