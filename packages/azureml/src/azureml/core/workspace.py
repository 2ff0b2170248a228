"""Shows `azureml.core.workspace` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.job.errors import ProjectSystemException as ProjectSystemException
from trainmaster.job.errors import UserErrorException as UserErrorException
from trainmaster.job.errors import WorkspaceException as WorkspaceException
from trainmaster.sdk.workspace.workspace import Workspace as Workspace
