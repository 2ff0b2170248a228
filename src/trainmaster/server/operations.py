"""Calling an operation of a dispatcher for a request."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from trainmaster.server.errors import refuse
from trainmaster.server.own_variables import use_own_variables
from trainmaster.server.permissions import Caller, Permission
from trainmaster.storage.urls import mask_url

Arguments = dict[str, Any]


def adapt(operation: str, arguments: Arguments, caller: Caller, workspace: str = "") -> Arguments:
    """The arguments that the dispatcher gets: what a client says about itself is not believed."""
    change = _ADAPTED.get(operation)
    if change is not None:
        arguments = change(arguments, caller)
    if operation in _WITH_PRIORITY:
        # Everybody may let others go first, but not themselves.
        arguments = {**arguments, "may_raise_priority": caller.may(Permission.OWN, workspace)}
    if operation in _WITH_VARIABLES:
        arguments = use_own_variables(arguments, os.environ)
    if caller.scope is not None and "run_id" in arguments:
        # A job can only act for its own run.
        arguments = {**arguments, "run_id": caller.scope.run_id}
    return arguments


def _set_submitter(arguments: Arguments, caller: Caller) -> Arguments:
    run = arguments.get("run")
    return {**arguments, "run": {**run, "submitted_by": caller.name}} if isinstance(run, Mapping) else arguments


def _set_submitters(arguments: Arguments, caller: Caller) -> Arguments:
    runs = arguments.get("runs")
    if not isinstance(runs, list):
        return arguments
    changed = [{**run, "submitted_by": caller.name} if isinstance(run, Mapping) else run for run in runs]
    return {**arguments, "runs": changed}


def _set_rerunner(arguments: Arguments, caller: Caller) -> Arguments:
    return {**arguments, "submitted_by": caller.name, "sources": arguments.get("sources") or {}}


def _keep_within_run(arguments: Arguments, caller: Caller) -> Arguments:
    if arguments.get("of_run") is not True:
        raise refuse(403, "over HTTP only files of the own run can become a model")
    return _set_creator(arguments, caller)


def _without_folders(arguments: Arguments, caller: Caller) -> Arguments:
    """Folders have routes of their own, which check that the server may open them."""
    return {**arguments, "with_folders": False}


def _set_creator(arguments: Arguments, caller: Caller) -> Arguments:
    model = arguments.get("model")
    return {**arguments, "model": {**model, "created_by": caller.name}} if isinstance(model, Mapping) else arguments


def _set_owner(arguments: Arguments, caller: Caller) -> Arguments:
    if arguments.get("kind") == "command":
        raise refuse(
            403,
            "you may not add a command",
            cause="It would run as the account of the server. Owners of the workspace add it for all runs.",
        )
    return {**arguments, "owner": caller.name}


def _set_channel_creator(arguments: Arguments, caller: Caller) -> Arguments:
    return {**arguments, "created_by": caller.name}


_ADAPTED: Mapping[str, Callable[[Arguments, Caller], Arguments]] = {
    "runs.submit": _set_submitter,
    "sweeps.submit": _set_submitter,
    "runs.create": _set_submitters,
    "runs.rerun": _set_rerunner,
    "notifications.put": _set_channel_creator,
    "notifications.put_own": _set_owner,
    "notifications.delete_own": _set_owner,
    "notifications.test_own": _set_owner,
    "notifications.list": _set_owner,
    "models.keep": _keep_within_run,
    "models.register": _set_creator,
    "models.register_run_files": _set_creator,
    "models.convert": _set_creator,
    "datastores.files": _without_folders,
    "datastores.read": _without_folders,
    "datastores.write": _without_folders,
}

_WITH_PRIORITY = frozenset({"runs.submit", "runs.rerun", "sweeps.submit"})

_WITH_VARIABLES = frozenset(
    {
        "runs.submit",
        "runs.rerun",
        "sweeps.submit",
        "environments.build",
        "services.deploy",
        "services.update",
        "images.create",
    }
)
"""Operations whose arguments have variables of the client's machine."""

_DATASTORES = frozenset({"datastores.get", "datastores.list", "datastores.put"})
_HARMLESS_OPTIONS = frozenset({"account_name", "anon"})


def has_credentials(operation: str) -> bool:
    """Whether the result of an operation contains keys that must not leave the server."""
    return operation in _DATASTORES


def conceal(operation: str, result: Any) -> Any:
    """The result without the keys of datastores: the options that their drivers need, and passwords in addresses."""
    if not has_credentials(operation):
        return result
    return [_conceal_datastore(each) for each in result] if isinstance(result, list) else _conceal_datastore(result)


def _conceal_datastore(record: dict[str, Any] | None) -> dict[str, Any] | None:
    if record is None:
        return None
    options = {name: value for name, value in record["options"].items() if name in _HARMLESS_OPTIONS}
    return {**record, "options": options, "url": mask_url(record["url"])}
