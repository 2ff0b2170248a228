"""Sweeps in the dispatcher: the life of each, and the operations that clients have."""

from trainmaster.dispatch.sweeps.life import SweepLife
from trainmaster.dispatch.sweeps.operations import Sweeps

__all__ = ["SweepLife", "Sweeps"]
