"""The v1 names that a job does not have: found where they are installed, else missed with a clear message."""

import sys

# What the full Trainmaster brings, to be installed in the job's environment.
_FULL = (
    "Workspace",
    "Experiment",
    "ScriptRun",
    "ScriptRunConfig",
    "RunConfiguration",
    "ComputeTarget",
    "Datastore",
)
_LATER = ("Dataset", "Model", "Environment", "Image", "Webservice", "ContainerRegistry", "Keyvault")


class OthersFinder:
    """Looks for modules of `azureml` that the kit lacks in the other installed parts of the package.

    Asked last of all finders, so it costs nothing where the kit has the module: an `extend_path` when the
    package is imported would load pkgutil, which takes longer than all of the runtime.
    """

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        """The module's spec, from wherever it is installed; None for modules that are none of ours."""
        parent, _, _ = name.rpartition(".")
        if not name.startswith("azureml.") or parent not in sys.modules:
            return None
        import pkgutil
        from importlib.machinery import PathFinder

        package = sys.modules[parent]
        package.__path__ = pkgutil.extend_path(package.__path__, parent)
        spec = PathFinder.find_spec(name, package.__path__)
        if spec is None and name.startswith(("azureml.core.", "azureml.train.", "azureml.data.")):
            raise ModuleNotFoundError(_message(name), name=name)
        return spec


def install_finder():
    """Makes other installed parts of `azureml` importable; once per process."""
    if OthersFinder not in sys.meta_path:
        sys.meta_path.append(OthersFinder)


def absent_name(package, name):
    """The error for a name that a package of the kit does not have."""
    if name in _FULL or name in _LATER:
        # ImportError: Python would replace the message of an AttributeError by its own.
        return ImportError(_message("{}.{}".format(package, name)), name=package)
    return AttributeError("module {!r} has no attribute {!r}".format(package, name))


def is_in_full(name):
    """Whether the full Trainmaster has the name."""
    return name in _FULL


def _message(name):
    import trainmaster

    last = name.rpartition(".")[2]
    if last in _FULL or last.lower() in {full.lower() for full in _FULL}:
        return (
            "{} is not part of what a job gets by itself: add 'trainmaster' (Python 3.11 or newer) to the "
            "job's packages, or use Run.get_context(), which works in every job".format(name)
        )
    return (
        "{} is not in Trainmaster {}: a later version brings it. In a job there are azureml.core.Run and "
        "azureml.exceptions".format(name, trainmaster.__version__)
    )
