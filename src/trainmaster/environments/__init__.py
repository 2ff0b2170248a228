"""Environments: the Python a script runs with, built once per digest."""
