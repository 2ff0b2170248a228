"""Looking at a run while it goes, in a notebook or a terminal."""

from trainmaster.notebook.widgets.run_details import RunDetails

__all__ = ["RunDetails"]
