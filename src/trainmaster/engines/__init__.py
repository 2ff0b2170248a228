"""Engines: how nodes are had. Each offers the same small interface."""

from trainmaster.engines.engine import Ending, Engine, EngineContext, JobRequest, Nodes, Place
from trainmaster.engines.known import make_engine

__all__ = ["Ending", "Engine", "EngineContext", "JobRequest", "Nodes", "Place", "make_engine"]
