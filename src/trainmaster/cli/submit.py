"""`trainmaster submit`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.cli import exits
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.screen import note, note_warnings, say, say_json
from trainmaster.sdk.display.text import experiment_name, pairs, tags

if TYPE_CHECKING:
    from trainmaster.sdk.environment.definition import Environment
    from trainmaster.sdk.estimators.script_run_config import ScriptRunConfig
    from trainmaster.sdk.workspace.workspace import Workspace
    from trainmaster.shared.job_spec import JobSpec
    from trainmaster.shared.records import RunRecord


def submit_arguments(parser: Parser) -> None:
    parser.usage = "trainmaster submit FOLDER SCRIPT [OPTIONS] [-- ARGUMENTS OF THE SCRIPT ...]"
    parser.add_argument(
        "folder", metavar="FOLDER", help="the folder with the script and all it needs; a snapshot of it is taken"
    )
    parser.add_argument(
        "script",
        metavar="SCRIPT",
        nargs="?",
        help="the script, relative to FOLDER; without SCRIPT, FOLDER is the path of the script",
    )
    parser.set_defaults(arguments=[])
    parser.add_argument("-e", "--experiment", metavar="NAME", help="default: the folder's name")
    parser.add_argument("-t", "--target", metavar="NAME", default="local", help="compute target (default: local)")
    parser.add_argument("--tag", metavar="NAME=VALUE", action="append", help="a tag of the run (repeatable)")
    parser.add_argument(
        "--notify", metavar="NAME", action="append", default=[], help="tell this channel when the run ends (repeatable)"
    )
    parser.add_argument(
        "--env", metavar="NAME=VALUE", action="append", help="an environment variable of the script (repeatable)"
    )
    parser.add_argument("--max-seconds", metavar="N", type=int, help="end the run if it takes longer")
    parser.add_argument(
        "--max-retries", metavar="N", type=int, default=0, help="start the run again if it fails, up to N times"
    )
    parser.add_argument(
        "--hang-seconds", metavar="S", type=float, help="end the run if all its processes are silent for S seconds"
    )
    python = parser.add_argument_group("the script's Python (default: an environment for its packages, built once)")
    python.add_argument("--pip", metavar="PACKAGE", action="append", help="a package to install (repeatable)")
    python.add_argument("--pip-file", metavar="FILE", help="a requirements file")
    python.add_argument("--python", metavar="PATH", help="use this Python, unchanged")
    python.add_argument(
        "--user-managed", action="store_true", help="use the Python that Trainmaster runs with, unchanged"
    )
    python.add_argument("--refresh-env", action="store_true", help="resolve and build the environment again")
    how = parser.add_argument_group("waiting and planning")
    how.add_argument(
        "-w", "--wait", action="store_true", help="show the output, and exit with 0, 1 or 3 when the run ends"
    )
    how.add_argument("--dry-run", action="store_true", help="show what would be done, and queue nothing")


def submit(options: Options) -> int:
    """Run a script from a folder. Prints the run's id when it is queued; it then runs by itself.

    With --wait, standard output is what the script prints. With --wait and --json, the script's output goes to standard
    error, and standard output is the JSON of the run after its end.

    JSON: the run, as in 'runs'.

      trainmaster submit . train.py --wait -- --lr 0.1
      trainmaster submit . train.py --pip torch --experiment mnist
    """
    with note_warnings():
        spec = job(options)
        name = options.experiment or experiment_name(Path(spec.source_directory).resolve().name)
    if options.dry_run:
        from trainmaster.cli.plan import show_plan

        return show_plan(spec, name, options)
    from trainmaster.cli.opening import open_workspace

    workspace = open_workspace(options.workspace)
    if options.refresh_env:
        _refresh(workspace, spec, options)
    record = _send(workspace, name, spec, options)
    return _wait(workspace, record, options) if options.wait else _print_id(record, options)


def job(options: Options) -> JobSpec:
    """The job that the options describe, checked and compiled as by the SDK."""
    return script_run_config(options).compile({})


def script_run_config(options: Options) -> ScriptRunConfig:
    """The configuration that a program would write instead of the options."""
    from trainmaster.sdk.estimators.script_run_config import ScriptRunConfig

    if options.script is None:
        # `submit src/train.py` is what most people try first.
        if not Path(options.folder).exists() and Path(options.folder).suffix:
            raise _no_script(Path(options.folder))
        if not Path(options.folder).is_file():
            raise UserErrorException(
                f"SCRIPT is missing: which script of {options.folder} should run?",
                hint=f"For example: trainmaster submit {options.folder} train.py",
            )
        options.folder, options.script = str(Path(options.folder).parent), Path(options.folder).name
    if options.max_seconds is not None and options.max_seconds < 1:
        raise UserErrorException(f"--max-seconds must be at least 1, not {options.max_seconds}")
    if options.max_retries < 0:
        raise UserErrorException(f"--max-retries must be 0 or more, not {options.max_retries}")
    if options.hang_seconds is not None and not 0 < options.hang_seconds < float("inf"):
        raise UserErrorException(f"--hang-seconds must be a positive number, not {options.hang_seconds}")
    config = ScriptRunConfig(
        options.folder,
        script=options.script,
        arguments=options.arguments,
        compute_target=options.target,
        environment=_environment(options),
        max_retries=options.max_retries,
        hang_seconds=options.hang_seconds,
        **({} if options.max_seconds is None else {"max_run_duration_seconds": options.max_seconds}),
    )
    config.run_config.environment_variables = dict(pairs("--env", options.env))
    return config


def _no_script(path: Path) -> UserErrorException:
    from trainmaster.shared.spelling import guess

    beside = [str(path.parent / each.name) for each in path.parent.glob("*.py")] if path.parent.is_dir() else []
    return UserErrorException(
        f"script '{path}' does not exist", hint=f"{guess(str(path), beside)}Or write trainmaster submit FOLDER SCRIPT."
    )


def _environment(options: Options) -> Environment:
    from trainmaster.cli.env_build import packages_of
    from trainmaster.sdk.environment.definition import Environment

    environment = Environment("command-line")
    own = options.python is not None or options.user_managed
    if own and (options.pip or options.pip_file):
        raise UserErrorException(
            "--pip and --pip-file cannot be used with --python or --user-managed",
            hint="A Python that you manage is not changed: install the packages there yourself.",
        )
    if own:
        environment.python.user_managed_dependencies = True
        environment.python.interpreter_path = _interpreter(options)
        return environment
    environment.python.conda_dependencies.set_pip_requirements(packages_of(options))
    return environment


def _interpreter(options: Options) -> str:
    if options.python is None:
        return "python"
    from trainmaster.cli.opening import is_on_server

    given = str(options.python)
    if is_on_server(options.workspace):
        # A path on the server.
        return given
    import shutil

    found = shutil.which(os.path.expanduser(given))
    if found is None:
        raise UserErrorException(
            f"Python '{given}' does not exist",
            hint="--python takes the path of a Python, or its name on the PATH.",
        )
    return os.path.abspath(found)


def _refresh(workspace: Workspace, spec: JobSpec, options: Options) -> None:
    from trainmaster.cli.env_build import build_environment

    if spec.environment.user_managed:
        raise UserErrorException("--refresh-env cannot be used with --python or --user-managed")
    build_environment(workspace, spec.environment, refresh=True, as_json=options.json)


def _send(workspace: Workspace, name: str, spec: JobSpec, options: Options) -> RunRecord:
    from trainmaster.sdk.experiment import Experiment
    from trainmaster.sdk.run.channels import notification_tags

    labels = {**tags(options.tag), **notification_tags(workspace, options.notify)}
    record = Experiment(workspace, name).send(spec, labels, run_type="azureml.scriptrun")
    for text in record.warnings:
        note(f"note: {text}", "yellow")
    return record


def _print_id(record: RunRecord, options: Options) -> int:
    if options.json:
        from trainmaster.sdk.display.describing import run_as_json

        say_json(run_as_json(record))
        return exits.OK
    say(record.id)
    if sys.stderr.isatty():
        note(f"The run is queued. 'trainmaster logs -f {record.id}' follows it.")
    return exits.OK


def _wait(workspace: Workspace, record: RunRecord, options: Options) -> int:
    note(f"run {record.id}")
    from trainmaster.cli.following import follow

    ended = follow(workspace, record.id, sys.stderr if options.json else sys.stdout, shown_warnings=record.warnings)
    if ended is None:
        return exits.INTERRUPTED
    if options.json:
        from trainmaster.sdk.display.describing import run_as_json

        say_json(run_as_json(ended))
    return exits.code_of_status(ended.status)
