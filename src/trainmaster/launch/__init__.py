"""Pure planning: which processes run on which node, with which command line and variables."""

from trainmaster.launch.plan import Launch, NodePlan, ProcessPlan, plan_launch

__all__ = ["Launch", "NodePlan", "ProcessPlan", "plan_launch"]
