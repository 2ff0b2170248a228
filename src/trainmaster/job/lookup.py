"""Loads a public name from where `names.py` says it lives: in a job the job's own, elsewhere the SDK's."""

import os
import sys

from trainmaster.job import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def load_public(name: str) -> "Any":
    """The object that `from trainmaster import name` gives. AttributeError if there is none."""
    home = names.find_home(name, names.PUBLIC)
    if not home:
        raise AttributeError(f"module 'trainmaster' has no attribute {name!r}")
    # A service has the kit too, and usually nothing else of Trainmaster.
    job_home = names.find_home(name, names.IN_JOBS)
    if job_home and ("TRAINMASTER_RUN_ID" in os.environ or not has_sdk()):
        # Without looking for the SDK, which costs a script milliseconds.
        return _load(job_home, name)
    has_sdk()
    return _load(home, name)


def load_v1(module: str, name: str) -> "Any":
    """The object that `from azureml.… import name` gives, where v1's `module` has the name.

    Scripts import more than they use in a job, so a name that needs the full Trainmaster can be imported without it,
    and refuses to be used.
    """
    attribute = names.V1_RENAMED.get(name, name)
    job_home = names.find_home(name, names.IN_JOBS)
    if job_home and ("TRAINMASTER_RUN_ID" in os.environ or is_kit()):
        return _load(job_home, attribute)
    has_sdk()
    try:
        return _load(names.find_v1_home(name), attribute)
    except (ImportError, SyntaxError):
        if not is_kit():
            raise
    if name in names.IN_JOBS_WITHOUT_SDK:
        return _load(*names.IN_JOBS_WITHOUT_SDK[name])
    if name not in _stand_ins:
        from trainmaster.job.script.absent import stand_in

        _stand_ins[name] = stand_in(module, name)
    return _stand_ins[name]


# One object for a name, from whichever module it is imported.
_stand_ins: "dict[str, Any]" = {}


def is_kit() -> bool:
    """Whether this is the copy of the job side that jobs and services get."""
    return not os.path.exists(os.path.join(os.path.dirname(os.path.dirname(__file__)), "sdk"))


def has_sdk() -> bool:
    """Whether the full Trainmaster can be imported: it may be installed in the environment of a job, beside the kit."""
    if not is_kit():
        return True
    import pkgutil

    package = sys.modules["trainmaster"]
    package.__path__ = pkgutil.extend_path(package.__path__, "trainmaster")
    return any(os.path.exists(os.path.join(folder, "sdk")) for folder in package.__path__)


def _load(module: str, name: str) -> "Any":
    __import__(module)
    return getattr(sys.modules[module], name)
