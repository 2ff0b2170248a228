"""Compute targets: named places with nodes of a given size. The classes have v1's names; see docs/guide/compute.md."""
