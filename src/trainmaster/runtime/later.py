"""The names of v1 that a later release brings: which, and when. The one place where that is said, in jobs and outside.

They can be imported, named in annotations and asked for with isinstance; whoever uses one is told.
"""

_SERVICES = ("0.3", "services", "Until then load the files of the run in a program of your own.")

LATER = {
    "ModelPackage": _SERVICES,
}


class Later(type):
    """The class of a name that can be imported and not yet be used."""

    def __call__(cls, *args, **kwargs):
        raise refusal(cls.__name__, *LATER[cls.__name__])

    def __getattr__(cls, name):
        if name.startswith("_"):
            # Python itself, notebooks and documentation tools ask for these.
            raise AttributeError(name)
        raise refusal("{}.{}".format(cls.__name__, name), *LATER[cls.__name__])


def later(name):
    """What stands for `name` until it comes."""
    version, what, _ = LATER[name]
    return Later(name, (), {"__doc__": "Comes with {} in Trainmaster {}.".format(what, version)})


def refusal(used, version, what, instead):
    """The error for whoever uses what is not in this release."""
    return NotImplementedError("{}: {} arrive in Trainmaster {}. {}".format(used, what, version, instead))
