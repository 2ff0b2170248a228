"""`trainmaster doctor`."""

from __future__ import annotations

import os

from trainmaster.cli import exits
from trainmaster.cli.findings import essential_missing, examine, examine_server
from trainmaster.cli.opening import is_on_server, locate, open_workspace
from trainmaster.cli.parsing import Options
from trainmaster.environments.findings import Finding
from trainmaster.sdk.display.screen import note, paint, say, say_json

_MARKS = {"found": ("✓", "ok", "green"), "missing": ("–", "--", "yellow"), "wrong": ("✗", "!!", "bold red")}


def doctor(options: Options) -> int:
    """Check what this machine has and what is missing, what it is needed for, and how to install it. For a workspace on
    a server, the machine of the server is checked.

    The exit code is 5 if something essential is missing.

    JSON: {"ok", "findings": [{"name", "state", "found", "purpose", "hint", "essential"}]}; "state" is found, missing or
    wrong.

      trainmaster doctor
    """
    if is_on_server(options.workspace):
        findings = examine_server(open_workspace(options.workspace))
    else:
        findings = examine(locate(options.workspace), os.environ)
    missing = essential_missing(findings)
    if options.json:
        say_json({"ok": not missing, "findings": [vars(finding) for finding in findings]})
        return exits.UNUSABLE if missing else exits.OK
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        _show(finding, width)
    if missing:
        note(f"Essential, but missing or wrong: {', '.join(finding.name for finding in missing)}.", "bold red")
    return exits.UNUSABLE if missing else exits.OK


def _show(finding: Finding, width: int) -> None:
    sign, plain, style = _MARKS[finding.state]
    painted = paint(sign, style)
    mark = painted if painted != sign else plain
    first, *more = finding.found.splitlines() or [""]
    say(f"{mark} {paint(finding.name.ljust(width), 'bold')}  {first}".rstrip())
    indent = " " * (width + (3 if mark == painted else 4) + 1)
    for line in more:
        say(indent + line)
    if finding.state != "found":
        for line in (finding.purpose, finding.hint):
            say((indent + paint(line, "dim")).rstrip())
