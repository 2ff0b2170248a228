"""Sweeps, as a person describes and follows them."""
