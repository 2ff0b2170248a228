"""Conformance suites for extensions of Trainmaster: tests to inherit. They need pytest."""

from trainmaster.testing.backends import BackendConformance, BackendPlace
from trainmaster.testing.builders import BuilderConformance, BuilderPlace
from trainmaster.testing.engines import EngineConformance, EnginePlace
from trainmaster.testing.launchers import LauncherConformance, LauncherPlace
from trainmaster.testing.policies import PolicyConformance, SamplerConformance
from trainmaster.testing.stores import StoreConformance

__all__ = [
    "BackendConformance",
    "BackendPlace",
    "BuilderConformance",
    "BuilderPlace",
    "EngineConformance",
    "EnginePlace",
    "LauncherConformance",
    "LauncherPlace",
    "PolicyConformance",
    "SamplerConformance",
    "StoreConformance",
]
