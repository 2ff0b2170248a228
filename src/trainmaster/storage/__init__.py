"""Storages behind datastores, and copying data in and out."""
