"""Waiting for a run, with its logs as they grow."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import ActivityFailedException
from trainmaster.sdk.run.logs import LogReader, Print
from trainmaster.shared.records import Status
from trainmaster.shared.terminal import Filter, SafeStream, clean, is_terminal

if TYPE_CHECKING:
    from trainmaster.sdk.run.run import Run

_terminal = Filter()


def wait_for(run: Run, *, show_output: bool, raise_on_error: bool) -> dict[str, Any]:
    """The details of the run when it has ended."""
    try:
        if show_output:
            _stream(run, show_now)
        else:
            _wait(run)
    except KeyboardInterrupt:
        print(f"\nStopped waiting; run {run.id} continues. 'trainmaster logs -f {run.id}' follows it again.")
        return run.get_details()
    details = run.get_details()
    if details["status"] == Status.FAILED and raise_on_error:
        raise ActivityFailedException(
            f"run {run.id} failed",
            # Python prints it as it is, with the last lines of the script.
            cause=clean(str(details.get("error", {}).get("message", ""))),
            hint="run.get_details()['error'] and run.get_all_logs() tell more.",
        )
    return details


def _wait(run: Run) -> None:
    with run.experiment.workspace.connection.watch(run.id) as watch:
        for _ in watch:
            pass


def _stream(run: Run, show: Print) -> None:
    show(f"RunId: {run.id}\nWeb View: {run.get_portal_url()}\n")
    backend = run.experiment.workspace.backend
    reader = LogReader(backend.run_files(run.id))
    for _ in backend.follow_run(run.id):
        reader.show(show)
    show(f"\nExecution Summary\n=================\nRunId: {run.id}\nWeb View: {run.get_portal_url()}\n\n")


def show_now(text: str) -> None:
    """Prints and flushes; on a terminal only escape sequences for colours are kept."""
    if is_terminal(sys.stdout) and not isinstance(sys.stdout, SafeStream):
        text = _terminal.pass_on(text)
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        # A character that the terminal cannot show must not end the waiting.
        encoding = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()
