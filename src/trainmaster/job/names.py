"""Where every public name lives: the one table behind `import trainmaster` and v1's `azureml`, in jobs and outside.

Each entry is a module and the names in it. `lookup.py` loads a name when it is first used. After a change run
`python -m trainmaster.migration.surface`: it writes the files that editors and `trainmaster migrate` read.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# The public names of `trainmaster`.
PUBLIC = {
    "trainmaster.notebook.studio_page": "StudioPage",
    "trainmaster.notebook.widgets.run_details": "RunDetails",
    "trainmaster.sdk.compute.remote": "RemoteCompute",
    "trainmaster.sdk.compute.clusters": "AmlCompute",
    "trainmaster.sdk.compute.local": "LocalCompute",
    "trainmaster.sdk.compute.kubernetes": "KubernetesCompute",
    "trainmaster.sdk.compute.slurm": "SlurmCompute",
    "trainmaster.sdk.compute.ssh": "SshCompute",
    "trainmaster.sdk.compute.target": "ComputeTarget",
    "trainmaster.sdk.datasets.consumption": "DatasetConsumptionConfig",
    "trainmaster.sdk.datasets.dataset": "Dataset",
    "trainmaster.sdk.datasets.output": "OutputFileDatasetConfig",
    "trainmaster.sdk.datastores.datapath": "DataPath",
    "trainmaster.sdk.datastores.datastore": "Datastore",
    "trainmaster.sdk.datastores.reference": "DataReference",
    "trainmaster.sdk.environment.conda_dependencies": "CondaDependencies",
    "trainmaster.sdk.environment.definition": "Environment",
    "trainmaster.sdk.estimators.chainer": "Chainer",
    "trainmaster.sdk.estimators.distributed_job": "MpiConfiguration PyTorchConfiguration TensorflowConfiguration",
    "trainmaster.sdk.estimators.distributed_training": "Gloo Mpi Nccl ParameterServer",
    "trainmaster.sdk.estimators.docker": "DockerConfiguration",
    "trainmaster.sdk.estimators.estimator": "Estimator",
    "trainmaster.sdk.estimators.pytorch": "PyTorch",
    "trainmaster.sdk.estimators.run_configuration": "RunConfiguration",
    "trainmaster.sdk.estimators.script_run_config": "ScriptRunConfig",
    "trainmaster.sdk.estimators.sklearn": "SKLearn",
    "trainmaster.sdk.estimators.tensorflow": "TensorFlow",
    "trainmaster.sdk.experiment": "Experiment",
    "trainmaster.sdk.models.model": "Model",
    "trainmaster.sdk.run.run": "Run ScriptRun",
    "trainmaster.sdk.v1.aci": "AciWebservice",
    "trainmaster.sdk.v1.aks": "AksWebservice",
    "trainmaster.sdk.v1.image": "ContainerImage Image",
    "trainmaster.sdk.services.inference_config": "InferenceConfig",
    "trainmaster.sdk.services.local": "LocalWebservice",
    "trainmaster.sdk.services.webservice": "Webservice",
    "trainmaster.sdk.sweeps.config": "HyperDriveConfig",
    "trainmaster.sdk.sweeps.run": "HyperDriveRun",
    "trainmaster.sdk.workspace.keyvault": "Keyvault",
    "trainmaster.sdk.workspace.workspace": "Workspace",
    "trainmaster.tuning.goal": "PrimaryMetricGoal",
    "trainmaster.tuning.parameter_expressions": (
        "choice lognormal loguniform normal qlognormal qloguniform qnormal quniform randint uniform"
    ),
    "trainmaster.tuning.policies": (
        "BanditPolicy HyperbandPolicy MedianStoppingPolicy NoTerminationPolicy TruncationSelectionPolicy"
    ),
    "trainmaster.tuning.sampling": "BayesianParameterSampling GridParameterSampling RandomParameterSampling",
}

# Names that only v1's modules have, or that have v1's defaults there.
V1_ONLY = {
    "trainmaster": "VERSION __version__",
    "trainmaster.environments.base_images": "DEFAULT_CPU_IMAGE DEFAULT_GPU_IMAGE MPI_CPU_IMAGE MPI_GPU_IMAGE",
    "trainmaster.job.errors": (
        "ActivityCanceledException ActivityFailedException AuthenticationException AzureMLException "
        "ComputeTargetException DatasetTimestampMissingError DiscoveryUrlNotFoundException "
        "ExperimentExecutionException HyperDriveConfigException HyperDriveNotImplementedException "
        "HyperDriveRehydrateException HyperDriveScenarioNotSupportedException ModelNotFoundException "
        "ModelPathNotFoundException ProjectSystemException RunConfigurationException RunEnvironmentException "
        "ServiceException SnapshotException TrainingException UserErrorException WebserviceException "
        "WorkspaceException"
    ),
    "trainmaster.job.script.dataset_readers": "DataType PromoteHeadersBehavior",
    "trainmaster.job.script.offline": "_OfflineRun",
    "trainmaster.job.script.resource_configuration": "ResourceConfiguration",
    "trainmaster.job.script.run": "_SubmittedRun",
    "trainmaster.job.script.telemetry": "set_diagnostics_collection",
    "trainmaster.notebook.tensorboard.board": "Tensorboard",
    "trainmaster.notebook.tensorboard.export": "export_to_tensorboard",
    "trainmaster.scoring.server.raw": "AMLRequest AMLResponse rawhttp",
    "trainmaster.sdk.compute.configurations": (
        "ComputeTargetAttachConfiguration ComputeTargetProvisioningConfiguration"
    ),
    "trainmaster.sdk.v1.compute_instance": "ComputeInstance",
    "trainmaster.sdk.compute.status": "AmlComputeStatus ComputeInstanceStatus ScaleSettings",
    "trainmaster.sdk.datasets.abstract": "AbstractDataset",
    "trainmaster.sdk.datasets.factories": "FileDatasetFactory TabularDatasetFactory",
    "trainmaster.sdk.datasets.file_dataset": "FileDataset",
    "trainmaster.sdk.datasets.output": "OutputDatasetConfig OutputTabularDatasetConfig",
    "trainmaster.sdk.datasets.tabular_dataset": "TabularDataset",
    "trainmaster.sdk.datastores": "AbstractDatastore",
    "trainmaster.sdk.datastores.azure_datastores": (
        "AbstractAzureStorageDatastore AzureBlobDatastore AzureFileDatastore"
    ),
    "trainmaster.sdk.datastores.configuration": "DataReferenceConfiguration",
    "trainmaster.sdk.datastores.datapath": "DataPathComputeBinding",
    "trainmaster.sdk.environment.definition": "EnvironmentDefinition",
    "trainmaster.sdk.environment.docker_section": "ContainerRegistry DockerSection",
    "trainmaster.sdk.environment.python_section": "PythonSection",
    "trainmaster.sdk.v1.service_configurations": (
        "AciServiceDeploymentConfiguration AksServiceDeploymentConfiguration"
    ),
    "trainmaster.sdk.v1.spark_section": "SparkSection",
    "trainmaster.sdk.estimators.distributed_job": "ParallelTaskConfiguration",
    "trainmaster.sdk.v1.run_sections": (
        "AmlComputeConfiguration HdiConfiguration HistoryConfiguration SparkConfiguration"
    ),
    "trainmaster.sdk.experiment": "ViewType",
    "trainmaster.sdk.run.run": "get_run",
    "trainmaster.sdk.services.configurations": (
        "LocalWebserviceDeploymentConfiguration WebserviceDeploymentConfiguration"
    ),
    "trainmaster.sdk.v1.image_configuration": "ContainerImageConfig",
    "trainmaster.sdk.services.packaging": "ModelPackage",
    "trainmaster.sdk.services.profiling": "ModelProfile",
    "trainmaster.sdk.sweeps.config": "HyperDriveRunConfig",
    "trainmaster.sdk.v1.azure_targets": (
        "AksCompute AksProvisioningConfiguration BatchAiCompute DsvmCompute HDInsightCompute"
    ),
    "trainmaster.sdk.v1.authentication": (
        "AbstractAuthentication AzureCliAuthentication InteractiveLoginAuthentication MsiAuthentication "
        "ServicePrincipalAuthentication TokenAuthentication"
    ),
    "trainmaster.sdk.v1.conda_dependencies": "CondaDependencies",
    "trainmaster.sdk.v1.estimators": "Chainer Estimator PyTorch SKLearn TensorFlow",
    "trainmaster.sdk.workspace.keyvault": "KeyVaultContentType",
    "trainmaster.tuning.policies": "EarlyTerminationPolicy",
    "trainmaster.tuning.sampling": "HyperParameterSampling",
}

# v1's modules and their names.
V1_MODULES = {
    "azureml": "",
    "azureml.contrib": "",
    "azureml.contrib.services": "",
    "azureml.contrib.services.aml_request": "AMLRequest rawhttp",
    "azureml.contrib.services.aml_response": "AMLResponse",
    "azureml.contrib.tensorboard": "Tensorboard",
    "azureml.contrib.tensorboard.export": "export_to_tensorboard",
    "azureml.core": (
        "ComputeTarget ContainerRegistry Dataset Datastore Environment Experiment get_run Image Keyvault Model "
        "Run RunConfiguration ScriptRun ScriptRunConfig VERSION Webservice Workspace __version__"
    ),
    "azureml.core.authentication": (
        "AbstractAuthentication AuthenticationException AzureCliAuthentication InteractiveLoginAuthentication "
        "MsiAuthentication ServicePrincipalAuthentication TokenAuthentication"
    ),
    "azureml.core.compute": (
        "AksCompute AmlCompute BatchAiCompute ComputeInstance ComputeTarget DsvmCompute HDInsightCompute "
        "KubernetesCompute RemoteCompute"
    ),
    "azureml.core.compute.aks": "AksCompute AksProvisioningConfiguration",
    "azureml.core.compute.amlcompute": "AmlCompute AmlComputeStatus ScaleSettings",
    "azureml.core.compute.batchai": "BatchAiCompute",
    "azureml.core.compute.compute": (
        "ComputeTarget ComputeTargetAttachConfiguration ComputeTargetProvisioningConfiguration"
    ),
    "azureml.core.compute.computeinstance": "ComputeInstance ComputeInstanceStatus",
    "azureml.core.compute.dsvm": "DsvmCompute",
    "azureml.core.compute.hdinsight": "HDInsightCompute",
    "azureml.core.compute.kubernetescompute": "KubernetesCompute",
    "azureml.core.compute.remote": "RemoteCompute",
    "azureml.core.compute_target": "ComputeTarget ComputeTargetException",
    "azureml.core.conda_dependencies": "CondaDependencies",
    "azureml.core.container_registry": "ContainerRegistry",
    "azureml.core.dataset": "Dataset",
    "azureml.core.datastore": "Datastore",
    "azureml.core.environment": (
        "CondaDependencies ContainerRegistry DEFAULT_CPU_IMAGE DEFAULT_GPU_IMAGE DockerSection Environment "
        "PythonSection SparkSection"
    ),
    "azureml.core.experiment": "Experiment ViewType",
    "azureml.core.image": "ContainerImage Image",
    "azureml.core.image.container": "ContainerImage ContainerImageConfig",
    "azureml.core.image.image": "Image",
    "azureml.core.keyvault": "Keyvault KeyVaultContentType",
    "azureml.core.model": "InferenceConfig Model ModelPackage",
    "azureml.core.profile": "ModelProfile",
    "azureml.core.resource_configuration": "ResourceConfiguration",
    "azureml.core.run": "_OfflineRun _SubmittedRun get_run Run",
    "azureml.core.runconfig": (
        "AmlComputeConfiguration CondaDependencies ContainerRegistry DataReferenceConfiguration "
        "DEFAULT_CPU_IMAGE DEFAULT_GPU_IMAGE DockerConfiguration DockerSection Environment EnvironmentDefinition "
        "HdiConfiguration HistoryConfiguration MPI_CPU_IMAGE MPI_GPU_IMAGE MpiConfiguration "
        "ParallelTaskConfiguration PythonSection PyTorchConfiguration RunConfiguration SparkConfiguration "
        "SparkSection TensorflowConfiguration"
    ),
    "azureml.core.script_run": "ScriptRun",
    "azureml.core.script_run_config": "ScriptRunConfig",
    "azureml.core.webservice": "AciWebservice AksWebservice LocalWebservice Webservice",
    "azureml.core.webservice.aci": "AciServiceDeploymentConfiguration AciWebservice",
    "azureml.core.webservice.aks": "AksServiceDeploymentConfiguration AksWebservice",
    "azureml.core.webservice.local": "LocalWebservice LocalWebserviceDeploymentConfiguration",
    "azureml.core.webservice.webservice": "Webservice WebserviceDeploymentConfiguration",
    "azureml.core.workspace": "ProjectSystemException UserErrorException Workspace WorkspaceException",
    "azureml.data": "AbstractDataset DataType FileDataset OutputFileDatasetConfig TabularDataset",
    "azureml.data.abstract_dataset": "AbstractDataset",
    "azureml.data.abstract_datastore": "AbstractDatastore",
    "azureml.data.azure_storage_datastore": "AbstractAzureStorageDatastore AzureBlobDatastore AzureFileDatastore",
    "azureml.data.data_reference": "DataReference",
    "azureml.data.datapath": "DataPath DataPathComputeBinding",
    "azureml.data.dataset_consumption_config": "DatasetConsumptionConfig",
    "azureml.data.dataset_factory": "DataType FileDatasetFactory TabularDatasetFactory",
    "azureml.data.dataset_type_definitions": "PromoteHeadersBehavior",
    "azureml.data.file_dataset": "FileDataset",
    "azureml.data.output_dataset_config": "OutputDatasetConfig OutputFileDatasetConfig OutputTabularDatasetConfig",
    "azureml.data.tabular_dataset": "TabularDataset",
    "azureml.exceptions": (
        "ActivityCanceledException ActivityFailedException AuthenticationException AzureMLException "
        "ComputeTargetException DatasetTimestampMissingError DiscoveryUrlNotFoundException "
        "ExperimentExecutionException ModelNotFoundException ModelPathNotFoundException ProjectSystemException "
        "RunConfigurationException RunEnvironmentException ServiceException SnapshotException TrainingException "
        "UserErrorException WebserviceException WorkspaceException"
    ),
    "azureml.mlflow": "",
    "azureml.telemetry": "set_diagnostics_collection",
    "azureml.tensorboard": "Tensorboard",
    "azureml.tensorboard.export": "export_to_tensorboard",
    "azureml.train": "",
    "azureml.train.dnn": "Chainer Gloo Mpi Nccl ParameterServer PyTorch TensorFlow",
    "azureml.train.estimator": "Estimator Gloo Mpi Nccl ParameterServer",
    "azureml.train.hyperdrive": (
        "BanditPolicy BayesianParameterSampling choice EarlyTerminationPolicy GridParameterSampling "
        "HyperDriveConfig HyperDriveRun HyperDriveRunConfig HyperParameterSampling lognormal loguniform "
        "MedianStoppingPolicy normal NoTerminationPolicy PrimaryMetricGoal qlognormal qloguniform qnormal "
        "quniform randint RandomParameterSampling TruncationSelectionPolicy uniform"
    ),
    "azureml.train.hyperdrive.exceptions": (
        "HyperDriveConfigException HyperDriveNotImplementedException HyperDriveRehydrateException "
        "HyperDriveScenarioNotSupportedException"
    ),
    "azureml.train.hyperdrive.parameter_expressions": (
        "choice lognormal loguniform normal qlognormal qloguniform qnormal quniform randint uniform"
    ),
    "azureml.train.hyperdrive.policy": (
        "BanditPolicy EarlyTerminationPolicy MedianStoppingPolicy NoTerminationPolicy TruncationSelectionPolicy"
    ),
    "azureml.train.hyperdrive.run": "HyperDriveRun PrimaryMetricGoal",
    "azureml.train.hyperdrive.runconfig": "HyperDriveConfig HyperDriveRunConfig PrimaryMetricGoal",
    "azureml.train.hyperdrive.sampling": (
        "BayesianParameterSampling GridParameterSampling HyperParameterSampling RandomParameterSampling"
    ),
    "azureml.train.sklearn": "SKLearn",
    "azureml.train.widgets": "RunDetails",
    "azureml.widgets": "RunDetails",
}

# v1's spellings of names that are called differently here.
V1_RENAMED = {"VERSION": "__version__", "_OfflineRun": "OfflineRun", "_SubmittedRun": "JobRun"}

# A job has these itself, whether or not the full Trainmaster is installed in its environment.
IN_JOBS = {
    "trainmaster.job.script.datasets": "Dataset FileDataset FileDatasetFactory TabularDataset TabularDatasetFactory",
    "trainmaster.job.script.datastore": "Datastore",
    "trainmaster.job.script.models": "Model",
    "trainmaster.job.script.run": "Run get_run",
}

# A job has these itself, but uses those of the full Trainmaster where it is installed.
IN_JOBS_WITHOUT_SDK = {
    "Workspace": ("trainmaster.job.script.surroundings", "RunWorkspace"),
    "DataReference": ("trainmaster.job.script.datastores", "DataReference"),
}


def find_home(name: str, homes: "Mapping[str, str]") -> str:
    """The module that has `name`; empty if none has it.

    >>> find_home("Workspace", PUBLIC)
    'trainmaster.sdk.workspace.workspace'
    """
    for module, names in homes.items():
        if name in names.split():
            return module
    return ""


def find_v1_home(name: str) -> str:
    """The module that has v1's `name`. The estimators of `azureml` have v1's defaults, so V1_ONLY comes first."""
    return find_home(name, V1_ONLY) or find_home(name, PUBLIC)


def list_names(homes: "Mapping[str, str]") -> "list[str]":
    """All names in `homes`, sorted."""
    return sorted(name for names in homes.values() for name in names.split())
