"""`trainmaster compute test NAME`: tries what runs on a target need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from trainmaster.cli import exits
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.parsing import Options, Parser
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.sdk.display.screen import say, say_json
from trainmaster.shared.records import TargetCheck


def check_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the target's name")


def check(options: Options) -> int:
    """Try what runs on a target need.

    On Kubernetes: the server and its version, every permission, and, with a pod that is removed again, the image, its
    Python, and whether pods and this machine see the same storage. For other targets: whether their machines answer.
    What only services need on Kubernetes is tried too, and shown apart: a target for runs can do without it.

    JSON: {"name", "ok", "checks": [{"name", "is_ok", "message", "needed_by"}]}; "needed_by" is "runs" or "services",
    and "ok" is about runs.

      trainmaster compute test gpu
    """
    target = ComputeTarget(open_workspace(options.workspace), options.name)
    checks = target.test()
    runs = [each for each in checks if each.needed_by == "runs"]
    services = [each for each in checks if each.needed_by == "services"]
    is_ok = all(each.is_ok for each in runs)
    if options.json:
        say_json({"name": target.name, "ok": is_ok, "checks": [asdict(each) for each in checks]})
        return exits.OK if is_ok else exits.UNUSABLE
    _show(runs)
    say(f"Target '{target.name}' can be used." if is_ok else f"Target '{target.name}' cannot be used yet.")
    if services:
        say("")
        _show(services)
        can = "can" if all(each.is_ok for each in services) else "cannot yet"
        say(f"Services of models {can} be deployed to it.")
    return exits.OK if is_ok else exits.UNUSABLE


def _show(checks: Sequence[TargetCheck]) -> None:
    widest = max(len(each.name) for each in checks)
    for each in checks:
        say(f"{'ok    ' if each.is_ok else 'failed'}  {each.name.ljust(widest)}  {each.message}")
