"""`trainmaster compute test NAME`: tries what runs on a target need."""

from __future__ import annotations

from dataclasses import asdict

from trainmaster.cli import exits
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.parsing import Options, Parser
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.sdk.display.screen import say, say_json


def check_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the target's name")


def check(options: Options) -> int:
    """Try what runs on a target need.

    On Kubernetes: the server and its version, every permission, and, with a pod that is removed again, the image, its
    Python, and whether pods and this machine see the same storage. For other targets: whether their machines answer.

    JSON: {"name", "ok", "checks": [{"name", "is_ok", "message"}]}.

      trainmaster compute test gpu
    """
    target = ComputeTarget(open_workspace(options.workspace), options.name)
    checks = target.test()
    is_ok = all(each.is_ok for each in checks)
    if options.json:
        say_json({"name": target.name, "ok": is_ok, "checks": [asdict(each) for each in checks]})
    else:
        widest = max(len(each.name) for each in checks)
        for each in checks:
            say(f"{'ok    ' if each.is_ok else 'failed'}  {each.name.ljust(widest)}  {each.message}")
        say(f"Target '{target.name}' can be used." if is_ok else f"Target '{target.name}' cannot be used yet.")
    return exits.OK if is_ok else exits.UNUSABLE
