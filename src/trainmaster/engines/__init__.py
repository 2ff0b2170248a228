"""Engines: how nodes are had. Each offers the same small interface."""

from trainmaster.engines.engine import Engine, Nodes

__all__ = ["Engine", "Nodes"]
