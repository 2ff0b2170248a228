"""Pure planning: which processes run on which node, with which command line and variables."""

from trainmaster.launch.counts import agent_count, most_processes, port_count
from trainmaster.launch.hostfile import plan_hostfile
from trainmaster.launch.plan import Launch, NodePlan, ProcessPlan
from trainmaster.launch.planner import plan_launch

__all__ = [
    "Launch",
    "NodePlan",
    "ProcessPlan",
    "agent_count",
    "most_processes",
    "plan_hostfile",
    "plan_launch",
    "port_count",
]
