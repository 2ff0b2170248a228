"""`Model.profile`: measures what a service needs, with requests to a temporary service."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import UserErrorException, WebserviceException
from trainmaster.sdk.services.configurations import LocalWebserviceDeploymentConfiguration
from trainmaster.sdk.services.webservice import Webservice
from trainmaster.shared.service_spec import check_service_name

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

# Enough requests for stable figures, few enough to be fast.
_FEWEST = 100
_MOST = 1000
_PERCENTILES = (50, 90, 95, 99, 99.9)
# A short measurement does not see the peak of a long-running service.
_MEMORY_MARGIN = 1.2


@dataclass(frozen=True)
class Measured:
    """The measurements while requests were answered one after the other."""

    latencies: tuple[float, ...]
    """The seconds of each request that was answered with status 200."""
    failures: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    first_failure: str = ""


class ModelProfile:
    """What a service of models needed while it answered requests."""

    def __init__(self, workspace: Workspace, name: str, details: dict[str, Any]) -> None:
        self.workspace = workspace
        self.name = name
        self._details = details

    @staticmethod
    def create(
        workspace: Workspace,
        profile_name: str,
        models: Sequence[Any],
        inference_config: Any,
        input_dataset: Any,
        cpu: float | None = None,
        memory_in_gb: float | None = None,
        description: str | None = None,
    ) -> ModelProfile:
        """Serves the models, sends the requests of `input_dataset` (a table of one column), and measures the service.

        `cpu` and `memory_in_gb` are noted and limit nothing. Returns when the measurement is complete.
        """
        check_service_name(profile_name)
        requests = requests_of(input_dataset)
        config = LocalWebserviceDeploymentConfiguration()
        service = Webservice.from_models(workspace, f"profile-{os.urandom(6).hex()}", models, inference_config, config)
        try:
            service.wait_for_deployment()
            measured = measure(service, requests)
        finally:
            service.delete()
        asked = {"name": profile_name, "requestedCpu": cpu, "requestedMemoryInGB": memory_in_gb}
        return ModelProfile(workspace, profile_name, {**asked, "description": description or "", **summary(measured)})

    def wait_for_completion(self, show_output: bool = False) -> None:
        """Nothing: the measurement is complete."""
        if show_output:
            print(self._details["state"])

    def get_details(self) -> dict[str, Any]:
        """The measurements and recommendations, with v1's keys."""
        return dict(self._details)


def requests_of(dataset: Any) -> list[str]:
    """The bodies of the requests: the single column of a table, as in v1."""
    if not hasattr(dataset, "to_pandas_dataframe"):
        raise UserErrorException(
            f"input_dataset must be a TabularDataset, not {type(dataset).__name__}",
            hint="Its one column has a request in each row: Dataset.Tabular.from_delimited_files(...).",
        )
    frame = dataset.to_pandas_dataframe()
    if len(frame.columns) != 1 or not len(frame):
        raise UserErrorException(
            f"input_dataset has {len(frame.columns)} columns and {len(frame)} rows",
            hint="It needs one column, with the body of a request in each row.",
        )
    return [str(each) for each in frame.iloc[:, 0]]


def measure(service: Any, requests: Sequence[str]) -> Measured:
    """Sends requests one after the other, all of them at least once (up to a thousand)."""
    count = min(_MOST, max(_FEWEST, len(requests)))
    post = service.workspace.backend.post_to_service
    latencies: list[float] = []
    failures, first_failure = 0, ""
    before = _usage(service)
    began = time.perf_counter()
    for number in range(count):
        start = time.perf_counter()
        status, body = post(service.name, service.scoring_uri, requests[number % len(requests)].encode(), "")
        if status == 200:
            latencies.append(time.perf_counter() - start)
            continue
        failures += 1
        first_failure = first_failure or f"{status}: {body.decode('utf-8', 'replace')[:500]}"
    seconds = time.perf_counter() - began
    after = _usage(service)
    used = after["cpu_seconds"] - before["cpu_seconds"]
    return Measured(tuple(latencies), failures, seconds, used, int(after["peak_bytes"]), first_failure)


def summary(measured: Measured) -> dict[str, Any]:
    """The figures with v1's keys. Pure.

    >>> found = summary(Measured((0.001, 0.003), 0, 0.004, 0.002, 2**30))
    >>> found["averageLatencyInMs"], found["maxUtilizedCpu"], found["recommendedMemoryInGB"]
    (2.0, 0.5, 1.2)
    """
    if not measured.latencies:
        raise WebserviceException(
            "no request of the profile was answered",
            cause=measured.first_failure,
            hint="Try one of the requests with service.run(...) of a deployed service.",
        )
    total = len(measured.latencies) + measured.failures
    ordered = sorted(measured.latencies)
    gigabytes = measured.peak_bytes / 2**30
    busy = measured.cpu_seconds / measured.seconds
    return {
        "state": "Succeeded",
        "totalQueries": total,
        "successQueries": len(ordered),
        "successRate": len(ordered) / total,
        "averageLatencyInMs": round(1000 * sum(ordered) / len(ordered), 3),
        **{
            f"latencyPercentile{_percentile_name(each)}InMs": round(1000 * _percentile(ordered, each), 3)
            for each in _PERCENTILES
        },
        "measuredQueriesPerSecond": round(total / measured.seconds, 1),
        "maxUtilizedCpu": round(busy, 3),
        "maxUtilizedMemoryInGB": round(gigabytes, 3),
        "recommendedCpu": _round_up(busy),
        "recommendedMemoryInGB": _round_up(gigabytes * _MEMORY_MARGIN),
        "error": measured.first_failure or None,
    }


def _percentile_name(percentile: float) -> str:
    return str(percentile).replace(".", "")


def _percentile(ordered: Sequence[float], percentile: float) -> float:
    return ordered[min(len(ordered) - 1, math.ceil(round(percentile * len(ordered) / 100, 6)) - 1)]


def _round_up(value: float) -> float:
    """Rounds up to a tenth, v1's smallest step."""
    return max(0.1, math.ceil(round(value * 10, 6)) / 10)


def _usage(service: Any) -> dict[str, float]:
    """The CPU seconds and the peak memory of all its replicas."""
    found: dict[str, float] = service.workspace.connection.call("services.usage", name=service.name)
    return found
