"""Sections of a run configuration that programs set, and that have little or no effect here."""

from __future__ import annotations


class HistoryConfiguration:
    """What v1 kept of a run; here everything is kept."""

    def __init__(self) -> None:
        self.output_collection = True
        self.snapshot_project = True
        self.directories_to_watch = ["logs"]


class AmlComputeConfiguration:
    """The machine kind of the cluster that is made for a run whose target is `amlcompute`."""

    def __init__(self) -> None:
        self.vm_size: str | None = None
        self.vm_priority: str | None = None
        # Of 2018 and 2019; no effect: it has as many nodes as the run, and is gone with it.
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
    """The node count as programs of 2018 set it; goes before `node_count` where it is given."""

    def __init__(self) -> None:
        self.node_count: int | None = None


class SparkConfiguration:
    """Settings of a Spark session; there is no Spark here, and no effect."""

    def __init__(self) -> None:
        self.configuration: dict[str, str] = {}


class HdiConfiguration:
    """How HDInsight was to start a job; no effect."""

    def __init__(self) -> None:
        self.yarn_deploy_mode = "cluster"
