"""Trainmaster: train with one object and one call, on your own machines.

`trainmaster.job.names` lists the public names; each is loaded when it is first used. `__init__.pyi` shows them to
editors and type checkers. Jobs import this file too, on Python 3.6 and with nothing else installed: there only the
names that a job has itself can be used.
"""

import sys

__version__ = "0.1.0"


class _LazyPackage(type(sys)):  # type: ignore[misc]
    # Python 3.6 has no module-level __getattr__.
    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name != "__all__":
            raise AttributeError("module 'trainmaster' has no attribute {!r}".format(name))
        # Agents use no public name, so they do not load the table.
        from trainmaster.job import lookup, names

        value = names.list_names(names.PUBLIC) if name == "__all__" else lookup.load_public(name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> "list[str]":
        return sorted(set(self.__dict__) | set(self.__all__))


class _LazyErrors(type(sys)):  # type: ignore[misc]
    # `trainmaster.errors` is public. Agents do not use it, so it is loaded when it is first used.
    def __getattr__(self, name: str) -> object:
        __import__("trainmaster.job.errors")
        return getattr(sys.modules["trainmaster.job.errors"], name)


errors = sys.modules[__name__ + ".errors"] = _LazyErrors(__name__ + ".errors")
sys.modules[__name__].__class__ = _LazyPackage
