"""Sweeps in the dispatcher: the driver of each sweep, and the operations for clients."""

from trainmaster.dispatcher.sweeps.driver import SweepDriver
from trainmaster.dispatcher.sweeps.operations import Sweeps

__all__ = ["SweepDriver", "Sweeps"]
