"""Pure planning: which processes run on which node, with which command line and variables."""

from trainmaster.launch.plan import Launch, NodePlan, ProcessPlan, agent_count, most_processes, plan_launch, port_count

__all__ = ["Launch", "NodePlan", "ProcessPlan", "agent_count", "most_processes", "plan_launch", "port_count"]
