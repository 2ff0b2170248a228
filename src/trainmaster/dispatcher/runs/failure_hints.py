"""Hints for the exception that ended a script. Pure, except that it looks for the file of a module."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmaster.shared.job_spec import JobSpec

_MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^'.]+)'")
# The package exists, but not the module in it.
_MISSING_PART = re.compile(r"ModuleNotFoundError: No module named '(([^'.]+)\.[^']+)'(; '[^']+' is not a package)?")
# The wording of pandas.
_MISSING_DEPENDENCY = re.compile(r"ImportError: .*[Mm]issing optional dependency '([^']+)'")
_PACKAGES = {
    "Crypto": "pycryptodome",
    "IPython": "ipython",
    "MySQLdb": "mysqlclient",
    "OpenSSL": "pyOpenSSL",
    "PIL": "pillow",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "git": "GitPython",
    "google": "protobuf",
    "hydra": "hydra-core",
    "ignite": "pytorch-ignite",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "skopt": "scikit-optimize",
    "umap": "umap-learn",
    "yaml": "PyYAML",
}


@dataclass(frozen=True)
class Surroundings:
    """What hints depend on."""

    spec: JobSpec
    code: Path
    """The working folder; missing if the run was on another machine."""


def hint_for(exceptions: Sequence[str], surroundings: Surroundings) -> str:
    """The hint for the exception that ended the script or for one of its causes; empty if there is none."""
    for line in exceptions:
        missing = _MISSING_MODULE.match(line)
        if missing:
            return _missing_module(missing[1], surroundings)
        missing = _MISSING_PART.match(line)
        if missing:
            return _missing_part(missing[1], missing[2], is_file=bool(missing[3]))
        missing = _MISSING_DEPENDENCY.match(line)
        if missing:
            return _missing_package(missing[1], missing[1], surroundings.spec)
    return ""


def _missing_module(name: str, surroundings: Surroundings) -> str:
    folder = posixpath.dirname(surroundings.spec.script)
    own = _own_module(name, surroundings.code)
    if folder and own:
        return (
            f"The source folder has {own}, but Python looks for modules beside the script, in {folder}/. "
            'Add the source folder: --env PYTHONPATH=. on the command line, environment_variables={"PYTHONPATH": "."} '
            "in Python."
        )
    return _missing_package(name, _PACKAGES.get(name, name), surroundings.spec)


def _missing_part(module: str, package: str, is_file: bool) -> str:
    if is_file:
        hiding = module.rpartition(".")[0]
        return f"'{hiding}' is a single file here. Does a file of yours hide the package '{package}'?"
    return (
        f"'{package}' is there, but has no '{module}'. Name the release that the script was written for, such as "
        f"{package}==1.2, or add the package that brings '{module}': --pip on the command line, pip_packages in Python."
    )


def _own_module(name: str, code: Path) -> str:
    if (code / f"{name}.py").is_file():
        return f"{name}.py"
    return f"{name}/" if (code / name).is_dir() else ""


def _missing_package(module: str, package: str, spec: JobSpec) -> str:
    environment = spec.environment
    if environment.is_of_image and environment.container is not None:
        return (
            f"The image {environment.container.image} has no module '{module}'. Use an image that has it, or name the "
            f'package: pip_packages=["{package}"].'
        )
    if environment.user_managed:
        python = environment.interpreter or "python"
        return f"The run uses a Python of yours as it is. Install the package there: {python} -m pip install {package}"
    return (
        f"The run's environment has no module '{module}'. Add its package: --pip {package} on the command line, "
        f'pip_packages=["{package}"] in Python.'
    )
