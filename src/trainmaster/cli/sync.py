"""`trainmaster sync`: delivers what programs have logged to runs on servers while the network was gone."""

from __future__ import annotations

from trainmaster.cli import exits
from trainmaster.cli.parsing import Options
from trainmaster.sdk.backend.remote.spool_folder import find_spools
from trainmaster.sdk.backend.remote.syncing import Synced, sync_run
from trainmaster.sdk.display.screen import note, say, say_json


def sync(options: Options) -> int:
    """Send what programs on this machine have logged to runs on servers, and the servers do not have yet.

    JSON: a list of {"run", "server", "workspace", "error"}; "error" is null if the server has everything.

      trainmaster sync
    """
    found = [sync_run(folder) for folder in find_spools()]
    if options.json:
        say_json([_as_json(each) for each in found])
    elif found:
        for each in found:
            say(f"{each.folder.run_id}  {_as_text(each)}")
    else:
        note("Everything that was logged on this machine has been sent.")
    return exits.UNUSABLE if any(each.error for each in found) else exits.OK


def _as_json(synced: Synced) -> dict[str, str | None]:
    return {
        "run": synced.folder.run_id,
        "server": str(synced.folder.server),
        "workspace": synced.folder.workspace,
        "error": synced.error.message if synced.error else None,
    }


def _as_text(synced: Synced) -> str:
    if synced.is_gone:
        return f"was deleted on {synced.folder.server}; what was logged to it is dropped"
    if synced.error is not None:
        return f"not sent: {synced.error.message}"
    return f"sent to {synced.folder.server}" + ("; its program is still running" if synced.is_alive else "")
