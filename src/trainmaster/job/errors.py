"""Every error a person can meet, in one tree. Python 3.6, standard library: jobs import it too.

AzureMLException                      what (headline), why (cause), what to do now (hint)
├── UserErrorException                a wrong value from the user
│   └── AuthenticationException
├── TrainingException                 an estimator that cannot be run as written
├── ExperimentExecutionException      a script or command that cannot be started
├── SnapshotException                 the source folder cannot be taken
├── ProjectSystemException
├── RunEnvironmentException           no run here (outside a job)
├── RunConfigurationException
├── WorkspaceException                the workspace cannot be found, opened or migrated
├── ComputeTargetException            unknown target, or one that can never fit the request
├── EnvironmentException              an environment that cannot be built
│   └── PythonNotFoundException       a Python that is not on this machine
├── DatastoreException                a datastore that cannot be reached, or a path that is not there
├── RunNotFoundException
├── ServiceException                  the dispatcher cannot be reached, or refused
├── ActivityFailedException           raised by wait_for_completion for a failed run
├── ActivityCanceledException
├── DiscoveryUrlNotFoundException     of v1's service; nothing here raises it
├── WebserviceException               a model or service that cannot be used as asked
│   ├── ModelNotFoundException
│   └── ModelPathNotFoundException
├── OnnxException                     a model that cannot be converted to ONNX, or answers otherwise afterwards
├── DatasetTimestampMissingError      a dataset that is asked for times without having a time column
└── HyperDriveException               a sweep that cannot be run as written
    ├── HyperDriveConfigException
    ├── HyperDriveRehydrateException
    ├── HyperDriveNotImplementedException
    └── HyperDriveScenarioNotSupportedException
"""


class AzureMLException(Exception):
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
        super(AzureMLException, self).__init__(self.message)

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


class UserErrorException(AzureMLException):
    """A value given by the user is wrong."""


class AuthenticationException(UserErrorException):
    """Access was refused."""


class TrainingException(AzureMLException):
    """An estimator cannot be run as written."""


class ExperimentExecutionException(AzureMLException):
    """A script or command cannot be started."""


class SnapshotException(AzureMLException):
    """The source folder cannot be taken."""


class ProjectSystemException(AzureMLException):
    """A project folder is not as it should be."""


class RunEnvironmentException(AzureMLException):
    """There is no run here."""


class RunConfigurationException(AzureMLException):
    """A run configuration cannot be used."""


class WorkspaceException(AzureMLException):
    """A workspace cannot be found, opened or migrated."""


class ComputeTargetException(AzureMLException):
    """A compute target is unknown, or can never fit the request."""


class EnvironmentException(AzureMLException):
    """An environment cannot be built."""


class PythonNotFoundException(EnvironmentException):
    """The Python that an environment asks for is not on this machine."""


class DatastoreException(AzureMLException):
    """A datastore cannot be reached, or has no such path."""


class RunNotFoundException(AzureMLException):
    """No run has this id."""


class ServiceException(AzureMLException):
    """The dispatcher cannot be reached, or refused a request."""


class ActivityFailedException(AzureMLException):
    """A run that was waited for has failed."""


class ActivityCanceledException(AzureMLException):
    """A run that was waited for was cancelled."""


class DiscoveryUrlNotFoundException(AzureMLException):
    """Of v1's service. Programs may catch it; nothing here raises it."""


class WebserviceException(AzureMLException):
    """A model or a service cannot be used as asked."""


class ModelNotFoundException(WebserviceException):
    """No model has this name or version."""


class ModelPathNotFoundException(WebserviceException):
    """A model's file or folder is not there."""


class OnnxException(AzureMLException):
    """A model cannot be converted to ONNX, or answers otherwise afterwards."""


class DatasetTimestampMissingError(AzureMLException):
    """A dataset is asked for times, and no column was named for them."""


class HyperDriveException(AzureMLException):
    """A sweep cannot be run as written."""


class HyperDriveConfigException(HyperDriveException):
    """A sweep is not described as it should be."""


class HyperDriveRehydrateException(HyperDriveException):
    """The description of an earlier sweep cannot be had back."""


class HyperDriveNotImplementedException(HyperDriveException):
    """A sweep cannot do this."""


class HyperDriveScenarioNotSupportedException(HyperDriveException):
    """A sweep cannot be run in this way."""


def _tree(root: "type[AzureMLException]") -> "dict[str, type[AzureMLException]]":
    found = {root.__name__: root}
    for child in root.__subclasses__():
        found.update(_tree(child))
    return found


def from_wire(data: "dict[str, str]") -> AzureMLException:
    """The error that `to_wire` described; a type unknown here becomes the root."""
    kind = _tree(AzureMLException).get(data.get("type", ""), AzureMLException)
    return kind(data.get("headline", ""), cause=data.get("cause", ""), hint=data.get("hint", ""))
