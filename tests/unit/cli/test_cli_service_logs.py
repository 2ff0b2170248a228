"""What `trainmaster services logs` shows, and that it leaves nothing out."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.inner_dispatcher import InnerDispatcher

from trainmaster.cli.service_logs import ServiceLogs
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.service_spec import ServiceCode, ServiceRecord, ServiceSpec, ServiceState


class Screen(io.StringIO):
    """Where the service says one more line each time that something is shown; at the third it is deleted."""

    def __init__(self, place: InnerDispatcher) -> None:
        super().__init__()
        self._place = place
        self._shown = 0

    def write(self, text: str) -> int:
        self._shown += 1
        if self._shown == 3:
            self._place.store.services.update("mine", state=ServiceState.DELETING)
        else:
            with open(self._place.folder.service("mine").path / "service.log", "a") as file:
                file.write(f"said meanwhile {self._shown}\n")
        return super().write(text)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[InnerDispatcher]:
    made = InnerDispatcher(tmp_path)
    spec = ServiceSpec(code=ServiceCode("0" * 64, "score.py"), models=(), environment=EnvironmentSpec())
    record = ServiceRecord(name="mine", compute_type="Local", spec=spec, token="t")
    made.store.services.add(record)
    made.store.services.update("mine", generation=1)
    folder = made.folder.service("mine")
    folder.deploy_log(1).parent.mkdir(parents=True)
    folder.deploy_log(1).write_text("deployed\n")
    (folder.path / "service.log").write_text("one\ntwo\nthree\n")
    yield made
    made.close()


def test_lines_between_the_first_look_and_the_following_are_shown(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(place)
    monkeypatch.setattr(sys, "stdout", screen)
    logs = ServiceLogs(place, "mine")
    logs.show_last(2, init=False)
    logs.follow()
    assert screen.getvalue() == "two\nthree\nsaid meanwhile 1\nsaid meanwhile 2\n"


def test_the_last_lines_of_all_logs_together(place: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for count in (100, 1, 0):
        ServiceLogs(place, "mine").show_last(count, init=False)
    ServiceLogs(place, "mine").show_last(100, init=True)
    assert capsys.readouterr().out == "deployed\none\ntwo\nthree\nthree\ndeployed\n"
