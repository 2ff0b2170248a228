"""Environments as a person describes them."""
