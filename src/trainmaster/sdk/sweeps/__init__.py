"""Sweeps: their description, and the run that the user follows."""
