"""`environment.spark`: settings for Spark, which Trainmaster does not support."""

from __future__ import annotations


class SparkSection:
    """`environment.spark`: repositories and packages of Spark, for programs that set them; without effect."""

    def __init__(self) -> None:
        self.repositories: list[str] = []
        self.packages: list[str] = []
        self.precache_packages = True
