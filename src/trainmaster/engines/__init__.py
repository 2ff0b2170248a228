"""Engines provide the nodes that runs execute on. All of them have the same small interface."""

from trainmaster.engines.engine import Ending, Engine, EngineContext, FewerNodesError, JobRequest, Nodes, Place
from trainmaster.engines.known import make_engine

__all__ = ["Ending", "Engine", "EngineContext", "FewerNodesError", "JobRequest", "Nodes", "Place", "make_engine"]
