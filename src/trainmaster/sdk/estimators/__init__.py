"""Estimators: what a person writes, checked and compiled to a JobSpec."""
