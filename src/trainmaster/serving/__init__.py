"""Scoring services."""
