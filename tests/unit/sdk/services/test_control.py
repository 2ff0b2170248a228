"""Starting a service on a machine that cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.service_run import Service

from trainmaster.job.errors import WebserviceException
from trainmaster.scoring import control


def test_a_supervisor_that_does_not_start_in_time_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # No Python starts as fast as that.
    monkeypatch.setattr(control, "_START_SECONDS", 0.001)
    service = Service(tmp_path, "def init(): pass\n\ndef run(data): return data\n")
    with pytest.raises(WebserviceException, match="did not start within"):
        control.start(service.plan)
    assert control.supervisor(service.folder) is None
