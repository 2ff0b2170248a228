"""Makes the plans of the node agents of a prepared run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

from trainmaster.dispatcher.runs.preparing import Preparation
from trainmaster.dispatcher.runs.resuming import find_resumed
from trainmaster.engines import Place
from trainmaster.launch import Launch, agent_count, plan_hostfile, plan_launch
from trainmaster.shared.dispatcher_socket import dispatcher_command
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.measuring import find_sample_seconds
from trainmaster.shared.records import RunRecord
from trainmaster.shared.run_tokens import PAGE_VARIABLE, SERVER_VARIABLE, TOKEN_VARIABLE, read_served, sign_run
from trainmaster.shared.serialization import to_plain
from trainmaster.storage.staging import DataPlan

GRACE_SECONDS = 10.0


def lay_down(folder: RunFolder, record: RunRecord) -> None:
    """Creates the run's folder and writes spec.json."""
    # One call per folder, because a sweep has many runs.
    folder.path.mkdir(parents=True, exist_ok=True)
    for path in (folder.files, folder.logs, folder.journals):
        with suppress(FileExistsError):
            os.mkdir(path)
    folder.spec.write_text(record.spec, encoding="utf-8")


def write_spec_again(folder: RunFolder, record: RunRecord) -> None:
    """Restores spec.json from the store if a power cut damaged it, because engines read it."""
    if folder.spec.exists() and folder.spec.read_bytes() != record.spec.encode():
        folder.spec.write_text(record.spec, encoding="utf-8")


def agent_plans(
    record: RunRecord,
    spec: JobSpec,
    prepared: Preparation,
    place: Place,
    workspace: WorkspaceFolder,
    ports: tuple[int, ...],
    attempt: int = 1,
    time_used: float = 0,
    tell_after: float = 0,
) -> list[dict[str, Any]]:
    """`plan.json` of every node (docs/reference/on-disk.md); `time_used` is how long earlier attempts ran.

    The agents report that their processes run once they have run for `tell_after` seconds.
    """
    folder = replace(workspace.run(record.id), attempt=attempt)
    launch = _launch(record, spec, prepared, place, workspace, folder, ports)
    layout = {"manifest": str(workspace.snapshot(spec.snapshot_id)), "blobs": str(workspace.blobs)}
    # A further attempt uses the working folder of the previous attempt, if it was created.
    # A run that continues another one has a copy of its folder.
    lays_out = (attempt == 1 and not find_resumed(record)) or not folder.code.exists()
    limit = spec.max_run_duration_seconds
    links = [to_plain(link) for link in prepared.data.links] if prepared.data else []
    notify = _notify(workspace, tell_after) if place.reaches_dispatcher else None
    plans = []
    agents = agent_count(spec)
    hostfile = plan_hostfile(spec, launch)
    sample_seconds = find_sample_seconds(spec.environment_variables, os.environ)
    for plan in plan_launch(spec, launch):
        plans.append(
            {
                "version": 1,
                "run_id": record.id,
                "node": plan.node,
                "folder": str(folder.path),
                "layout": layout if plan.node == 0 and lays_out else None,
                "links": links if plan.node == 0 else [],
                "processes": [to_plain(process) for process in plan.processes],
                **({"ranks": [to_plain(rank) for rank in plan.ranks]} if plan.ranks else {}),
                "ports": list(ports),
                "alone": agents == 1,
                "grace_seconds": GRACE_SECONDS,
                "time_limit_seconds": None if limit is None else max(0, limit - time_used),
                "hang_seconds": spec.hang_seconds,
                **({"limits": dict(place.limits[plan.node])} if place.limits else {}),
                **({} if hostfile is None else {"hostfile": hostfile}),
                "notify": notify,
                **({} if sample_seconds is None else {"sample_seconds": sample_seconds}),
                **({"tell_after_seconds": tell_after} if tell_after else {}),
                **({} if place.reaches_dispatcher else {"watched_nodes": agents}),
                **({"hosts": place.hosts_file} if place.hosts_file else {}),
            }
        )
    return plans


def _launch(
    record: RunRecord,
    spec: JobSpec,
    prepared: Preparation,
    place: Place,
    workspace: WorkspaceFolder,
    folder: RunFolder,
    ports: tuple[int, ...],
) -> Launch:
    """What the planners need to know about this attempt and its nodes."""
    return Launch(
        run_id=record.id,
        code_folder=str(folder.code),
        log_folder=str(folder.logs),
        python=prepared.prefix.python,
        # Inside of a container, other paths are valid.
        environment_variables={} if prepared.container else prepared.prefix.variables,
        run_variables=run_variables(record, spec, prepared, workspace, folder.attempt, place.relays_requests),
        gpus=place.gpus,
        hosts=place.hosts,
        cpus=place.cpus,
        ports=ports,
        node_folder=str(folder.node(0)),
        kit=prepared.kit,
        rank_python=prepared.prefix.python if prepared.container else place.python,
        fills_in=bool(place.hosts_file),
        mpi_options=place.mpi_options,
        mpi_inherits=place.mpi_inherits,
        container=prepared.container,
    )


def _notify(workspace: WorkspaceFolder, tell_after: float) -> dict[str, Any]:
    """How agents report to the dispatcher. Agents that report late check the lock to see whether it is running."""
    notify = {"socket": str(workspace.socket), "dispatcher": [*dispatcher_command(workspace), "--if-needed"]}
    return {**notify, "lock": str(workspace.lock)} if tell_after else notify


def run_variables(
    record: RunRecord,
    spec: JobSpec,
    prepared: Preparation,
    workspace: WorkspaceFolder,
    attempt: int,
    relays_requests: bool,
) -> dict[str, str]:
    """The variables by which a script knows its run: ours and v1's; `relays_requests` says how it
    asks its workspace."""
    identity = _identity(str(workspace.identity), os.stat(workspace.identity).st_mtime_ns)
    folder = workspace.run(record.id)
    return {
        **_own_variables(record, identity, folder),
        "TRAINMASTER_ATTEMPT": str(attempt),
        **_way_to_ask(workspace, folder, relays_requests),
        **_server_variables(workspace, record.id),
        **_v1_variables(record, spec, identity),
        **_mlflow_variables(spec),
        **(_data_variables(prepared.data, folder) if prepared.data else {}),
        "PYTHONPATH": prepared.kit,
    }


def _way_to_ask(workspace: WorkspaceFolder, folder: RunFolder, relays_requests: bool) -> dict[str, str]:
    if relays_requests:
        return {"TRAINMASTER_LETTERS": str(folder.job_requests)}
    return {"TRAINMASTER_SOCKET": str(workspace.socket)}


def _server_variables(workspace: WorkspaceFolder, run_id: str) -> dict[str, str]:
    """How a job reaches the server of its workspace, with a token for its own run only."""
    served = read_served(workspace)
    if served is None or not served.address:
        return {}
    page = f"{served.address}/w/{served.name}/runs/{run_id}"
    return {SERVER_VARIABLE: served.address, TOKEN_VARIABLE: sign_run(run_id, served.key), PAGE_VARIABLE: page}


@lru_cache(maxsize=4)
def _identity(path: str, _changed_at: int) -> dict[str, Any]:
    """Reads workspace.json only if it has changed since the last run."""
    with open(path, encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


def _data_variables(data: DataPlan, folder: RunFolder) -> dict[str, str]:
    described = {"TRAINMASTER_DATASETS": str(folder.datasets)} if data.inputs or data.outputs else {}
    return {**data.variables, **described}


def _own_variables(record: RunRecord, identity: Mapping[str, Any], folder: RunFolder) -> dict[str, str]:
    return {
        "TRAINMASTER_RUN_ID": record.id,
        "TRAINMASTER_EXPERIMENT": record.experiment,
        "TRAINMASTER_WORKSPACE": str(identity["name"]),
        "TRAINMASTER_WORKSPACE_FOLDER": str(folder.path.parent.parent),
        "TRAINMASTER_RUN_FOLDER": str(folder.path),
        "TRAINMASTER_PARENT_RUN_ID": record.parent_id or "",
        "TRAINMASTER_RUN_NUMBER": str(record.number),
        "TRAINMASTER_TAGS": json.dumps(dict(record.tags)),
        "TRAINMASTER_PROPERTIES": json.dumps(dict(record.properties)),
        **({"TRAINMASTER_RESUMED_FROM": origin} if (origin := find_resumed(record)) else {}),
    }


def _mlflow_variables(spec: JobSpec) -> dict[str, str]:
    """Lets MLflow log to the run, unless the user names another tracking server."""
    return {} if "MLFLOW_TRACKING_URI" in spec.environment_variables else {"MLFLOW_TRACKING_URI": "trainmaster:run"}


def _v1_variables(record: RunRecord, spec: JobSpec, identity: Mapping[str, Any]) -> dict[str, str]:
    return {
        "AZUREML_RUN_ID": record.id,
        "AZUREML_ARM_SUBSCRIPTION": str(identity.get("subscription_id", "")),
        "AZUREML_ARM_RESOURCEGROUP": str(identity.get("resource_group", "")),
        "AZUREML_ARM_WORKSPACE_NAME": str(identity["name"]),
        "AZUREML_ARM_PROJECT_NAME": record.experiment,
        "AZUREML_EXPERIMENT_ID": record.experiment,
        "AZUREML_WORKSPACE_ID": str(identity["id"]),
        "AZUREML_OUTPUT_DIRECTORY": "./outputs",
        "AZUREML_LOGDIRECTORY_PATH": "./logs",
        "AZUREML_TARGET_TYPE": "local",
        "AZUREML_FRAMEWORK": spec.framework,
        "AZUREML_COMMUNICATOR": spec.communicator,
    }
