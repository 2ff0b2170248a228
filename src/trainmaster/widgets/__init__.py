"""Looking at a run while it goes, in a notebook or a terminal."""
