"""`trainmaster env list`, `show`, `build` and `prune`."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.cli import exits
from trainmaster.cli.env_build import build_environment, packages_of
from trainmaster.cli.opening import find_run, open_workspace, run_folder
from trainmaster.cli.output import Listing
from trainmaster.cli.parsing import Options, Parser
from trainmaster.environments import cleanup, lock
from trainmaster.environments.cleanup import Built
from trainmaster.job.errors import RunNotFoundException, UserErrorException
from trainmaster.sdk.display.describing import iso
from trainmaster.sdk.display.screen import note, note_warnings, say, say_json
from trainmaster.sdk.display.table import Column
from trainmaster.sdk.display.text import count_of, moment, size
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.job_spec import EnvironmentSpec

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_DIGEST = re.compile(r"[0-9a-f]{4,32}(\.\d+)?")


def list_environments(options: Options) -> int:
    """List the environments of the workspace, the last used first.

    SIZE counts all files of an environment. OWN counts the files that it does not share with uv's cache or another
    environment: the space that deleting it frees. RUNS counts the runs that need it and have not ended.

    JSON: a list of {"name", "digest", "current", "python", "packages", "bytes", "own_bytes", "built_at",
    "last_used_at", "runs", "path"}.
    """
    workspace = open_workspace(options.workspace)
    in_use = workspace.connection.call("environments.in_use")
    listing: Listing[Built] = Listing(
        columns=(
            Column("ENVIRONMENT", style=lambda text: "bold"),
            Column("PYTHON"),
            Column("SIZE", right=True),
            Column("OWN", right=True),
            Column("LAST USED"),
            Column("RUNS", right=True, style=lambda text: "" if text == "0" else "cyan"),
            Column("PACKAGES", flexible=True),
        ),
        row=lambda each: _row(each, in_use),
        json=lambda each: as_json(each, in_use),
        empty="There are no environments in this workspace yet.",
    )
    return listing.show(cleanup.list_builds(_place(workspace)), options)


def _row(each: Built, in_use: dict[str, list[str]]) -> tuple[str, ...]:
    packages = " ".join(each.facts.specification.pip_packages) if each.facts else "?"
    name = each.name if each.current else f"{each.name} (replaced)"
    runs = str(len(in_use.get(str(each.path), ())))
    used = moment(each.last_used, time.time()) if each.last_used else "-"
    return (
        name,
        each.facts.python if each.facts else "?",
        size(each.bytes),
        size(each.own_bytes),
        used,
        runs,
        packages,
    )


def as_json(each: Built, in_use: dict[str, list[str]]) -> dict[str, Any]:
    """The keys of an environment."""
    return {
        "name": each.name,
        "digest": each.digest,
        "current": each.current,
        "python": each.facts.python if each.facts else None,
        "packages": list(each.facts.specification.pip_packages) if each.facts else [],
        "bytes": each.bytes,
        "own_bytes": each.own_bytes,
        "built_at": iso(each.facts.built_at if each.facts else None),
        "last_used_at": iso(each.last_used or None),
        "runs": in_use.get(str(each.path), []),
        "path": str(each.path),
    }


def show_arguments(parser: Parser) -> None:
    parser.add_argument("which", metavar="DIGEST|RUN", help="an environment's name or the beginning of it, or a run")


def show(options: Options) -> int:
    """Show the lock of an environment, or of a run's environment: the exact packages in it.

    JSON: the keys of 'env list' and "lock", the text of the lock, and "locked", a list of {"name", "version",
    "source"}.
    """
    workspace = open_workspace(options.workspace)
    found, text = _find(workspace, options.which)
    about = as_json(found, workspace.connection.call("environments.in_use")) if found else {}
    if options.json:
        locked = [{"name": pin.name, "version": pin.version, "source": pin.source} for pin in lock.pins(text)]
        say_json({**about, "lock": text, "locked": locked})
        return exits.OK
    if found is not None:
        note(f"environment {found.name} in {found.path}")
    say(text.rstrip())
    return exits.OK


def _find(workspace: Workspace, which: str) -> tuple[Built | None, str]:
    """The environment, if it still exists, and its lock."""
    builds = [each for each in cleanup.list_builds(_place(workspace)) if each.name.startswith(which)]
    if _DIGEST.fullmatch(which) and builds:
        if len({each.digest for each in builds}) > 1:
            raise UserErrorException(f"{len(builds)} environments begin with '{which}'", hint="Type more of the name.")
        chosen = next((each for each in builds if each.current), builds[0])
        return chosen, _read_text(chosen.path / lock.LOCK_NAME)
    try:
        folder = run_folder(workspace, find_run(workspace, which))
    except RunNotFoundException:
        raise RunNotFoundException(
            f"workspace '{workspace.name}' has no environment and no run '{which[:300]}'",
            hint="'trainmaster env list' and 'trainmaster runs' list them.",
        ) from None
    text = _read_text(folder.path / lock.LOCK_NAME)
    if not text:
        raise UserErrorException(
            f"no environment was built for run {folder.path.name}",
            hint="It uses a Python that you manage, or its environment is not built yet.",
        )
    return _environment_of_run(folder.path), text


def _environment_of_run(folder: Path) -> Built | None:
    import json

    try:
        path = Path(json.loads((folder / "environment.json").read_text())["folder"])
    except (OSError, ValueError, KeyError):
        return None
    return cleanup.describe_build(path) if path.is_dir() else None


def _read_text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


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
    folder = build_environment(workspace, spec, options.refresh, options.json)
    if options.json:
        say_json(as_json(cleanup.describe_build(folder), workspace.connection.call("environments.in_use")))
    else:
        say(folder.name)
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
    """
    if options.older_than is not None and options.older_than < 0:
        raise UserErrorException(f"--older-than must not be negative, not {options.older_than:g}")
    if options.keep_bytes is not None and options.keep_bytes < 0:
        raise UserErrorException(f"--keep-bytes must not be negative, not {options.keep_bytes}")
    workspace = open_workspace(options.workspace)
    in_use = workspace.connection.call("environments.in_use")
    builds = cleanup.list_builds(_place(workspace))
    removable = cleanup.choose_removable(builds, in_use, time.time(), options.older_than, options.keep_bytes)
    if not options.dry_run:
        # Called even if nothing is to be deleted: it also removes what killed builders left behind.
        removed = set(workspace.connection.call("environments.remove", names=[each.name for each in removable]))
        removable = [each for each in removable if each.name in removed]
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


def _place(workspace: Workspace) -> Path:
    return WorkspaceFolder(workspace.path).environments
