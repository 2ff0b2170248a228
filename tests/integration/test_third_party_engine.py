"""The engine that docs/internals/engines.md shows: installed as a package of its own, it does what an engine has to."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import end_workspace

from trainmaster import Estimator, Experiment, Workspace
from trainmaster.engines.plans import read_claim
from trainmaster.job.agent.tree import processes_of
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.records import TargetRecord
from trainmaster.shared.serialization import to_plain
from trainmaster.testing import EngineConformance, EnginePlace

DOCUMENT = Path(__file__).parents[2] / "docs/internals/engines.md"


def install(site: Path) -> None:
    """What pip would make of the package."""
    engine, configuration = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    (site / "shell_engine.py").write_text(engine + configuration)
    (points,) = re.findall(
        r"^```toml\n\[project.entry-points.\"(.*?)\"\]\n(.*?)^```", DOCUMENT.read_text(), re.M | re.S
    )
    facts = site / "shell_engine-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: shell-engine\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[{points[0]}]\n{points[1]}".replace('"', ""))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EnginePlace]:
    site = tmp_path_factory.mktemp("site")
    install(site)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(site), prepend=":")
        workspace = Workspace.create("shell", path=tmp_path_factory.mktemp("shell") / "w", show_output=False)
        for name, engine in (("pair", "shell"), ("odd", "gone")):
            record = TargetRecord(name, engine, nodes=2, cpus_per_node=1, gpus_per_node=0)
            workspace.connection.call("targets.put", target=to_plain(record))
        folder = WorkspaceFolder(workspace.path)

        def lose(run, number: int) -> None:
            claim = read_claim(folder.run(run.id).node(number))
            assert claim is not None
            os.kill(claim["pid"], signal.SIGKILL)

        yield EnginePlace(workspace, "pair", lose=lose, left=lambda run: list(map(str, processes_of(run.id))))
        end_workspace(workspace.path)


class TestShellEngine(EngineConformance):
    pass


def test_its_facts_are_kept(place, project):
    estimator = Estimator(str(project(train="pass")), entry_script="train.py", compute_target="pair", user_managed=True)
    run = Experiment(place.workspace, "facts").submit(estimator)
    assert run.wait_for_completion()["properties"]["shell.agents"] == "1"


def test_an_engine_that_is_not_installed(place, project):
    estimator = Estimator(str(project(train="pass")), entry_script="train.py", compute_target="odd", user_managed=True)
    with pytest.raises(ComputeTargetException, match="there is no engine 'gone'") as refusal:
        Experiment(place.workspace, "odd").submit(estimator)
    assert "Known engines: kubernetes, local, shell, slurm, slurm-ssh, ssh" in str(refusal.value)
