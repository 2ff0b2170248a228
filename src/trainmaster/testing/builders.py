"""What every environment builder must do, as tests to inherit.

    from trainmaster.testing import BuilderConformance, BuilderPlace

    @pytest.fixture
    def place(tmp_path):
        return BuilderPlace(start=..., folder=tmp_path / "environments", spec=..., module="numpy", missing=...)

    class TestMyBuilder(BuilderConformance):
        pass

A builder is a process: it creates `<folder>/<digest>.<n>`, and finally the link `<folder>/<digest>` that makes the
environment ready. The tests need no network if the packages of `place` need none.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trainmaster.environments import build_record, prefix
from trainmaster.environments.lock import LOCK_NAME
from trainmaster.environments.prefix import Prefix
from trainmaster.shared.job_spec import EnvironmentSpec

Builder = subprocess.Popen[bytes]


@dataclass(frozen=True)
class BuilderPlace:
    """A builder and environments to build with it."""

    start: Callable[[Path, EnvironmentSpec, bool], Builder]
    """Starts a builder process for a folder and a spec; the flag means to build again even if there is one."""
    folder: Path
    """A folder for environments, which need not exist."""
    spec: EnvironmentSpec
    """An environment that can be built quickly."""
    module: str
    """A module that scripts can import in that environment, and not in Python alone."""
    missing: EnvironmentSpec
    """An environment that cannot be built, because a package does not exist."""
    patience: float = 240.0
    """The longest time in seconds that one build may take."""

    @property
    def name(self) -> str:
        """The digest of the spec."""
        return prefix.digest(self.spec)

    def build(self, spec: EnvironmentSpec | None = None, refresh: bool = False) -> tuple[int, bytes]:
        """Build to the end; return the exit code and what was printed to standard error."""
        builder = self.start(self.folder, spec or self.spec, refresh)
        _, errors = builder.communicate(timeout=self.patience)
        return builder.returncode, errors or b""

    def ready(self) -> Path:
        """The real folder of the environment, which must be ready."""
        folder = prefix.find_ready(self.folder, self.name)
        assert folder is not None, f"{self.name} is not ready in {self.folder}"
        return folder

    def builds(self) -> list[str]:
        """The names of all complete builds of the spec."""
        return sorted(path.name for path in self.folder.glob(f"{self.name}.*") if path.is_dir())

    def leftovers(self) -> list[str]:
        """What builders left unfinished."""
        return [path.name for path in self.folder.glob(".*") if path.is_dir() or path.is_symlink()]


class BuilderConformance:
    """Inherit this and provide the fixture `place`."""

    def test_builds_an_environment(self, place: BuilderPlace) -> None:
        """A script finds its packages there, and the environment's programs come first on its PATH."""
        code, errors = place.build()
        assert code == 0, errors
        folder = place.ready()
        opened = prefix.open_prefix(folder, os.defpath)
        assert _imports(opened, place.module)
        assert opened.variables["PATH"].split(":")[0] == f"{folder}/bin"
        assert place.leftovers() == []

    def test_describes_what_it_built(self, place: BuilderPlace) -> None:
        """A record and a lock of exact versions are part of the environment."""
        place.build()
        folder = place.ready()
        record = build_record.read(folder)
        assert record is not None and record.name == folder.name
        assert record.python == prefix.python_version(place.spec)
        assert (folder / LOCK_NAME).read_text().strip()

    def test_builds_once(self, place: BuilderPlace) -> None:
        """An environment that is ready is not built again, and keeps its folder."""
        place.build()
        first = place.ready()
        before = (first / LOCK_NAME).stat().st_mtime_ns
        assert place.build()[0] == 0
        assert place.ready() == first and place.builds() == [first.name]
        assert (first / LOCK_NAME).stat().st_mtime_ns == before

    def test_builds_again_on_request(self, place: BuilderPlace) -> None:
        """A new build gets a new folder; runs that use the old one keep it."""
        place.build()
        first = place.ready()
        assert place.build(refresh=True)[0] == 0
        second = place.ready()
        assert second != first and place.builds() == sorted((first.name, second.name))
        assert all(_imports(prefix.open_prefix(each, os.defpath), place.module) for each in (first, second))

    def test_repairs_a_damaged_environment(self, place: BuilderPlace) -> None:
        """An environment with missing files is not ready, and the next builder replaces it."""
        place.build()
        first = place.ready()
        shutil.rmtree(next(first.glob("lib/python3.*/site-packages")))
        assert prefix.find_ready(place.folder, place.name) is None
        assert place.build()[0] == 0
        assert place.ready() != first and _imports(prefix.open_prefix(place.ready(), os.defpath), place.module)

    def test_reports_a_failure(self, place: BuilderPlace) -> None:
        """The last line of standard error is the error as JSON, and nothing half-built remains."""
        code, errors = place.build(place.missing)
        assert code != 0
        error = json.loads(errors.splitlines()[-1])
        assert error["headline"] and "Traceback" not in errors.decode()
        assert prefix.find_ready(place.folder, prefix.digest(place.missing)) is None
        assert place.leftovers() == []

    def test_two_builders_share_one_build(self, place: BuilderPlace) -> None:
        """Builders of the same environment wait for each other, and only one of them builds."""
        builders = [place.start(place.folder, place.spec, False) for _ in range(2)]
        for builder in builders:
            builder.communicate(timeout=place.patience)
        assert [builder.returncode for builder in builders] == [0, 0]
        assert place.builds() == [place.ready().name]

    def test_survives_a_killed_builder(self, place: BuilderPlace) -> None:
        """After a kill there is no environment or a complete one, and the next builder succeeds."""
        builder = place.start(place.folder, place.spec, False)
        assert builder.stdout is not None
        # It is at work once it has printed something.
        builder.stdout.readline()
        os.kill(builder.pid, signal.SIGKILL)
        builder.communicate()
        folder = prefix.find_ready(place.folder, place.name)
        assert folder is None or _imports(prefix.open_prefix(folder, os.defpath), place.module)
        assert place.build(refresh=True)[0] == 0
        assert _imports(prefix.open_prefix(place.ready(), os.defpath), place.module)
        assert place.leftovers() == []


def _imports(opened: Prefix, module: str) -> bool:
    """Whether a script in the environment can import the module, as a run would start it."""
    done = subprocess.run([opened.python, "-c", f"import {module}"], env=dict(opened.variables), check=False)
    return done.returncode == 0
