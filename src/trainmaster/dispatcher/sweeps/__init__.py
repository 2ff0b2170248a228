"""Sweeps in the dispatcher: the life of each, and the operations that clients have."""

from trainmaster.dispatcher.sweeps.driver import SweepDriver
from trainmaster.dispatcher.sweeps.operations import Sweeps

__all__ = ["SweepDriver", "Sweeps"]
