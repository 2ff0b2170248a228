"""Slurm: every attempt of a run is one batch job, and its agents are that job's tasks (docs/slurm.md)."""
