"""Engines: how nodes are had. Each offers the same small interface."""

from trainmaster.engines.engine import Ending, Engine, Letter, Nodes, Place, Surroundings
from trainmaster.engines.known import make_engine

__all__ = ["Ending", "Engine", "Letter", "Nodes", "Place", "Surroundings", "make_engine"]
