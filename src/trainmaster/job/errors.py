"""All errors that users see, in one tree. Python 3.6, standard library: jobs import it too.

TrainmasterError                      what (headline), why (cause), what to do now (hint)
├── UserErrorException                a wrong value from the user
│   └── AuthenticationException
├── TrainingException                 an estimator that cannot be run as written
├── ExperimentExecutionException      a script or command that cannot be started
├── SnapshotException                 the source folder cannot be copied
├── ProjectSystemException
├── RunEnvironmentException           no current run (outside a job)
├── RunConfigurationException
├── WorkspaceException                the workspace cannot be found, opened or migrated
├── ComputeTargetException            unknown target, or one that can never fit the request
├── EnvironmentException              an environment that cannot be built
│   └── PythonNotFoundException       a Python that is not installed on this machine
├── DatastoreException                a datastore that cannot be reached, or a missing path
├── RunNotFoundException
├── ServiceException                  the dispatcher cannot be reached, or refused
├── ActivityFailedException           raised by wait_for_completion for a failed run
├── ActivityCanceledException
├── DiscoveryUrlNotFoundException     for v1's `except` clauses; Trainmaster never raises it
├── WebserviceException               a model or service that cannot be used as requested
│   ├── ModelNotFoundException
│   └── ModelPathNotFoundException
├── OnnxException                     a model that cannot be converted to ONNX, or whose ONNX file answers differently
├── DatasetTimestampMissingError      a time filter on a dataset without a time column
└── HyperDriveException               a sweep that cannot be run as written
    ├── HyperDriveConfigException
    ├── HyperDriveRehydrateException
    ├── HyperDriveNotImplementedException
    └── HyperDriveScenarioNotSupportedException
"""


class TrainmasterError(Exception):
    """The root of all errors: a headline (what), a cause (why) and a hint (what to do now)."""

    # Annotations in quotes: Python 3.6 must not evaluate them.
    def __init__(
        self,
        exception_message: "object" = "",
        inner_exception: "BaseException | None" = None,
        cause: "object" = "",
        hint: "object" = "",
    ) -> None:
        self.headline = str(exception_message)
        self.cause = str(cause)
        self.hint = str(hint)
        self.inner_exception = inner_exception
        super(TrainmasterError, self).__init__(self.message)

    @property
    def message(self) -> str:
        """Headline, cause and hint as one text."""
        return "\n".join(part for part in (self.headline, self.cause, self.hint) if part)

    def to_wire(self) -> "dict[str, str]":
        """The error as plain data, to travel between processes."""
        return {
            # The receiver may not have the module of a subclass.
            "type": next(kind.__name__ for kind in type(self).__mro__ if kind.__module__ == __name__),
            "headline": self.headline,
            "cause": self.cause,
            "hint": self.hint,
        }


class UserErrorException(TrainmasterError):
    """A value given by the user is wrong."""


class AuthenticationException(UserErrorException):
    """Access was refused."""


class TrainingException(TrainmasterError):
    """An estimator cannot be run as written."""


class ExperimentExecutionException(TrainmasterError):
    """A script or command cannot be started."""


class SnapshotException(TrainmasterError):
    """The source folder cannot be copied into a snapshot."""


class ProjectSystemException(TrainmasterError):
    """A project folder is invalid."""


class RunEnvironmentException(TrainmasterError):
    """There is no current run."""


class RunConfigurationException(TrainmasterError):
    """A run configuration cannot be used."""


class WorkspaceException(TrainmasterError):
    """A workspace cannot be found, opened or migrated."""


class ComputeTargetException(TrainmasterError):
    """A compute target is unknown, or can never fit the request."""


class EnvironmentException(TrainmasterError):
    """An environment cannot be built."""


class PythonNotFoundException(EnvironmentException):
    """The Python of an environment is not installed on this machine."""


class DatastoreException(TrainmasterError):
    """A datastore cannot be reached, or does not contain the path."""


class RunNotFoundException(TrainmasterError):
    """No run has this id."""


class ServiceException(TrainmasterError):
    """The dispatcher cannot be reached, or refused a request."""


class ActivityFailedException(TrainmasterError):
    """A run that was waited for has failed."""


class ActivityCanceledException(TrainmasterError):
    """A run that was waited for was cancelled."""


class DiscoveryUrlNotFoundException(TrainmasterError):
    """For v1's `except` clauses. Trainmaster never raises it."""


class WebserviceException(TrainmasterError):
    """A model or a service cannot be used as requested."""


class ModelNotFoundException(WebserviceException):
    """No model has this name or version."""


class ModelPathNotFoundException(WebserviceException):
    """A model's file or folder does not exist."""


class OnnxException(TrainmasterError):
    """A model cannot be converted to ONNX, or its ONNX file answers differently."""


class DatasetTimestampMissingError(TrainmasterError):
    """A dataset is filtered by time, but has no time column."""


class HyperDriveException(TrainmasterError):
    """A sweep cannot be run as written."""


class HyperDriveConfigException(HyperDriveException):
    """The configuration of a sweep is invalid."""


class HyperDriveRehydrateException(HyperDriveException):
    """The configuration of an earlier sweep cannot be restored."""


class HyperDriveNotImplementedException(HyperDriveException):
    """Sweeps do not support this."""


class HyperDriveScenarioNotSupportedException(HyperDriveException):
    """A sweep cannot be run in this way."""


# v1's name for the root, for the `except` clauses of v1 scripts.
AzureMLException = TrainmasterError


def _tree(root: "type[TrainmasterError]") -> "dict[str, type[TrainmasterError]]":
    found = {root.__name__: root}
    for child in root.__subclasses__():
        found.update(_tree(child))
    return found


def from_wire(data: "dict[str, str]") -> TrainmasterError:
    """The error from the data of `to_wire`; an unknown type becomes the root."""
    kind = _tree(TrainmasterError).get(data.get("type", ""), TrainmasterError)
    return kind(data.get("headline", ""), cause=data.get("cause", ""), hint=data.get("hint", ""))
