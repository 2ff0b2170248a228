"""From a JobDescription, or from the job of a run, to the text of a job file."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.job_files.description import DEFAULT_ENVIRONMENT, Dataset, Details, JobDescription
from trainmaster.sdk.job_files.keys import DATASET_FIELDS, FIELDS, KEYS
from trainmaster.shared.job_spec import (
    THROW_AWAY,
    WAIT_SECONDS,
    DataBinding,
    DatasetOutput,
    Distribution,
    JobSpec,
    load_spec,
)
from trainmaster.shared.records import RunRecord
from trainmaster.shared.serialization import to_plain

_SHM_SIZE = "2g"
_LABELS = {
    "single": ("Python", "None"),
    "mpi": ("python", "Mpi"),
    "parameter_server": ("TensorFlow", "ParameterServer"),
}


def write_job_file(path: Path, job: JobDescription, comment: str = "") -> None:
    """Writes the file. Paths in it are relative to its folder where that is shorter."""
    text = "".join(f"# {line}\n" for line in comment.splitlines()) + format_job(_with_paths(job, path))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserErrorException(f"{path} cannot be written: {error.strerror}") from None


def write_run(path: Path, record: RunRecord) -> Path:
    """Writes the job of a run; a folder as `path` gets a file `job.yaml`."""
    if not record.spec:
        raise UserErrorException(
            f"run {record.id} has no job", cause="It was logged by a program, and can only be started by that program."
        )
    spec = load_spec(record.spec, f"the specification of run {record.id}")
    job = replace(describe_job(spec), experiment=record.experiment, name=record.display_name, tags=dict(record.tags))
    file = path / "job.yaml" if path.is_dir() else path
    write_job_file(file, job, f"The job of run {record.id}.\n'folder' has the code of today: run.restore_snapshot() "
                   "gives that of the run.")  # fmt: skip
    return file


def format_job(job: JobDescription) -> str:
    """The YAML text of a job, with the keys in the order of the documentation."""
    import yaml

    # Key by key: PyYAML would write a job without lists or sections on one line.
    return "".join(
        yaml.safe_dump(
            {key: value},
            sort_keys=False,
            allow_unicode=True,
            width=100,
            default_flow_style=None if isinstance(value, list | tuple | dict) else False,
        )
        for key, value in plain_job(job).items()
    )


def plain_job(job: JobDescription) -> dict[str, Any]:
    """The keys and values of a job file; keys with their default are left out."""
    values = {key.name: getattr(job, key.name) for key in KEYS}
    found = {name: _plain(name, value) for name, value in values.items() if not _is_default(name, value)}
    return {"folder": job.folder, **{name: value for name, value in found.items() if name != "folder"}}


def describe_job(spec: JobSpec) -> JobDescription:
    """The description that compiles to `spec` again."""
    return replace(
        _describe_environment(spec),
        folder=spec.source_directory,
        script=spec.script if spec.entry != "module" else "",
        module=spec.script if spec.entry == "module" else "",
        command=spec.command,
        arguments=spec.arguments,
        target="" if spec.target == THROW_AWAY else spec.target,
        nodes=spec.node_count,
        processes_per_node=_per_node(spec),
        distributed=_describe_distribution(spec.distribution),
        min_nodes=spec.distribution.min_nodes,
        wait_seconds=_describe_waiting(spec.distribution),
        gpu=spec.use_gpu,
        vm_size=spec.vm_size,
        vm_priority=spec.vm_priority,
        env=dict(spec.environment_variables),
        inputs=spec.data,
        datasets={
            each.name: Dataset(id=each.dataset_id, mode=each.mode, path_on_compute=each.path_on_compute)
            for each in spec.dataset_inputs
        },
        outputs=spec.dataset_outputs,
        max_seconds=spec.max_run_duration_seconds,
        max_retries=spec.max_retries,
        hang_seconds=spec.hang_seconds,
        priority=spec.priority,
        details=_details(spec),
    )


def _describe_environment(spec: JobSpec) -> JobDescription:
    environment, container = spec.environment, spec.environment.container
    if spec.environment_version:
        return JobDescription(environment=f"{spec.environment_name}:{spec.environment_version}")
    job = JobDescription()
    if container is not None:
        job = replace(job, image=container.image, shm_size=container.shm_size, image_arguments=container.arguments)
    if environment.user_managed:
        is_this = environment.interpreter in ("", "python", sys.executable)
        return replace(job, user_managed=True) if is_this else replace(job, python=environment.interpreter)
    return replace(
        job,
        pip=environment.pip_packages,
        conda=environment.conda_packages,
        conda_channels=environment.conda_channels,
        python_version=environment.python_version,
        accelerator="" if environment.accelerator == "any" else environment.accelerator,
        exclude_newer=environment.exclude_newer,
    )


def _per_node(spec: JobSpec) -> int:
    distribution = spec.distribution
    if distribution.kind == "torch":
        return (distribution.process_count or spec.node_count) // spec.node_count
    return distribution.process_count_per_node


def _describe_distribution(distribution: Distribution) -> str:
    if distribution.kind == "parameter_server":
        return f"ps {distribution.worker_count}:{distribution.parameter_server_count}"
    return {"mpi": "mpi", "torch": distribution.backend}.get(distribution.kind, "")


def _describe_waiting(distribution: Distribution) -> int | None:
    is_default = distribution.min_nodes is None or distribution.wait_seconds == WAIT_SECONDS
    return None if is_default else distribution.wait_seconds


def _details(spec: JobSpec) -> Details:
    """What would otherwise be lost."""
    environment, distribution = spec.environment, spec.distribution
    framework, communicator = _LABELS.get(distribution.kind, ("pytorch", distribution.backend.capitalize()))
    built = not environment.user_managed and not spec.environment_version
    is_mpi, name = distribution.kind == "mpi", spec.environment_name
    return Details(
        environment_name="" if name == DEFAULT_ENVIRONMENT or spec.environment_version else name,
        optional_packages=environment.optional_packages if built else (),
        horovod=environment.horovod if built else "",
        open_mpi=environment.open_mpi and not is_mpi and built,
        lock=environment.lock,
        framework="" if spec.framework == framework else spec.framework,
        communicator="" if spec.communicator == communicator else spec.communicator,
        process_count=distribution.process_count if distribution.process_count == spec.node_count else None,
    )


def _is_default(name: str, value: Any) -> bool:
    field = next(each for each in fields(JobDescription) if each.name == name)
    if name == "shm_size" and value == _SHM_SIZE:
        return True
    if field.default_factory is not MISSING:
        return bool(value == field.default_factory())
    return bool(value == field.default)


def _plain(name: str, value: Any) -> Any:
    if name == "command" and len(value) == 1:
        return value[0]
    if name in ("inputs", "outputs"):
        return {each.name: _plain_entry(name, each) for each in value}
    if name == "datasets":
        return {each: _plain_dataset(dataset) for each, dataset in value.items()}
    if name == "details":
        return {key: each for key, each in to_plain(value).items() if each != getattr(Details(), key)}
    if name == "hang_seconds" and value == int(value):
        return int(value)
    return to_plain(value)


def _plain_entry(section: str, entry: DataBinding | DatasetOutput) -> Any:
    default = DataBinding("", "") if section == "inputs" else DatasetOutput("")
    changed = {key: getattr(entry, key) for key in FIELDS[section] if getattr(entry, key) != getattr(default, key)}
    if set(changed) <= {"datastore", "path"} and entry.datastore and "@" not in entry.path:
        return f"{entry.datastore}/{entry.path}".rstrip("/")
    return to_plain(changed)


def _plain_dataset(dataset: Dataset) -> Any:
    names: Mapping[str, str] = {"dataset": "name"}
    found = {key: getattr(dataset, names.get(key, key)) for key in DATASET_FIELDS}
    return {key: value for key, value in found.items() if value and value != "direct"}


def _with_paths(job: JobDescription, path: Path) -> JobDescription:
    base = path.absolute().parent
    return replace(
        job,
        folder=_relative(job.folder, base),
        pip_file=_relative(job.pip_file, base),
        conda_file=_relative(job.conda_file, base),
        python=os.path.abspath(job.python) if "/" in job.python and not job.image else job.python,
    )


def _relative(given: str, base: Path) -> str:
    if not given:
        return given
    place = os.path.abspath(given)
    short = os.path.relpath(place, base)
    return place if short.startswith(os.path.join("..", "..")) else short
