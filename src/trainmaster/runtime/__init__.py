"""The runtime in the script: what `import trainmaster` (or `azureml.core`) gives inside a job.

Standard library only, Python 3.6 and up. Each name is loaded when it is first used, so that a script which
only asks for its run starts in milliseconds.
"""

import sys
import types

MYPY = False
if MYPY:
    # What a type checker sees of the lazy names.
    from trainmaster.runtime.files import RunFiles
    from trainmaster.runtime.journal import Journal
    from trainmaster.runtime.offline import OfflineRun
    from trainmaster.runtime.recorder import Recorder
    from trainmaster.runtime.run import Run, get_context

_HOMES = {
    "Run": "trainmaster.runtime.run",
    "get_context": "trainmaster.runtime.run",
    "OfflineRun": "trainmaster.runtime.offline",
    "Recorder": "trainmaster.runtime.recorder",
    "Journal": "trainmaster.runtime.journal",
    "RunFiles": "trainmaster.runtime.files",
}

__all__ = ["Journal", "OfflineRun", "Recorder", "Run", "RunFiles", "get_context"]


class _LazyPackage(types.ModuleType):
    # Python 3.6 has no module-level __getattr__.
    def __getattr__(self, name):
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError("module 'trainmaster.runtime' has no attribute {!r}".format(name))
        __import__(home)
        value = getattr(sys.modules[home], name)
        setattr(self, name, value)
        return value

    def __dir__(self):
        return sorted(set(self.__dict__) | set(__all__))


sys.modules[__name__].__class__ = _LazyPackage
