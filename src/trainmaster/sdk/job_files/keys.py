"""The one table of the keys of a job file: what each may be, what it means, which parameter of the SDK it sets."""

from __future__ import annotations

from typing import NamedTuple

TEXT, WORDS, COMMAND, WHOLE, NUMBER, FLAG, VERSION, PAIRS, ENTRIES, DETAILS = (
    "text", "a list", "a command", "a whole number", "a number", "true or false", "a version", "names and values",
    "entries", "details",
)  # fmt: skip


class Key(NamedTuple):
    """One key of a job file, which is also an option of `trainmaster submit`."""

    name: str
    kind: str
    meaning: str
    parameter: str = ""
    """The parameter of an estimator that it sets: errors of the SDK have this name."""
    option: str = ""
    """How the command line calls it, if not by the same name."""
    choices: tuple[str, ...] = ()

    @property
    def on_command_line(self) -> str:
        """The option, as errors name it."""
        return self.option or f"--{self.name.replace('_', '-')}"


KEYS = (
    Key("folder", TEXT, "the folder with the code, relative to this file (default: the folder of this file)",
        "source_directory", "FOLDER"),
    Key("script", TEXT, "what runs: a Python script, a notebook (.ipynb) or a shell script in the folder",
        "entry_script", "SCRIPT"),
    Key("module", TEXT, "what runs instead of a script: a module, as python -m starts it", "entry_module"),
    Key("command", COMMAND, "what runs instead of a script: a command line, which a shell reads"),
    Key("arguments", WORDS, "the arguments of the script: a list, or a text that is split as by a shell",
        "script_params", "ARGUMENTS"),
    Key("experiment", TEXT, "the experiment of the run (default: the name of the folder)"),
    Key("name", TEXT, "the display name of the run", "display_name"),
    Key("tags", PAIRS, "tags of the run", option="--tag"),
    Key("target", TEXT, "the compute target (default: local)", "compute_target"),
    Key("nodes", WHOLE, "how many nodes the run has (default: 1)", "node_count"),
    Key("processes_per_node", WHOLE, "how many processes of the script run on each node (default: 1)",
        "process_count_per_node"),
    Key("distributed", TEXT, "how the processes find each other: mpi, gloo, nccl, or ps WORKERS:SERVERS",
        "distributed_training", "--mpi, --gloo, --nccl or --ps"),
    Key("min_nodes", WHOLE, "an elastic run of gloo or nccl: it goes on if it loses nodes and this many are left",
        "min_nodes"),
    Key("wait_seconds", WHOLE, "how long an elastic run waits for all its nodes; then it starts with fewer, if "
        "min_nodes are free (default: 300)", "wait_seconds"),
    Key("gpu", FLAG, "whether the run needs GPUs", "use_gpu"),
    Key("vm_size", TEXT, "the machine kind of a cluster that is made for this run, instead of a target", "vm_size"),
    Key("vm_priority", TEXT, "the priority of that cluster's machines", "vm_priority"),
    Key("framework", TEXT, "a framework with its packages: pytorch, tensorflow, sklearn or chainer, or one release "
        "of it, such as pytorch=2.13", "framework_version"),
    Key("pip", WORDS, "packages to install with pip", "pip_packages"),
    Key("pip_file", TEXT, "a requirements file, relative to this file", "pip_requirements_file"),
    Key("conda", WORDS, "packages to install with conda", "conda_packages"),
    Key("conda_file", TEXT, "a conda YAML file with all packages, relative to this file", "conda_dependencies_file"),
    Key("conda_channels", WORDS, "the channels of conda packages", option="--conda-channel"),
    Key("python_version", VERSION, "the Python to build the environment with, such as 3.12"),
    Key("accelerator", TEXT, "which builds of torch to install", choices=("any", "cpu", "cuda")),
    Key("exclude_newer", VERSION, "ignore packages released after a date, or within '7 days'"),
    Key("python", TEXT, "a Python to use unchanged: its path, relative to this file, or its name on the PATH",
        "interpreter_path"),
    Key("user_managed", FLAG, "use the Python that Trainmaster runs with, unchanged", "user_managed"),
    Key("environment", TEXT, "a registered environment: NAME, or NAME:VERSION", "environment_definition"),
    Key("image", TEXT, "the container image to run in", "custom_docker_image"),
    Key("shm_size", TEXT, "the shared memory of the container, such as 8g", "shm_size"),
    Key("image_arguments", WORDS, "further options for docker, podman or apptainer", option="--image-argument"),
    Key("env", PAIRS, "environment variables of the script", "environment_variables"),
    Key("inputs", ENTRIES, "data of datastores that the script reads: NAME: DATASTORE/PATH; the script sees the path "
        "as $AZUREML_DATAREFERENCE_NAME", option="--input"),
    Key("datasets", ENTRIES, "datasets that the script reads: NAME: DATASET, or DATASET:VERSION", option="--dataset"),
    Key("outputs", ENTRIES, "folders that the script writes, and where they go: NAME: DATASTORE/PATH",
        option="--output"),
    Key("resume_from", TEXT, "DATASTORE/PATH of checkpoints, which the script gets as --resume-from", "resume_from"),
    Key("max_seconds", WHOLE, "end the run if it takes longer", "max_run_duration_seconds"),
    Key("max_retries", WHOLE, "start the run again if it fails, up to so many times", "max_retries"),
    Key("hang_seconds", NUMBER, "end the run if all its processes are silent for so long", "hang_seconds"),
    Key("priority", WHOLE, "its place in the queue, from -100 to 100; larger is earlier", "priority"),
    Key("details", DETAILS, "settings of programs that no option has; run.to_job_file writes them"),
)  # fmt: skip

BY_NAME = {key.name: key for key in KEYS}

OF_RUN = ("experiment", "name", "tags")
"""Keys that are not those of the trials of a sweep."""

INPUT_FIELDS = ("datastore", "path", "mode", "path_on_compute", "overwrite")
DATASET_FIELDS = ("dataset", "version", "id", "mode", "path_on_compute")
OUTPUT_FIELDS = ("datastore", "path", "mode", "source", "overwrite", "globs", "register_as", "description", "tags",
                 "reader")  # fmt: skip
FIELDS = {"inputs": INPUT_FIELDS, "datasets": DATASET_FIELDS, "outputs": OUTPUT_FIELDS}
MODES = {
    "inputs": ("mount", "download", "upload"),
    "datasets": ("direct", "mount", "download"),
    "outputs": ("mount", "upload"),
}
SYNONYMS = {
    "mpi": "distributed: mpi", "gloo": "distributed: gloo", "nccl": "distributed: nccl", "ps": "distributed: ps 2:1",
    "backend": "distributed", "entry_script": "script", "source_directory": "folder", "compute_target": "target",
    "node_count": "nodes", "process_count_per_node": "processes_per_node", "use_gpu": "gpu", "tag": "tags",
    "pip_packages": "pip", "requirements": "pip_file", "conda_packages": "conda", "args": "arguments",
    "environment_variables": "env", "display_name": "name", "input": "inputs", "timeout": "max_seconds",
    "script_params": "arguments", "docker_image": "image",
}  # fmt: skip
"""What people write instead, and the right key."""


def option_names() -> dict[str, str]:
    """The name of each parameter of the SDK on the command line."""
    return {key.parameter: key.on_command_line for key in KEYS if key.parameter}


def key_names() -> dict[str, str]:
    """The name of each parameter of the SDK in a job file."""
    return {key.parameter: key.name for key in KEYS if key.parameter}
