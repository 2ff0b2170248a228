"""A run as a program holds it: state, logs, files, metrics."""
