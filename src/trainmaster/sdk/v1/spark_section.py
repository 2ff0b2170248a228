"""`environment.spark`: what programs say about Spark, which is not here."""

from __future__ import annotations


class SparkSection:
    """`environment.spark`: repositories and packages of Spark; kept for programs that set them, without effect."""

    def __init__(self) -> None:
        self.repositories: list[str] = []
        self.packages: list[str] = []
        self.precache_packages = True
