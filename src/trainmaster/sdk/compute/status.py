"""The results of `get_status()`: v1's attributes, and v1's keys in `serialize()`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ScaleSettings:
    """The least and the greatest number of nodes of a cluster."""

    minimum_node_count: int
    maximum_node_count: int
    idle_seconds_before_scaledown: int

    def serialize(self) -> dict[str, Any]:
        """A dict with v1's keys."""
        return {
            "minNodeCount": self.minimum_node_count,
            "maxNodeCount": self.maximum_node_count,
            "nodeIdleTimeBeforeScaleDown": f"PT{self.idle_seconds_before_scaledown}S",
        }


@dataclass(frozen=True)
class NodeStateCounts:
    """How many nodes are in which state. A node is either idle or running."""

    running_node_count: int = 0
    idle_node_count: int = 0
    preparing_node_count: int = 0
    unusable_node_count: int = 0
    leaving_node_count: int = 0
    preempted_node_count: int = 0

    def serialize(self) -> dict[str, int]:
        """A dict with v1's keys."""
        return {
            "preparingNodeCount": self.preparing_node_count,
            "runningNodeCount": self.running_node_count,
            "idleNodeCount": self.idle_node_count,
            "unusableNodeCount": self.unusable_node_count,
            "leavingNodeCount": self.leaving_node_count,
            "preemptedNodeCount": self.preempted_node_count,
        }


@dataclass(frozen=True)
class AmlComputeStatus:
    """The state of a cluster now. As in a cluster that has scaled down, idle nodes count only up to the minimum."""

    current_node_count: int
    target_node_count: int
    node_state_counts: NodeStateCounts
    scale_settings: ScaleSettings
    vm_size: str = ""
    vm_priority: str = "dedicated"
    creation_time: str | None = None
    modified_time: str | None = None
    provisioning_state: str = "Succeeded"
    provisioning_state_transition_time: str | None = None
    allocation_state: str = "Steady"
    allocation_state_transition_time: str | None = None
    errors: list[Any] | None = field(default=None)

    def serialize(self) -> dict[str, Any]:
        """A dict with v1's keys."""
        return {
            "currentNodeCount": self.current_node_count,
            "targetNodeCount": self.target_node_count,
            "nodeStateCounts": self.node_state_counts.serialize(),
            "allocationState": self.allocation_state,
            "allocationStateTransitionTime": self.allocation_state_transition_time,
            "errors": self.errors,
            "creationTime": self.creation_time,
            "modifiedTime": self.modified_time,
            "provisioningState": self.provisioning_state,
            "provisioningStateTransitionTime": self.provisioning_state_transition_time,
            "scaleSettings": self.scale_settings.serialize(),
            "vmPriority": self.vm_priority,
            "vmSize": self.vm_size,
        }


@dataclass(frozen=True)
class ComputeInstanceStatus:
    """The state of a single machine."""

    state: str
    creation_time: str | None = None
    modified_time: str | None = None
    errors: list[Any] | None = None

    def serialize(self) -> dict[str, Any]:
        """A dict with v1's keys."""
        return {
            "state": self.state,
            "errors": self.errors,
            "creationTime": self.creation_time,
            "modifiedTime": self.modified_time,
        }


class Occupancy(dict[str, Any]):
    """How many nodes of a target are busy and idle, and how many runs wait."""

    def serialize(self) -> dict[str, Any]:
        """The same as a dict."""
        return dict(self)
