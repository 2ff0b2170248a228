"""Who hears of a change of a run."""

from __future__ import annotations

from trainmaster.dispatcher.runs.watchers import Watchers
from trainmaster.shared.records import RunRecord, Status

RUN = RunRecord("run", "e", Status.RUNNING, 1.0, spec="{}")
CHILD = RunRecord("child", "e", Status.RUNNING, 1.0, parent_id="run")


class Notes:
    """A listener that notes what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def run_changed(self, record: RunRecord) -> None:
        self.heard.append(f"{record.id} {record.status}")

    def run_reported(self, run_id: str) -> None:
        self.heard.append(f"{run_id} reported")


def test_each_client_hears_of_the_run_that_it_watches() -> None:
    watchers = Watchers()
    with watchers.watch(RUN) as first, watchers.watch(RUN) as second, watchers.watch(CHILD) as other:
        watchers.tell(RUN)
        assert first.get_nowait() == second.get_nowait() == {"run_id": "run", "status": "Running", "ended": False}
        assert other.empty()
        assert watchers.is_watched("run") and watchers.is_watched("child")
    watchers.tell(RUN)
    assert first.empty() and not watchers.is_watched("run")


def test_a_run_stays_watched_until_the_last_client_has_left() -> None:
    watchers = Watchers()
    with watchers.watch(CHILD) as first:
        with watchers.watch(CHILD):
            pass
        assert watchers.is_watched("child") and watchers.watched_without_job == ("child",)
        watchers.tell(CHILD)
        assert not first.empty()
    assert watchers.watched_without_job == ()


def test_runs_with_a_job_are_told_by_their_drivers() -> None:
    watchers = Watchers()
    with watchers.watch(RUN):
        assert watchers.watched_without_job == ()


def test_listeners_hear_of_all_runs() -> None:
    watchers, notes = Watchers(), Notes()
    watchers.add_listener(notes)
    watchers.tell(RUN)
    watchers.tell_report("child")
    watchers.remove_listener(notes)
    watchers.tell(RUN)
    assert notes.heard == ["run Running", "child reported"]
