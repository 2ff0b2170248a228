"""`trainmaster submit`."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.cli import exits
from trainmaster.cli.job_options import add_job_options, describe
from trainmaster.cli.parsing import Options, Parser
from trainmaster.cli.queued import report_queued
from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.sdk.display.screen import note, note_warnings, say, say_json
from trainmaster.sdk.display.text import experiment_name

if TYPE_CHECKING:
    from trainmaster.cli.opening import LazyWorkspace
    from trainmaster.sdk.job_files.description import JobDescription
    from trainmaster.sdk.workspace.workspace import Workspace
    from trainmaster.shared.job_spec import JobSpec
    from trainmaster.shared.marked_yaml import Marked
    from trainmaster.shared.records import RunRecord


def submit_arguments(parser: Parser) -> None:
    parser.usage = (
        "trainmaster submit FOLDER SCRIPT [OPTIONS] [-- ARGUMENTS OF THE SCRIPT ...]\n"
        "       trainmaster submit [FOLDER] (-m MODULE | --command LINE) [OPTIONS] [-- ARGUMENTS ...]\n"
        "       trainmaster submit JOB.yaml [--set KEY=VALUE ...] [OPTIONS] [-- ARGUMENTS ...]"
    )
    add_job_options(parser)
    file = parser.add_argument_group("job files")
    file.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        dest="settings",
        help="another value for a key of the job file, such as nodes=4 or env.DEBUG=1 (repeatable)",
    )
    file.add_argument("--save", metavar="FILE", help="write the job to a job file, and queue nothing")
    how = parser.add_argument_group("waiting and planning")
    how.add_argument(
        "--notify", metavar="NAME", action="append", default=[], help="tell this channel when the run ends (repeatable)"
    )
    how.add_argument(
        "-w", "--wait", action="store_true", help="show the output, and exit with 0, 1 or 3 when the run ends"
    )
    how.add_argument("--dry-run", action="store_true", help="show what would be done, and queue nothing")
    how.add_argument("--refresh-env", action="store_true", help="resolve and build the environment again")


def submit(options: Options) -> int:
    """Run a script, a notebook, a module or a command in a folder. Prints the run's id when it is queued; it then runs
    by itself.

    A job file (YAML) has the same settings as the options: 'trainmaster schema job' describes its keys, and --save
    writes one. Options beside a job file take precedence over it.

    With --wait, standard output is what the script prints. With --wait and --json, the script's output goes to standard
    error, and standard output is the JSON of the run after its end.

    JSON: the run, as in 'runs'. With --save: {"file", "job"}, where "job" has the keys of the file.

      trainmaster submit . train.py --wait -- --lr 0.1
      trainmaster submit . train.py --framework pytorch --nodes 2 --processes-per-node 2 --gloo
      trainmaster submit . train.ipynb --pip pandas --name 'first look'
      trainmaster submit . --command 'python prepare.py && python train.py'
      trainmaster submit . train.py --pip torch --save job.yaml
      trainmaster submit job.yaml --set nodes=4 -- --lr 0.2
    """
    job, document = describe(options)
    from trainmaster.cli.opening import LazyWorkspace

    opening = LazyWorkspace(options.workspace)
    with note_warnings():
        spec = _compile(job, document, opening)
    name = job.experiment or experiment_name(Path(spec.source_directory).resolve().name)
    if options.save:
        return _save(job, options)
    if options.dry_run:
        from trainmaster.cli.plan import show_plan

        return show_plan(spec, name, job.tags, options)
    workspace = opening.open()
    if options.refresh_env:
        _refresh(workspace, spec, options)
    record = _send(workspace, name, spec, job, options.notify)
    return report_queued(workspace, record, options)


def job(options: Options) -> JobSpec:
    """The job that the options describe."""
    from trainmaster.cli.opening import LazyWorkspace

    return _compile(*describe(options), LazyWorkspace(options.workspace))


def _compile(job: JobDescription, document: Marked | None, opening: LazyWorkspace) -> JobSpec:
    """The job, checked and compiled as by the SDK. An error about a job file names the line of its key."""
    is_here = opening.is_here
    from trainmaster.sdk.job_files.building import build_estimator

    try:
        with nullcontext() if is_here else opening.open().backend.pythons():
            return build_estimator(job, opening.open, is_here=is_here, as_options=document is None).compile({})
    except TrainmasterError as error:
        if document is None:
            raise
        from trainmaster.cli.job_places import add_place_of_key

        raise add_place_of_key(document, error) from None


def _save(job: JobDescription, options: Options) -> int:
    from trainmaster.sdk.job_files.writing import plain_job, write_job_file

    path = Path(options.save)
    if options.wait or options.dry_run:
        raise UserErrorException(
            f"--save cannot be given together with {'--wait' if options.wait else '--dry-run'}",
            hint=f"--save only writes the file. Then: trainmaster submit {path} --wait",
        )
    if path.exists():
        raise UserErrorException(f"{path} already exists", hint="Choose another name, or delete it first.")
    write_job_file(path, job)
    if options.json:
        say_json({"file": str(path), "job": plain_job(job)})
        return exits.OK
    say(str(path))
    if sys.stderr.isatty():
        note(f"Nothing was queued. 'trainmaster submit {path}' runs it.")
    return exits.OK


def _refresh(workspace: Workspace, spec: JobSpec, options: Options) -> None:
    from trainmaster.cli.env_build import build_environment

    if spec.environment.user_managed:
        raise UserErrorException("--refresh-env cannot be used with --python or --user-managed")
    build_environment(workspace, spec.environment, refresh=True, as_json=options.json)


def _send(workspace: Workspace, name: str, spec: JobSpec, job: JobDescription, channels: list[str]) -> RunRecord:
    from trainmaster.sdk.experiment import Experiment
    from trainmaster.sdk.run.channels import notification_tags

    experiment = Experiment(workspace, name)
    labels = {**job.tags, **notification_tags(workspace, channels)}
    return experiment.send(spec, labels, run_type="azureml.scriptrun", display_name=job.name)
