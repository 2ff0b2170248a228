"""Suites for those who add to Trainmaster: what every engine has to do, as tests to inherit. They need pytest."""

from trainmaster.testing.engines import EngineConformance, EnginePlace

__all__ = ["EngineConformance", "EnginePlace"]
