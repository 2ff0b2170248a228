"""Trainmaster: train with one object and one call, on your own machines.

The names below are the public ones; each is loaded when it is first used. This file also opens the package inside jobs,
on Python 3.6 and with nothing else installed: there only `Run` and the errors can be had.
"""

import os
import sys
import types

__version__ = "0.1.0"

_HOMES = {
    "Workspace": "trainmaster.workspace",
    "Experiment": "trainmaster.experiment",
    "Run": "trainmaster.run",
    "ScriptRun": "trainmaster.run",
    "Estimator": "trainmaster.estimators",
    "PyTorch": "trainmaster.estimators",
    "TensorFlow": "trainmaster.estimators",
    "SKLearn": "trainmaster.estimators",
    "ScriptRunConfig": "trainmaster.estimators",
    "RunConfiguration": "trainmaster.estimators",
    "Mpi": "trainmaster.estimators",
    "ParameterServer": "trainmaster.estimators",
    "Gloo": "trainmaster.estimators",
    "Nccl": "trainmaster.estimators",
    "MpiConfiguration": "trainmaster.estimators",
    "TensorflowConfiguration": "trainmaster.estimators",
    "PyTorchConfiguration": "trainmaster.estimators",
    "Environment": "trainmaster.environments.definition",
    "CondaDependencies": "trainmaster.environments.conda_dependencies",
    "ComputeTarget": "trainmaster.compute",
    "LocalCompute": "trainmaster.compute",
    "Datastore": "trainmaster.datastores",
    "DataReference": "trainmaster.datastores",
    "DataPath": "trainmaster.datastores",
}

__all__ = sorted(_HOMES)


def _load(name):
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError("module 'trainmaster' has no attribute {!r}".format(name))
    if name == "Run" and "TRAINMASTER_RUN_ID" in os.environ:
        home = "trainmaster.runtime"
    else:
        _find_full_package()
    __import__(home)
    return getattr(sys.modules[home], name)


def _find_full_package():
    """In a job this file comes from the kit; the rest may be installed in the job's own environment."""
    if os.path.exists(os.path.join(os.path.dirname(__file__), "workspace.py")):
        return
    import pkgutil

    module = sys.modules[__name__]
    module.__path__ = pkgutil.extend_path(module.__path__, __name__)


class _LazyPackage(types.ModuleType):
    # Python 3.6 has no module-level __getattr__.
    def __getattr__(self, name):
        value = _load(name)
        setattr(self, name, value)
        return value

    def __dir__(self):
        return sorted(set(self.__dict__) | set(__all__))


sys.modules[__name__].__class__ = _LazyPackage
