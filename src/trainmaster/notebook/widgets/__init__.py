"""A live view of a run, in a notebook or a terminal."""

from trainmaster.notebook.widgets.run_details import RunDetails

__all__ = ["RunDetails"]
