"""`trainmaster env list`, `show`, `build` and `prune`."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trainmaster.cli import exits
from trainmaster.cli.env_build import build_environment, packages_of
from trainmaster.cli.opening import find_run, open_workspace
from trainmaster.cli.output import Listing
from trainmaster.cli.parsing import Options, Parser
from trainmaster.environments import lock
from trainmaster.job.errors import RunNotFoundException, UserErrorException
from trainmaster.sdk.display.describing import iso
from trainmaster.sdk.display.screen import note, note_warnings, say, say_json
from trainmaster.sdk.display.table import Column
from trainmaster.sdk.display.text import count_of, moment, size
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.records import BuildReport
from trainmaster.shared.serialization import from_plain

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace


def list_environments(options: Options) -> int:
    """List the environments of the workspace, the last used first.

    SIZE counts all files of an environment. OWN counts the files that it does not share with uv's cache or another
    environment: the space that deleting it frees. RUNS counts the runs that need it and have not ended.

    JSON: a list of {"name", "digest", "current", "python", "packages", "bytes", "own_bytes", "built_at",
    "last_used_at", "runs", "path"}.

      trainmaster env list
    """
    workspace = open_workspace(options.workspace)
    listing: Listing[BuildReport] = Listing(
        columns=(
            Column("ENVIRONMENT", style=lambda text: "bold"),
            Column("PYTHON"),
            Column("SIZE", right=True),
            Column("OWN", right=True),
            Column("LAST USED"),
            Column("RUNS", right=True, style=lambda text: "" if text == "0" else "cyan"),
            Column("PACKAGES", flexible=True),
        ),
        row=_row,
        json=as_json,
        empty="There are no environments in this workspace yet.",
    )
    return listing.show([_read(each) for each in workspace.connection.call("environments.builds")], options)


def _read(answer: Any) -> BuildReport:
    return from_plain(BuildReport, answer)


def _row(each: BuildReport) -> tuple[str, ...]:
    return (
        each.name if each.current else f"{each.name} (replaced)",
        each.python or "?",
        size(each.bytes),
        size(each.own_bytes),
        moment(each.last_used_at, time.time()) if each.last_used_at else "-",
        str(len(each.users)),
        " ".join(each.packages) if each.python else "?",
    )


def as_json(each: BuildReport) -> dict[str, Any]:
    """The keys of an environment."""
    return {
        "name": each.name,
        "digest": each.digest,
        "current": each.current,
        "python": each.python or None,
        "packages": list(each.packages),
        "bytes": each.bytes,
        "own_bytes": each.own_bytes,
        "built_at": iso(each.built_at or None),
        "last_used_at": iso(each.last_used_at or None),
        "runs": list(each.users),
        "path": each.path,
    }


def show_arguments(parser: Parser) -> None:
    parser.add_argument("which", metavar="DIGEST|RUN", help="an environment's name or the beginning of it, or a run")


def show(options: Options) -> int:
    """Show the lock of an environment, or of a run's environment: the exact packages in it.

    JSON: the keys of 'env list' and "lock", the text of the lock, and "locked", a list of {"name", "version",
    "source"}.

      trainmaster env show last
    """
    workspace = open_workspace(options.workspace)
    found, text = _find(workspace, options.which)
    if options.json:
        locked = [{"name": pin.name, "version": pin.version, "source": pin.source} for pin in lock.pins(text)]
        say_json({**(as_json(found) if found else {}), "lock": text, "locked": locked})
        return exits.OK
    if found is not None:
        note(f"environment {found.name} in {found.path}")
    say(text.rstrip())
    return exits.OK


def _find(workspace: Workspace, which: str) -> tuple[BuildReport | None, str]:
    """The environment, if it still exists, and its lock."""
    found = workspace.connection.call("environments.find_build", name=which)
    if found is None:
        try:
            run = find_run(workspace, which)
        except RunNotFoundException:
            raise RunNotFoundException(
                f"workspace '{workspace.name}' has no environment and no run '{which[:300]}'",
                hint="'trainmaster env list' and 'trainmaster runs' list them.",
            ) from None
        found = workspace.connection.call("environments.build_of_run", run_id=run.id)
    return _read(found["build"]) if found["build"] else None, str(found["lock"])


def build_arguments(parser: Parser) -> None:
    parser.add_argument("--pip", metavar="PACKAGE", action="append", help="a package to install (repeatable)")
    parser.add_argument("--pip-file", metavar="FILE", help="a requirements file")
    parser.add_argument(
        "--python-version", metavar="X.Y", default="", help="default: the Python that Trainmaster runs with"
    )
    parser.add_argument(
        "--accelerator",
        choices=("any", "cpu", "cuda"),
        default="any",
        help="which builds of torch to install (any: cpu if there is no GPU)",
    )
    parser.add_argument(
        "--exclude-newer", metavar="DATE", default="", help="ignore packages released after a date, or within '7 days'"
    )
    parser.add_argument("--refresh", action="store_true", help="resolve and build again, even if it exists")


def build(options: Options) -> int:
    """Build an environment before its first run. The log of the build is shown on standard error, the name of the
    environment on standard output.

    JSON: the environment, as in 'env list'.

      trainmaster env build --pip numpy --pip 'pandas<3' --python-version 3.12
    """
    with note_warnings():
        spec = spec_of(options)
    workspace = open_workspace(options.workspace)
    name = build_environment(workspace, spec, options.refresh, options.json)
    if options.json:
        say_json(as_json(_read(workspace.connection.call("environments.find_build", name=name)["build"])))
    else:
        say(name)
    return exits.OK


def spec_of(options: Options) -> EnvironmentSpec:
    """The environment that the options describe. The same packages give the same environment as with `submit`."""
    from trainmaster.sdk.environment.definition import Environment

    environment = Environment("command-line")
    environment.python.conda_dependencies.set_pip_requirements(packages_of(options))
    return replace(
        environment.to_spec(),
        python_version=options.python_version,
        accelerator=options.accelerator,
        exclude_newer=options.exclude_newer,
    )


def prune_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--older-than", metavar="DAYS", type=float, help="also environments that were not used for DAYS days"
    )
    parser.add_argument(
        "--keep-bytes", metavar="N", type=int, help="also the longest unused, until the rest takes at most N bytes"
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be deleted")


def prune(options: Options) -> int:
    """Delete environments that a newer build replaced, and more with the options. An environment that a run needs is
    never deleted. 'uv cache prune' frees the files that are also in uv's cache.

    JSON: {"removed": [names], "bytes", "own_bytes", "dry_run"}.

      trainmaster env prune --older-than 30 --dry-run
    """
    if options.older_than is not None and options.older_than < 0:
        raise UserErrorException(f"--older-than must not be negative, not {options.older_than:g}")
    if options.keep_bytes is not None and options.keep_bytes < 0:
        raise UserErrorException(f"--keep-bytes must not be negative, not {options.keep_bytes}")
    workspace = open_workspace(options.workspace)
    answer = workspace.connection.call(
        "environments.prune",
        older_than_days=options.older_than,
        keep_bytes=options.keep_bytes,
        dry_run=options.dry_run,
    )
    removable = [_read(each) for each in answer]
    sums = {"bytes": sum(each.bytes for each in removable), "own_bytes": sum(each.own_bytes for each in removable)}
    if options.json:
        say_json({"removed": [each.name for each in removable], **sums, "dry_run": options.dry_run})
        return exits.OK
    if not removable:
        note("Nothing to delete.")
        return exits.OK
    for each in removable:
        say(each.name)
    verb = "Would delete" if options.dry_run else "Deleted"
    freed = f"{size(sums['own_bytes'])} of {size(sums['bytes'])}"
    note(f"{verb} {count_of(len(removable), 'environment')}, which frees {freed}.")
    return exits.OK
