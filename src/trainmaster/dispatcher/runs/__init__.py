"""Runs on their way: queue, nodes, attempts, outcome, files, removal."""
