"""Classes for names of v1 that a job cannot use, or only in part.

A script may import `Environment` and never use it in the job. So the import works, and using the name raises an error.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from trainmaster.job.errors import RunEnvironmentException


class Absent(type):
    """The class of a name that a job can import, but only use with the full Trainmaster."""

    def __call__(cls, *args: "Any", **kwargs: "Any") -> "NoReturn":
        raise _refusal(cls)

    def __getattr__(cls, name: str) -> "NoReturn":
        if name.startswith("_"):
            raise AttributeError(name)
        raise _refusal(cls, "." + name)


class Partly(type):
    """The class of a name that a job has in part; the rest needs the full Trainmaster."""

    def __getattr__(cls, name: str) -> "NoReturn":
        if name.startswith("_"):
            raise AttributeError(name)
        raise _refusal(cls, "." + name)


def stand_in(module: str, name: str) -> "Absent":
    """A class for a name of v1 that this job cannot use."""
    return Absent(
        name, (), {"__module__": module, "__doc__": "Not part of what a job has without the full Trainmaster."}
    )


def _refusal(cls: type, member: str = "") -> "RunEnvironmentException":
    from trainmaster.job.errors import RunEnvironmentException

    return RunEnvironmentException(
        "{}.{}{} cannot be used in this job".format(cls.__module__, cls.__name__, member),
        cause="A job has only the part of Trainmaster that its script needs for the run.",
        hint="Add 'trainmaster-azureml' (Python 3.11 or newer) to the packages of the job, or use Run.get_context(), "
        "which works in every job.",
    )
