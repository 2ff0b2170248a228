"""Replaces the names of Python parameters in error texts by the options of the command line. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy
from functools import partial

from trainmaster.cli.commands import all_commands
from trainmaster.job.errors import TrainmasterError
from trainmaster.sdk.job_files.keys import option_names
from trainmaster.shared.marked_yaml import FileMistake

_PACKAGES = {"pip_packages": "--pip", "pip_requirements_file": "--pip-file"}
_REGISTERED = {"model_framework": "'trainmaster models register' --framework"}
_MODEL = {"model_framework": "--framework", "model_framework_version": "--framework-version"}
_SERVED = {
    "an InferenceConfig with a scoring script": "--script score.py",
    "an InferenceConfig with an environment": "--environment NAME, or --requirements FILE",
    "an inference_config": "--script or --ic",
    "entry_script": "--script",
    "source_directory": "--source",
    "conda_file": "--conda-file",
    "num_replicas": "--replicas",
    "Environment.from_pip_requirements or from_conda_specification": "--requirements or --conda-file",
    **_REGISTERED,
}
_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "submit": option_names(),
    "rerun": {"source_directory=": "--source", "fresh_code": "--fresh-code"},
    "env build": {**_PACKAGES, "exclude_newer": "--exclude-newer", "python_version": "--python-version"},
    "models register": {**_MODEL, "model_name": "NAME", "model_path": "PATH"},
    "models download": {"exist_ok": "--overwrite", "target_dir": "--output"},
    "models to-onnx": {
        **_REGISTERED,
        "pip_packages": "--pip",
        "sample_inputs": "--sample",
        "dynamic_batch=False": "--fixed-batch",
        "quantize": "--quantize",
        "opset": "--opset",
    },
    "services deploy": {
        **_SERVED,
        "overwrite": "--overwrite",
        "auth_enabled": "--auth",
        "deployment_config": "--dc",
    },
    "services update": _SERVED,
    "compute create": {
        "max_nodes": "--nodes",
        "node_count": "--nodes",
        "memory_per_node": "--memory-per-node",
        "limit_cpus": "--limit-cpus",
        "vm_size": "--vm-size",
        "shared_folder": "--shared-folder",
        "private_key_file": "--key",
        "time_limit": "--time-limit",
        "extra_sbatch": "--sbatch",
        "lost_after_seconds": "--lost-after",
        "cpus_per_node": "--cpus",
        "gpus_per_node": "--gpus",
        "gpu_resource": "--gpu-resource",
        "resources": "--resource",
        "shm_size": "--shm-size",
        "node_selector": "--node-selector",
        "tolerations": "--toleration",
        "priority_class": "--priority-class",
        "service_account": "--service-account",
        "image_pull_secrets": "--image-pull-secret",
        "image_pull_policy": "--image-pull-policy",
        "run_as_user": "--run-as-user",
        "run_as_group": "--run-as-group",
        "fs_group": "--fs-group",
        "grace_seconds": "--grace-seconds",
        "gang_seconds": "--gang-seconds",
        "storage=": "--storage",
        "hosts=": "HOST",
        "login=": "--login",
        "folder=": "--folder",
        "python=": "--python",
    },
    "data upload": {"overwrite": "--overwrite"},
}
# A quoted name is a value from the user, and a dotted one an attribute. A name that ends with an equal sign is also an
# ordinary word, and means the parameter only where a value follows.
_BEFORE = r"(?<![\w.'\"/-])"
_VALUE = r"(?P<value>'[^']*'|\"[^\"]*\"|\[[^\]]*\]|\w+(?:\.\w+)*)?"


def use_option_names(error: TrainmasterError, argv: list[str]) -> TrainmasterError:
    """The error with the options of the command in `argv` in place of the parameters it names."""
    names = _OPTIONS.get(_command(argv))
    if names is None or isinstance(error, FileMistake):
        return error
    found = copy(error)
    found.headline, found.cause, found.hint = (
        replace_names(text, names) for text in (error.headline, error.cause, error.hint)
    )
    return found


def replace_names(text: str, names: Mapping[str, str]) -> str:
    """
    >>> replace_names("Write compute_target='local', or max_retries=2.", _OPTIONS["submit"])
    'Write --target local, or --max-retries 2.'
    >>> replace_names("source_directory 'compute_target' does not exist", _OPTIONS["submit"])
    "FOLDER 'compute_target' does not exist"
    """
    for name, option in names.items():
        text = re.sub(_pattern(name), partial(_option, option), text)
    return text


def _pattern(name: str) -> str:
    if name.endswith("="):
        return f"{_BEFORE}{re.escape(name)}{_VALUE}"
    return f"{_BEFORE}{re.escape(name)}(?![\\w'\"-])(?:={_VALUE})?"


def _option(option: str, match: re.Match[str]) -> str:
    value = (match["value"] or "").strip("[]").strip("'\"")
    if option[:1].islower():
        # A key of a file.
        return option if not value else f"{option}: {'true' if value == 'True' else value}"
    return option if value in ("", "True") else f"{option} {value}"


def _command(argv: list[str]) -> str:
    known = all_commands()
    return next((name for count in (3, 2, 1) if (name := " ".join(argv[:count])) in known), "")
