"""Estimators: the user's description of a run, checked and compiled to a JobSpec."""
