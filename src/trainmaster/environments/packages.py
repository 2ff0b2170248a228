"""The second stage: packages, by uv."""

from __future__ import annotations

from pathlib import Path

from trainmaster.environments.tools import Tools
from trainmaster.job import EnvironmentSpec


def install(spec: EnvironmentSpec, folder: Path, tools: Tools) -> None:
    """Resolves and installs the packages of `spec` into `folder`."""
    if not spec.pip_packages:
        return
    options = ["--python", f"{folder}/bin/python", *tools.index_options]
    tools.uv(["pip", "install", *options, *requirements(spec)], f"pip install {' '.join(spec.pip_packages)}")


def requirements(spec: EnvironmentSpec) -> list[str]:
    """The packages as arguments: an option with its value becomes two."""
    arguments: list[str] = []
    for package in spec.pip_packages:
        arguments += package.split(None, 1) if package.startswith("-") else [package]
    return arguments
