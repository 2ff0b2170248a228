"""The variables of the client's machine in a submit: on the server's machine its own take their place. Pure.

At home a job inherits a few variables of the submitting shell (PATH, HOME, TMPDIR), and packages come from where that
shell's pip is told. The folders of a laptop do not exist on the server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trainmaster.environments.sources import OWN_VARIABLES, source_variables
from trainmaster.sdk.estimators.inherited import select_inherited

Arguments = dict[str, Any]

_INHERITED = "inherited_variables"


def use_own_variables(arguments: Arguments, environ: Mapping[str, str]) -> Arguments:
    """The arguments of a submit or a deployment, with the variables of the server's machine."""
    inherited = select_inherited(environ)
    changed = dict(arguments)
    if "sources" in arguments and (arguments["sources"] is None or isinstance(arguments["sources"], Mapping)):
        changed["sources"] = merge_sources(arguments["sources"] or {}, environ)
    if isinstance(run := arguments.get("run"), Mapping):
        changed["run"] = {**run, "spec": _replace_in_text(run.get("spec", ""), inherited)}
    if "sweep" in arguments:
        changed["sweep"] = _replace_in_text(arguments["sweep"], inherited)
    for name in ("service", "image", "changes"):
        record = arguments.get(name)
        if isinstance(record, Mapping) and isinstance(record.get("spec"), Mapping):
            changed[name] = {**record, "spec": _replace(record["spec"], inherited)}
    return changed


def merge_sources(given: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Package sources of the server, and over them those of the client that are not folders of its machine.

    >>> merge_sources({"PIP_INDEX_URL": "https://a/simple", "PIP_CERT": "/laptop.pem"}, {"PIP_CERT": "/server.pem"})
    {'PIP_CERT': '/server.pem', 'PIP_INDEX_URL': 'https://a/simple'}
    """
    theirs = {name: value for name, value in given.items() if name not in OWN_VARIABLES and not _is_path(value)}
    return {**source_variables(environ), **theirs}


def _is_path(value: Any) -> bool:
    return isinstance(value, str) and any(part.startswith(("/", "~", ".", "file:")) for part in value.split())


def _replace_in_text(text: Any, inherited: Mapping[str, str]) -> Any:
    """A specification as JSON text. One that cannot be read is left to the dispatcher, which refuses it."""
    try:
        spec = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return text
    return json.dumps(_replace(spec, inherited)) if isinstance(spec, dict) else text


def _replace(spec: Mapping[str, Any], inherited: Mapping[str, str]) -> dict[str, Any]:
    """Also in the job of a sweep."""
    changed = dict(spec)
    if _INHERITED in changed:
        changed[_INHERITED] = dict(inherited)
    if isinstance(job := changed.get("job"), Mapping):
        changed["job"] = _replace(job, inherited)
    return changed
