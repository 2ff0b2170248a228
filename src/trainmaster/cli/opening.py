"""Which workspace and which run a command is about."""

from __future__ import annotations

import contextlib
import re
import sys
from dataclasses import dataclass

from trainmaster.job.errors import RunNotFoundException, UserErrorException
from trainmaster.sdk.display.screen import note
from trainmaster.sdk.workspace.files import find_place
from trainmaster.sdk.workspace.workspace import Workspace
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.records import RunQuery, RunRecord
from trainmaster.shared.serialization import from_plain, to_plain

_NEWEST = re.compile(r"@([1-9]\d{0,3})")
_PAGE = 1000
_PAGES = 20


def open_workspace(given: str | None) -> Workspace:
    """The workspace of `--workspace`, or the one of this folder, created on first use as in the SDK."""
    if given is None:
        # What the SDK prints when it creates a workspace is not data of the command.
        with contextlib.redirect_stdout(sys.stderr):
            return Workspace.from_config()
    place = find_place(given)
    if isinstance(place, WorkspaceFolder):
        return Workspace(path=place.path)
    return Workspace(workspace_name=place.name, server=place.server)


class LazyWorkspace:
    """Opens a workspace when it is first needed."""

    def __init__(self, given: str | None) -> None:
        self._given = given
        self._opened: Workspace | None = None

    @property
    def is_here(self) -> bool:
        """Whether the workspace is on this machine."""
        return not is_on_server(self._given)

    def open(self) -> Workspace:
        """The workspace."""
        if self._opened is None:
            self._opened = open_workspace(self._given)
        return self._opened


def locate(given: str | None) -> WorkspaceFolder:
    """The folder of that workspace, which need not exist. Nothing is created. Refused for one on a server."""
    place = find_place(given)
    if isinstance(place, WorkspaceFolder):
        return place
    raise UserErrorException(
        f"the workspace is on {place.server}",
        cause="This command is about the folder and the dispatcher of a workspace, which are on that server.",
        hint="Run it there, or choose a workspace of this machine with --workspace.",
    )


def is_on_server(given: str | None) -> bool:
    """Whether that workspace is on a server."""
    return not isinstance(find_place(given), WorkspaceFolder)


def find_missing(given: str | None) -> WorkspaceFolder | None:
    """The folder of that workspace if it does not exist yet; None if it exists, or is on a server."""
    place = find_place(given)
    return place if isinstance(place, WorkspaceFolder) and not place.identity.exists() else None


def find_run(workspace: Workspace, given: str) -> RunRecord:
    """The run with this id, with the only id that begins like this, or `last`, `@1`, `@2`, ...

    The name of an experiment stands for its newest run; a note on standard error says which.
    """
    found = _find_exactly(workspace, given)
    if found is not None:
        return found
    experiment = _find_experiment(workspace, given)
    if experiment is None:
        return get_run(workspace, _find_by_prefix(workspace, given).id)
    if experiment.has_others:
        note(f"'{given}' is an experiment: its newest run is {experiment.newest}")
    return get_run(workspace, experiment.newest)


def find_run_to_change(workspace: Workspace, given: str) -> RunRecord:
    """Like `find_run`, but refuses the name of an experiment with several runs, because it is ambiguous."""
    found = _find_exactly(workspace, given)
    if found is not None:
        return found
    experiment = _find_experiment(workspace, given)
    if experiment is not None and experiment.has_others:
        raise RunNotFoundException(
            f"'{given}' is an experiment with several runs, not a run",
            hint=f"Its newest run is {experiment.newest}; 'trainmaster runs -e {given}' lists them.",
        )
    return get_run(workspace, experiment.newest if experiment else _find_by_prefix(workspace, given).id)


@dataclass(frozen=True)
class _ExperimentRuns:
    newest: str
    has_others: bool


def _find_exactly(workspace: Workspace, given: str) -> RunRecord | None:
    newest = _NEWEST.fullmatch("@1" if given == "last" else given)
    if newest:
        return get_run(workspace, _nth_newest(workspace, int(newest[1])).id)
    try:
        return get_run(workspace, given)
    except RunNotFoundException:
        return None


def _find_experiment(workspace: Workspace, name: str) -> _ExperimentRuns | None:
    """The runs of the experiment with exactly this name, without their children."""
    found = list_runs(workspace, RunQuery(experiment=name, limit=2)) if name else []
    return _ExperimentRuns(found[0].id, len(found) > 1) if found else None


def get_run(workspace: Workspace, run_id: str) -> RunRecord:
    """The whole record of a run. Lists of runs omit the long parts."""
    return from_plain(RunRecord, workspace.connection.call("runs.get", run_id=run_id))


def list_runs(workspace: Workspace, query: RunQuery) -> list[RunRecord]:
    """The runs that match `query`."""
    return [from_plain(RunRecord, each) for each in workspace.connection.call("runs.list", query=to_plain(query))]


def _nth_newest(workspace: Workspace, number: int) -> RunRecord:
    found = list_runs(workspace, RunQuery(limit=number))
    if len(found) < number:
        raise RunNotFoundException(
            f"there is no run @{number}: workspace '{workspace.name}' has {len(found)} runs"
            if found
            else f"workspace '{workspace.name}' has no runs yet",
            hint="'trainmaster runs' lists them." if found else "'trainmaster submit FOLDER SCRIPT' starts one.",
        )
    return found[-1]


def _find_by_prefix(workspace: Workspace, given: str) -> RunRecord:
    found: list[RunRecord] = []
    before: int | None = None
    for _ in range(_PAGES):
        page = list_runs(workspace, RunQuery(limit=_PAGE, before_seq=before, include_children=True, archived=True))
        found += [record for record in page if given and record.id.startswith(given)]
        if len(page) < _PAGE:
            break
        before = page[-1].seq
    if len(found) == 1:
        return found[0]
    raise _not_found(workspace, given, [record.id for record in found])


def _not_found(workspace: Workspace, given: str, ids: list[str]) -> RunNotFoundException:
    if ids:
        shown = [*ids[:5], *([f"and {len(ids) - 5} more"] if len(ids) > 5 else [])]
        return RunNotFoundException(
            f"{len(ids)} runs begin with '{given[:300]}'", cause="\n".join(shown), hint="Type more of the id."
        )
    return RunNotFoundException(
        f"there is no run '{given[:300]}' in workspace '{workspace.name}'", hint="'trainmaster runs' lists them."
    )
