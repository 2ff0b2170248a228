"""Sweeps in the dispatcher: the life of each, and the operations that clients have."""

from trainmaster.dispatcher.sweeps.life import SweepLife
from trainmaster.dispatcher.sweeps.operations import Sweeps

__all__ = ["SweepLife", "Sweeps"]
