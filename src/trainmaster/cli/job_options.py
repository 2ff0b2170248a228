"""The options that describe a job, and the job that they and a job file describe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.text import pairs, tags

if TYPE_CHECKING:
    from trainmaster.sdk.job_files.description import JobDescription
    from trainmaster.shared.marked_yaml import Marked

_SUFFIXES = (".yaml", ".yml")
_LISTS = ("pip", "conda", "conda_channels", "image_arguments")
_SINGLE = (
    "experiment", "name", "target", "nodes", "processes_per_node", "distributed", "min_nodes", "wait_seconds",
    "gpu", "vm_size", "vm_priority",
    "framework", "pip_file", "conda_file", "python_version", "accelerator", "exclude_newer", "python", "user_managed",
    "environment", "image", "shm_size", "resume_from", "max_seconds", "max_retries", "hang_seconds",
    "priority",
)  # fmt: skip


def add_job_options(parser: Parser) -> None:
    """Adds what a job file can say too."""
    _add_entry(parser)
    _add_run(parser)
    _add_processes(parser)
    _add_packages(parser)
    _add_data(parser)


def _add_entry(parser: Parser) -> None:
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        nargs="?",
        help="the folder with the script and all it needs, of which a snapshot is taken; or a job file (.yaml)",
    )
    parser.add_argument(
        "script",
        metavar="SCRIPT",
        nargs="?",
        help="a Python script, a notebook or a shell script, relative to FOLDER; without SCRIPT, FOLDER is its path",
    )
    parser.set_defaults(arguments=[])
    parser.add_argument("-m", "--module", metavar="MODULE", help="run a module as 'python -m' does, not a script")
    parser.add_argument("--command", metavar="LINE", help="run a command line, which a shell reads, not a script")


def _add_run(parser: Parser) -> None:
    parser.add_argument("-e", "--experiment", metavar="NAME", help="default: the folder's name")
    parser.add_argument("--name", metavar="TEXT", help="the display name of the run")
    parser.add_argument("--tag", metavar="NAME=VALUE", action="append", dest="tags", help="a tag (repeatable)")
    parser.add_argument(
        "--env", metavar="NAME=VALUE", action="append", help="an environment variable of the script (repeatable)"
    )
    parser.add_argument("--max-seconds", metavar="N", type=int, help="end the run if it takes longer")
    parser.add_argument(
        "--max-retries", metavar="N", type=int, help="start the run again if it fails, up to N times (default: 0)"
    )
    parser.add_argument(
        "--hang-seconds", metavar="S", type=float, help="end the run if all its processes are silent for S seconds"
    )
    parser.add_argument(
        "--priority", metavar="N", type=int, help="from -100 to 100; larger is earlier in the queue (default: 0)"
    )


def _add_processes(parser: Parser) -> None:
    where = parser.add_argument_group("nodes and processes")
    where.add_argument("-t", "--target", metavar="NAME", help="compute target (default: local)")
    where.add_argument("--nodes", metavar="N", type=int, help="run on N nodes of the target (default: 1)")
    where.add_argument("--processes-per-node", metavar="N", type=int, help="processes on each node (default: 1)")
    how = where.add_mutually_exclusive_group()
    how.add_argument(
        "--mpi", dest="distributed", action="store_const", const="mpi", help="processes of Open MPI: Horovod, mpi4py"
    )
    how.add_argument(
        "--gloo", dest="distributed", action="store_const", const="gloo", help="torch.distributed over gloo (CPU)"
    )
    how.add_argument(
        "--nccl", dest="distributed", action="store_const", const="nccl", help="torch.distributed over NCCL (GPU)"
    )
    how.add_argument("--ps", metavar="WORKERS:SERVERS", help="TensorFlow's workers and parameter servers")
    where.add_argument(
        "--min-nodes", metavar="N", type=int, help="an elastic run: it goes on if it loses nodes and N are left"
    )
    where.add_argument(
        "--wait-seconds",
        metavar="S",
        type=int,
        help="with --min-nodes: start with fewer nodes if not all are free within S seconds (default: 300)",
    )
    where.add_argument("--gpu", action="store_true", default=None, help="the run needs GPUs")
    where.add_argument("--vm-size", metavar="SIZE", help="make a cluster of this size for the run, instead of --target")
    where.add_argument("--vm-priority", metavar="PRIORITY", help="the priority of that cluster's machines")


def _add_packages(parser: Parser) -> None:
    python = parser.add_argument_group("the script's Python (default: an environment for its packages, built once)")
    python.add_argument(
        "--framework", metavar="NAME[=VERSION]", help="pytorch, tensorflow, sklearn or chainer, with its packages"
    )
    python.add_argument("--pip", metavar="PACKAGE", action="append", help="a package to install (repeatable)")
    python.add_argument("--pip-file", metavar="FILE", help="a requirements file")
    python.add_argument("--conda", metavar="PACKAGE", action="append", help="a conda package (repeatable)")
    python.add_argument("--conda-file", metavar="FILE", help="a conda YAML file that lists all packages")
    python.add_argument(
        "--conda-channel", metavar="NAME", action="append", dest="conda_channels", help="a channel (repeatable)"
    )
    python.add_argument("--python-version", metavar="X.Y", help="default: the Python that Trainmaster runs with")
    python.add_argument("--accelerator", choices=("any", "cpu", "cuda"), help="which builds of torch to install")
    python.add_argument("--exclude-newer", metavar="DATE", help="ignore packages released after a date")
    python.add_argument("--python", metavar="PATH", help="use this Python, unchanged")
    python.add_argument(
        "--user-managed",
        action="store_true",
        default=None,
        help="use the Python that Trainmaster runs with, unchanged",
    )
    python.add_argument("--environment", metavar="NAME[:VERSION]", help="a registered environment")
    python.add_argument("--image", metavar="IMAGE", help="run in this container image")
    python.add_argument("--shm-size", metavar="SIZE", help="the shared memory of the container (default: 2g)")
    python.add_argument(
        "--image-argument",
        metavar="OPTION",
        action="append",
        dest="image_arguments",
        help="a further option for the container engine (repeatable; write --image-argument=--privileged)",
    )


def _add_data(parser: Parser) -> None:
    data = parser.add_argument_group("data")
    data.add_argument(
        "--input",
        metavar="NAME=DATASTORE/PATH",
        action="append",
        dest="inputs",
        help="data that the script sees at $AZUREML_DATAREFERENCE_NAME; with @download it is copied (repeatable)",
    )
    data.add_argument(
        "--dataset",
        metavar="NAME=DATASET[:VERSION]",
        action="append",
        dest="datasets",
        help="a dataset, run.input_datasets[NAME] in the script; @mount or @download for its files (repeatable)",
    )
    data.add_argument(
        "--output",
        metavar="NAME=DATASTORE/PATH",
        action="append",
        dest="outputs",
        help="a folder of $AZUREML_DATAREFERENCE_NAME that ends up in a datastore (repeatable)",
    )
    data.add_argument(
        "--resume-from", metavar="DATASTORE/PATH", help="checkpoints, which the script gets as --resume-from"
    )


def describe(options: Options) -> tuple[JobDescription, Marked | None]:
    """The job, and the document of the job file if there is one. Options take precedence over the file."""
    from trainmaster.sdk.job_files.description import JobDescription

    given = _read_options(options)
    if not is_job_file(options):
        if options.settings:
            raise UserErrorException(
                "--set needs a job file", hint="For example: trainmaster submit job.yaml --set nodes=4"
            )
        return JobDescription(**_entry(options), **given), None
    from trainmaster.sdk.job_files.reading import read_job_file

    job, document = read_job_file(Path(options.folder), options.settings or ())
    return _override(job, options, given), document


def is_job_file(options: Options) -> bool:
    """Whether the command names a job file instead of a folder."""
    return (
        options.folder is not None
        and options.script is None
        and options.folder.endswith(_SUFFIXES)
        and not Path(options.folder).is_dir()
    )


def _override(job: JobDescription, options: Options, given: dict[str, Any]) -> JobDescription:
    """The job of a file with the options that are given as well. Lists and named values are added."""
    merged: dict[str, Any] = {}
    for name, value in given.items():
        before = getattr(job, name)
        if isinstance(value, Mapping):
            merged[name] = {**before, **value}
        elif name in ("inputs", "outputs"):
            names = {each.name for each in value}
            merged[name] = (*(each for each in before if each.name not in names), *value)
        else:
            merged[name] = (*before, *value) if isinstance(value, tuple) else value
    if options.module or options.command:
        merged |= {"script": "", "module": options.module or "", "command": (options.command,) * bool(options.command)}
    if options.arguments:
        merged["arguments"] = tuple(options.arguments)
    return replace(job, **merged)


def _read_options(options: Options) -> dict[str, Any]:
    """The keys of a job file that the options set, other than what runs."""
    from trainmaster.sdk.job_files.description import read_dataset, read_input, read_output
    from trainmaster.sdk.job_files.entries import check_entry

    if options.ps is not None:
        options.distributed = _parameter_servers(options.ps)
    single = {name: getattr(options, name) for name in _SINGLE if getattr(options, name) is not None}
    lists = {name: tuple(getattr(options, name)) for name in _LISTS if getattr(options, name)}
    found = {**single, **lists}
    if options.env:
        found["env"] = pairs("--env", options.env)
    if options.tags:
        found["tags"] = tags(options.tags)
    for name, option, read in (("inputs", "--input", read_input), ("outputs", "--output", read_output)):
        if getattr(options, name):
            each = pairs(option, getattr(options, name))
            found[name] = tuple(check_entry(key, read(key, text)) for key, text in each.items())
    if options.datasets:
        each = pairs("--dataset", options.datasets)
        found["datasets"] = {key: check_entry(key, read_dataset(text)) for key, text in each.items()}
    return found


def _parameter_servers(given: str) -> str:
    workers, sign, servers = given.partition(":")
    if not (sign and workers.isdecimal() and servers.isdecimal()):
        raise UserErrorException(
            f"--ps {given!r} is not WORKERS:SERVERS", hint="Write --ps 2:1, or --ps 2:0 for workers alone."
        )
    return f"ps {given}"


def _entry(options: Options) -> dict[str, Any]:
    """What runs: `submit FOLDER SCRIPT`, `submit PATH/SCRIPT`, `submit [FOLDER] -m MODULE` or `--command LINE`."""
    folder, arguments = options.folder or ".", tuple(options.arguments)
    others = [name for name in ("script", "module", "command") if getattr(options, name)]
    if len(others) > 1:
        names = {"script": "SCRIPT", "module": "--module", "command": "--command"}
        raise UserErrorException(
            f"{names[others[1]]} cannot be given together with {names[others[0]]}", hint="Leave one of them out."
        )
    if options.command:
        if arguments:
            raise UserErrorException(
                "--command cannot be given together with arguments after --", hint="Write them in the command line."
            )
        return {"folder": folder, "command": (options.command,)}
    if options.module:
        return {"folder": folder, "module": options.module, "arguments": arguments}
    if options.script is None:
        folder, options.script = _split_path(options.folder)
    return {"folder": folder, "script": options.script, "arguments": arguments}


def _split_path(given: str | None) -> tuple[str, str]:
    """`submit src/train.py` is what most people try first."""
    if given is None:
        raise UserErrorException(
            "FOLDER and SCRIPT are missing",
            hint="For example: trainmaster submit . train.py, or trainmaster submit job.yaml",
        )
    path = Path(given)
    if not path.exists() and path.suffix:
        raise _no_script(path)
    if not path.is_file():
        raise UserErrorException(
            f"SCRIPT is missing: which script of {given} should run?",
            hint=f"For example: trainmaster submit {given} train.py",
        )
    return str(path.parent), path.name


def _no_script(path: Path) -> UserErrorException:
    from trainmaster.shared.spelling import guess

    beside = [str(path.parent / each.name) for each in path.parent.glob("*.py")] if path.parent.is_dir() else []
    return UserErrorException(
        f"script '{path}' does not exist", hint=f"{guess(str(path), beside)}Or write trainmaster submit FOLDER SCRIPT."
    )
