"""What `import trainmaster` (or `azureml.core`) provides inside a job.

Standard library only, Python 3.6 and up. Each name is loaded when it is first used, so that a script that
only needs its run starts in milliseconds.
"""

import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    # The lazy names, for type checkers.
    from trainmaster.job.script.files import RunFiles
    from trainmaster.job.script.journal import Journal
    from trainmaster.job.script.offline import OfflineRun
    from trainmaster.job.script.recorder import Recorder
    from trainmaster.job.script.run import Run, get_context

_HOMES = {
    "Run": "trainmaster.job.script.run",
    "get_context": "trainmaster.job.script.run",
    "OfflineRun": "trainmaster.job.script.offline",
    "Recorder": "trainmaster.job.script.recorder",
    "Journal": "trainmaster.job.script.journal",
    "RunFiles": "trainmaster.job.script.files",
}

__all__ = ["Journal", "OfflineRun", "Recorder", "Run", "RunFiles", "get_context"]


class _LazyPackage(types.ModuleType):
    # Python 3.6 has no module-level __getattr__.
    def __getattr__(self, name: str) -> "Any":
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError("module 'trainmaster.job.script' has no attribute {!r}".format(name))
        __import__(home)
        value = getattr(sys.modules[home], name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> "list[str]":
        return sorted(set(self.__dict__) | set(__all__))


sys.modules[__name__].__class__ = _LazyPackage
