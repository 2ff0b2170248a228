"""Sections of a run configuration that have little or no effect."""

from __future__ import annotations


class HistoryConfiguration:
    """What v1 recorded of a run. Trainmaster always records everything."""

    def __init__(self) -> None:
        self.output_collection = True
        self.snapshot_project = True
        self.directories_to_watch = ["logs"]


class AmlComputeConfiguration:
    """The VM size of the cluster that is created for a run with the target `amlcompute`."""

    def __init__(self) -> None:
        self.vm_size: str | None = None
        self.vm_priority: str | None = None
        # Of 2018 and 2019. No effect: the cluster has as many nodes as the run, and is deleted with it.
        self.name: str | None = None
        self.retain_cluster = False
        self.cluster_max_node_count: int | None = None


class ContainerInstanceConfiguration:
    """The size of a container of 2018; no effect."""

    def __init__(self) -> None:
        self.region: str | None = None
        self.cpu_cores: int | None = None
        self.memory_gb: float | None = None


class BatchAiConfiguration:
    """The node count of programs of 2018. If given, it replaces `node_count`."""

    def __init__(self) -> None:
        self.node_count: int | None = None


class SparkConfiguration:
    """Settings of a Spark session; no effect."""

    def __init__(self) -> None:
        self.configuration: dict[str, str] = {}


class HdiConfiguration:
    """How HDInsight starts a job; no effect."""

    def __init__(self) -> None:
        self.yarn_deploy_mode = "cluster"
