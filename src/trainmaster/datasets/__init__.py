"""Datasets: files and tables by name, lazily."""
