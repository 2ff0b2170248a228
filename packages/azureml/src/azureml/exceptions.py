"""Shows `azureml.exceptions` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.job.errors import ActivityCanceledException as ActivityCanceledException
from trainmaster.job.errors import ActivityFailedException as ActivityFailedException
from trainmaster.job.errors import AuthenticationException as AuthenticationException
from trainmaster.job.errors import AzureMLException as AzureMLException
from trainmaster.job.errors import ComputeTargetException as ComputeTargetException
from trainmaster.job.errors import DatasetTimestampMissingError as DatasetTimestampMissingError
from trainmaster.job.errors import DiscoveryUrlNotFoundException as DiscoveryUrlNotFoundException
from trainmaster.job.errors import ExperimentExecutionException as ExperimentExecutionException
from trainmaster.job.errors import ModelNotFoundException as ModelNotFoundException
from trainmaster.job.errors import ModelPathNotFoundException as ModelPathNotFoundException
from trainmaster.job.errors import ProjectSystemException as ProjectSystemException
from trainmaster.job.errors import RunConfigurationException as RunConfigurationException
from trainmaster.job.errors import RunEnvironmentException as RunEnvironmentException
from trainmaster.job.errors import ServiceException as ServiceException
from trainmaster.job.errors import SnapshotException as SnapshotException
from trainmaster.job.errors import TrainingException as TrainingException
from trainmaster.job.errors import UserErrorException as UserErrorException
from trainmaster.job.errors import WebserviceException as WebserviceException
from trainmaster.job.errors import WorkspaceException as WorkspaceException
