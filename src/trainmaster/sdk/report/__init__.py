"""The report of a run: one HTML file without scripts, which needs nothing else."""
