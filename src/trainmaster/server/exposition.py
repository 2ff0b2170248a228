"""The counters of a server in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trainmaster import __version__
from trainmaster.server.observation import BUCKETS, Observation

MEDIA_TYPE = "text/plain; version=0.0.4"


def write_metrics(observation: Observation, active_runs: Mapping[str, int]) -> str:
    """All metrics. `active_runs` has the number of unfinished runs by workspace."""
    lines = [
        *_family("trainmaster_info", "gauge", "The version of the server.", [({"version": __version__}, 1)]),
        *_family("trainmaster_requests_total", "counter", "Answered requests.", _count_requests(observation)),
        *_latencies(observation),
        *_family(
            "trainmaster_requests_in_progress",
            "gauge",
            "Requests that are being answered, streams among them.",
            [({}, observation.in_progress)],
        ),
        *_family("trainmaster_streams", "gauge", "Clients of server-sent events.", [({}, observation.streams)]),
        *_family(
            "trainmaster_active_runs",
            "gauge",
            "Runs that have not ended, in workspaces whose dispatcher runs.",
            [({"workspace": name}, count) for name, count in sorted(active_runs.items())],
        ),
    ]
    return "\n".join(lines) + "\n"


Sample = tuple[Mapping[str, str], float]


def _count_requests(observation: Observation) -> list[Sample]:
    return [
        ({"method": method, "route": path, "status": str(status)}, count)
        for (method, path, status), count in sorted(observation.requests.items())
    ]


def _latencies(observation: Observation) -> list[str]:
    name = "trainmaster_request_seconds"
    lines = _family(name, "histogram", "Time from a request to the end of its answer.", [])
    for path, counts in sorted(observation.latencies.items()):
        total = 0
        for limit, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
            total += count
            lines.append(_sample(f"{name}_bucket", {"route": path, "le": limit}, total))
        lines.append(_sample(f"{name}_sum", {"route": path}, observation.seconds[path]))
        lines.append(_sample(f"{name}_count", {"route": path}, total))
    return lines


def _family(name: str, kind: str, text: str, samples: Iterable[Sample]) -> list[str]:
    return [
        f"# HELP {name} {text}",
        f"# TYPE {name} {kind}",
        *(_sample(name, labels, value) for labels, value in samples),
    ]


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    """
    >>> _sample("requests", {"route": 'a"b'}, 2)
    'requests{route="a\\\\"b"} 2'
    """
    inner = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
    return f"{name}{{{inner}}} {value}" if inner else f"{name} {value}"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
