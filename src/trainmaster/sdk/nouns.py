"""How the classes of the SDK reach each other.

v1's classes give each other: an experiment its runs, a run its experiment, a model its services, a service its image.
The modules of these classes import each other in one direction only. For the way back they ask here: the table of
public names says where a class lives, and it is imported when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, overload

from trainmaster.job.names import PUBLIC, V1_ONLY, find_home

if TYPE_CHECKING:
    from trainmaster.sdk.experiment import Experiment
    from trainmaster.sdk.services.packaging import ModelPackage
    from trainmaster.sdk.services.profiling import ModelProfile
    from trainmaster.sdk.services.webservice import Webservice
    from trainmaster.sdk.sweeps.run import HyperDriveRun
    from trainmaster.sdk.v1.image import Image


@overload
def noun(name: Literal["Experiment"]) -> type[Experiment]: ...
@overload
def noun(name: Literal["HyperDriveRun"]) -> type[HyperDriveRun]: ...
@overload
def noun(name: Literal["Image"]) -> type[Image]: ...
@overload
def noun(name: Literal["ModelPackage"]) -> type[ModelPackage]: ...
@overload
def noun(name: Literal["ModelProfile"]) -> type[ModelProfile]: ...
@overload
def noun(
    name: Literal["Webservice", "AciWebservice", "AksWebservice", "LocalWebservice"],
) -> type[Webservice]: ...
def noun(name: str) -> Any:
    """The class of the SDK with this name; in a job too, where `trainmaster` may give the job's own class.

    >>> noun("Experiment").__module__
    'trainmaster.sdk.experiment'
    """
    return getattr(import_module(find_home(name, PUBLIC) or find_home(name, V1_ONLY)), name)
