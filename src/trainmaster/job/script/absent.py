"""The names of v1 that a job does not bring: found where they are installed, else stood for by names that say so.

A script may import `Workspace` or `Model` and never use it in the job; so the import works, and the use is refused.
"""

import sys
import types


class OthersFinder:
    """Looks for modules of `azureml` that the kit lacks in the other installed parts of the package, then above.

    Asked last of all finders, so it costs nothing where the kit has the module: an `extend_path` when the
    package is imported would load pkgutil, which takes longer than all of the runtime.
    """

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        """The module's spec, from wherever it is installed; None for modules that are none of ours."""
        parent, _, _ = name.rpartition(".")
        if not name.startswith("azureml.") or parent not in sys.modules:
            return None
        from importlib.machinery import ModuleSpec, PathFinder

        # The search for parts of a package goes along the path of the package above it, so that one is extended first.
        parts = parent.split(".")
        for length in range(len(parts)):
            _extend(".".join(parts[: length + 1]))
        spec = PathFinder.find_spec(name, sys.modules[parent].__path__)
        if spec is not None:
            return spec
        # Where trainmaster-azureml is installed in the job's environment, its modules were found before these.
        standins = _standins()
        if name in standins:
            is_package = any(other.startswith(name + ".") for other in standins)
            return ModuleSpec(name, StandInLoader, is_package=is_package)  # type: ignore[arg-type]
        raise ModuleNotFoundError(_message(name), name=name)


def _extend(package):
    """Adds the installed parts of a package to its path. Below `azureml` only those of trainmaster-azureml count:
    modules of Microsoft's, in a user's own Python, would break on the kit's.
    """
    import os
    import pkgutil

    module = sys.modules[package]
    before = list(module.__path__)
    up = [os.pardir] * package.count(".")
    module.__path__ = [
        folder
        for folder in pkgutil.extend_path(before, package)
        if folder in before or not up or os.path.exists(os.path.join(folder, *up, "_lazy.py"))
    ]


class StandInLoader:
    """Makes the modules of `standins`."""

    @staticmethod
    def create_module(spec):
        """The empty module."""
        return StandInModule(spec.name, "`{}` of v1, as far as a job has it.".format(spec.name))

    @staticmethod
    def exec_module(module):
        """Nothing: names are made when they are asked for."""
        module.__all__ = _standins()[module.__name__].split()


class StandInModule(types.ModuleType):
    """A module whose names are those of the full Trainmaster, where that is installed, and else refuse to be used."""

    # Python 3.6 has no module-level __getattr__.
    def __getattr__(self, name):
        if name not in _standins()[self.__name__].split():
            raise AttributeError("module {!r} has no attribute {!r}".format(self.__name__, name))
        value = _stand_in(self.__name__, name)
        setattr(self, name, value)
        return value


class LazyPackage(types.ModuleType):
    """A package of the kit with names that are in its modules, each loaded when it is asked for."""

    def __getattr__(self, name):
        homes = self.__dict__.get("_homes") or {}
        if name not in homes:
            raise AttributeError("module {!r} has no attribute {!r}".format(self.__name__, name))
        home = "{}.{}".format(self.__name__, homes[name])
        __import__(home)
        value = getattr(sys.modules[home], name)
        setattr(self, name, value)
        return value


def install_finder():
    """Makes other installed parts of `azureml` importable; once per process."""
    if OthersFinder not in sys.meta_path:
        sys.meta_path.append(OthersFinder)


class Absent(type):
    """The class of a name that can be imported in a job, but only be used with the full Trainmaster."""

    def __call__(cls, *args, **kwargs):
        raise _refusal(cls)

    def __getattr__(cls, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise _refusal(cls, "." + name)


class Partly(type):
    """The class of a name that a job has in part; the rest is there with the full Trainmaster."""

    def __getattr__(cls, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise _refusal(cls, "." + name)


def _standins():
    """v1's modules that scripts import in jobs, and that are not files of the kit. Most jobs do without."""
    from trainmaster.job.script.standins import STANDINS

    return STANDINS


def _stand_in(module, name):
    import trainmaster
    from trainmaster.job import errors

    # What a job has by itself, whatever module it is asked for in.
    if hasattr(errors, name):
        return getattr(errors, name)
    if name in ("DataType", "PromoteHeadersBehavior"):
        from trainmaster.job.script import dataset_readers

        return getattr(dataset_readers, name)
    if name in ("FileDataset", "TabularDataset"):
        from trainmaster.job.script import datasets

        return getattr(datasets, name)
    if name in trainmaster._HOMES:
        try:
            return getattr(trainmaster, name)
        except (ImportError, SyntaxError):
            pass
    if name == "Workspace":
        from trainmaster.job.script.surroundings import RunWorkspace

        return RunWorkspace
    if name == "DataReference":
        from trainmaster.job.script.datastores import DataReference

        return DataReference
    return Absent(name, (), {"__module__": module, "__doc__": "Not part of what a job gets by itself."})


def _refusal(cls, member=""):
    from trainmaster.job.errors import RunEnvironmentException

    return RunEnvironmentException(
        "{}.{}{} cannot be used in this job".format(cls.__module__, cls.__name__, member),
        cause="A job gets its run by itself, and not the whole of Trainmaster.",
        hint="Add 'trainmaster-azureml' (Python 3.11 or newer) to the packages of the job, or use Run.get_context(), "
        "which works in every job.",
    )


def _message(name):
    import trainmaster

    return (
        "No module named {!r}: it is not part of Trainmaster {}, or only outside of jobs; "
        "'trainmaster migrate FILE' tells what to use instead".format(name, trainmaster.__version__)
    )
