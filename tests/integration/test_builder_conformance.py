"""Both builders, uv's virtual environments and conda prefixes, do what every environment builder must do."""

from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path

import pytest
from tests.builder_process import start_builder
from tests.chaos.wheels import make_wheel
from tests.conda_channel import make_channel, running_python, tinytool

from trainmaster.environments.conda_channels import SETTING as CHANNELS
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.testing import BuilderConformance, BuilderPlace

start = partial(start_builder, stderr=subprocess.PIPE)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of wheels and a conda channel."""
    folder = tmp_path_factory.mktemp("packages")
    make_wheel(folder / "wheels", "tinypackage")
    make_channel(folder / "channel", running_python(), tinytool("1.0"))
    return folder


@pytest.fixture(autouse=True)
def sources(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages come only from that folder."""
    for name in [each for each in os.environ if each.startswith(("PIP_", "UV_", "TRAINMASTER_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(packages / "wheels"))
    monkeypatch.setenv(CHANNELS, (packages / "channel").as_uri())
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(packages / "rattler-cache"))


class TestVirtualEnvironments(BuilderConformance):
    @pytest.fixture
    def place(self, tmp_path: Path) -> BuilderPlace:
        return BuilderPlace(
            start=start,
            folder=tmp_path / "environments",
            spec=EnvironmentSpec(pip_packages=("tinypackage",)),
            module="tinypackage",
            missing=EnvironmentSpec(pip_packages=("no-such-package",)),
        )


class TestCondaPrefixes(BuilderConformance):
    @pytest.fixture
    def place(self, tmp_path: Path) -> BuilderPlace:
        return BuilderPlace(
            start=start,
            folder=tmp_path / "environments",
            spec=EnvironmentSpec(conda_packages=("tinytool",)),
            module="tinytool",
            missing=EnvironmentSpec(conda_packages=("no-such-package",)),
        )
