"""`trainmaster up`, `down` and `status`: the dispatcher, which moves runs through their states."""

from __future__ import annotations

from typing import Any

from trainmaster.cli import exits
from trainmaster.cli.opening import locate, open_workspace
from trainmaster.cli.output import show_result
from trainmaster.cli.parsing import Options
from trainmaster.sdk.backend.local.connection import stop_dispatcher
from trainmaster.sdk.display.screen import note, paint, say, say_json
from trainmaster.sdk.display.text import count_of
from trainmaster.sdk.workspace.files import find_place
from trainmaster.sdk.workspace.workspace import Workspace
from trainmaster.shared.dispatcher_socket import try_line
from trainmaster.shared.folders import WorkspaceFolder


def up(options: Options) -> int:
    """Start the dispatcher, if it does not run. Commands that need it start it too; this saves them the time.

    JSON: the keys of 'status', and "started", which is true if the dispatcher did not run before.

      trainmaster up
    """
    folder = locate(options.workspace)
    was_alive = ask(folder) is not None
    open_workspace(options.workspace).connection.call("status")
    state = describe(folder)
    word = "serves" if was_alive else "now serves"
    text = f"Dispatcher {state['pid']} {word} {state['path']}: {count_of(len(state['active_runs']), 'active run')}."
    return show_result(options, {**state, "started": not was_alive}, text)


def status(options: Options) -> int:
    """Show whether the dispatcher runs, the runs that have not ended, and the services. Starts nothing.

    JSON: {"path", "alive", "pid", "version", "active_runs": [id, ...], "services": [name, ...]}.

      trainmaster status
    """
    place = find_place(options.workspace)
    if isinstance(place, WorkspaceFolder):
        state, exists = describe(place), place.identity.exists()
    else:
        # A server starts the dispatchers of its workspaces itself.
        state, exists = describe_remote(open_workspace(options.workspace)), True
    if options.json:
        say_json(state)
    elif not state["alive"]:
        say(f"{'No dispatcher' if exists else 'No workspace'} in {state['path']}.")
        note("The next command that needs a dispatcher starts it. 'trainmaster up' starts it now.")
    else:
        say(f"Dispatcher {state['pid']} serves {state['path']}: {count_of(len(state['active_runs']), 'active run')}.")
        for run_id in state["active_runs"]:
            say(f"  {paint(run_id, 'cyan')}")
        for name in state["services"]:
            say(f"  service {paint(name, 'cyan')}")
    return exits.OK


def down(options: Options) -> int:
    """Stop the dispatcher. Runs and services continue, and the next dispatcher takes them over.

    JSON: {"path", "stopped", "pid", "active_runs": [id, ...]}.

      trainmaster down
    """
    folder = locate(options.workspace)
    state = describe(folder)
    if state["alive"]:
        stop_dispatcher(folder, int(state["pid"]))
    if options.json:
        keys = ("path", "pid", "active_runs")
        say_json({**{key: state[key] for key in keys}, "stopped": state["alive"]})
    elif not state["alive"]:
        say(f"No dispatcher in {state['path']}.")
    else:
        runs = state["active_runs"]
        say(f"Dispatcher {state['pid']} of {state['path']} has stopped.")
        if runs:
            note(
                f"{count_of(len(runs), 'active run')}: running ones continue, queued ones wait for the next dispatcher."
            )
        if state["services"]:
            note(f"{count_of(len(state['services']), 'service')}: they continue, and the next dispatcher watches them.")
    return exits.OK


def describe(folder: WorkspaceFolder) -> dict[str, Any]:
    """The state of the dispatcher of a workspace."""
    return _describe(str(folder.path), ask(folder))


def describe_remote(workspace: Workspace) -> dict[str, Any]:
    """The state of the dispatcher of a workspace on a server; `path` is the workspace's address."""
    return _describe(workspace.backend.location, workspace.connection.call("status"))


def _describe(path: str, answer: dict[str, Any] | None) -> dict[str, Any]:
    active = [run["id"] for run in answer["active"]] if answer else []
    return {
        "path": path,
        "alive": answer is not None,
        "pid": answer["pid"] if answer else None,
        "version": answer["version"] if answer else None,
        "active_runs": active,
        # A dispatcher of an earlier release has no services.
        "services": answer.get("services", []) if answer else [],
    }


def ask(folder: WorkspaceFolder) -> dict[str, Any] | None:
    """The status that the dispatcher reports. None if no dispatcher runs; it is not started."""
    line = try_line(folder)
    if line is None:
        return None
    try:
        line.send({"id": 1, "op": "status", "args": {}})
        answer: dict[str, Any] = line.receive()["result"]
    except (ConnectionError, EOFError, KeyError):
        return None
    finally:
        line.close()
    return answer
