"""v1's `azureml` modules, made from the table of names. Each name is loaded when it is first used.

Jobs have them from their kit, other programs from the distribution `trainmaster-azureml`.
"""

import os
import sys
import types

from trainmaster.job import lookup, names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from typing import Any, Callable, List, Optional, Sequence


class V1Module(types.ModuleType):
    """One module of v1."""

    # Python 3.6 has no module-level __getattr__.
    def __getattr__(self, name: str) -> "Any":
        if name in names.V1_MODULES[self.__name__].split():
            value = lookup.load_v1(self.__name__, name)
            setattr(self, name, value)
            return value
        # v1 had its submodules loaded: `import azureml.core` and then `azureml.core.runconfig` is common.
        submodule = "{}.{}".format(self.__name__, name)
        if submodule in names.V1_MODULES:
            __import__(submodule)
            return sys.modules[submodule]
        _Missing.check_name(self.__name__, name)
        raise AttributeError("module {!r} has no attribute {!r}".format(self.__name__, name))

    def __dir__(self) -> "List[str]":
        return sorted(set(self.__dict__) | set(names.V1_MODULES[self.__name__].split()))


class _Finder:
    """Asked first of all finders, because the distribution has a file for each module, which only editors read."""

    folder = ""

    @classmethod
    def find_spec(
        cls, name: str, path: "Optional[Sequence[str]]" = None, target: "Optional[types.ModuleType]" = None
    ) -> "Optional[ModuleSpec]":
        """The spec of one of v1's modules; None for any other."""
        if not name.startswith("azureml.") or name not in names.V1_MODULES:
            return None
        from importlib.machinery import ModuleSpec

        is_package = any(other.startswith(name + ".") for other in names.V1_MODULES)
        spec = ModuleSpec(name, _Loader, is_package=is_package)  # type: ignore[arg-type]
        if cls.folder:
            place = os.path.join(cls.folder, *name.split(".")[1:])
            spec.origin = os.path.join(place, "__init__.py") if is_package else place + ".py"
            spec.has_location = True
            if is_package:
                spec.submodule_search_locations = [place]
        return spec


class _Loader:
    @staticmethod
    def create_module(spec: "ModuleSpec") -> types.ModuleType:
        return V1Module(spec.name, "`{}` of v1.".format(spec.name))

    @staticmethod
    def exec_module(module: "Any") -> None:
        listed = names.V1_MODULES[module.__name__].split()
        module.__all__ = [name for name in listed if not name.startswith("__")]

    @staticmethod
    def get_code(name: str) -> "Any":
        """For `python -m` and tools that read modules: there is nothing to run."""
        return compile("", name, "exec")


class _Missing:
    """Asked last of all finders: looks for other parts of `azureml`, and else says that a module is not here."""

    @staticmethod
    def explain(name: str) -> str:
        """What to do without `name`, a module or class of v1 that is not here; empty if nothing is known of it."""
        return ""

    @classmethod
    def find_spec(
        cls, name: str, path: "Optional[Sequence[str]]" = None, target: "Optional[types.ModuleType]" = None
    ) -> "Optional[ModuleSpec]":
        if not name.startswith("azureml."):
            return None
        # Other packages may be installed below `azureml`, beside the kit. Below our own packages they would break.
        if name.count(".") == 1:
            import pkgutil
            from importlib.machinery import PathFinder

            spec = PathFinder.find_spec(name, pkgutil.extend_path(sys.modules["azureml"].__path__, "azureml"))
            if spec is not None:
                return spec
        # Without its `name`: `from azureml import dataprep` replaces the text of an error that has it.
        raise ModuleNotFoundError("No module named {!r}: {}".format(name, cls.explain(name) or _advice()))

    @classmethod
    def check_name(cls, module: str, name: str) -> None:
        """Raises ImportError for a class that v1 had in `module` and that is known not to be here."""
        # Classes only: hasattr often asks whether a package has a module, and expects an AttributeError.
        sentence = cls.explain("{}.{}".format(module, name)) if name[0].isupper() else ""
        if sentence:
            # Not an AttributeError: `from module import name` would replace its text.
            raise ImportError("cannot import name {!r} from {!r}: {}".format(name, module, sentence), name=module)


def _advice() -> str:
    import trainmaster

    return (
        "it is not part of Trainmaster {}, or only outside of jobs; "
        "'trainmaster migrate FILE' shows what to use instead".format(trainmaster.__version__)
    )


def install_finders(folder: str = "", explain: "Optional[Callable[[str], str]]" = None) -> None:
    """Makes v1's modules importable; once per process.

    `folder` has the files of the modules, for tools that ask where a module comes from. `explain` gives a sentence for
    a name of v1 that is not here.
    """
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
        sys.meta_path.append(_Missing)
    _Finder.folder = folder
    if explain is not None:
        _Missing.explain = staticmethod(explain)  # type: ignore[method-assign,assignment]
