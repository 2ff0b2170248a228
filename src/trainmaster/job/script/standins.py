"""The names of v1 that a job can import, and use where Trainmaster is installed in its environment.

Written by `python -m trainmaster.migration.surface`.
"""

# fmt: off
STANDINS = {
    "azureml.core.authentication": (
        "AbstractAuthentication "
        "AuthenticationException "
        "AzureCliAuthentication "
        "InteractiveLoginAuthentication "
        "MsiAuthentication "
        "ServicePrincipalAuthentication "
        "TokenAuthentication "
    ),
    "azureml.core.compute": (
        "AksCompute "
        "AmlCompute "
        "BatchAiCompute "
        "ComputeInstance "
        "ComputeTarget "
        "DsvmCompute "
        "HDInsightCompute "
        "KubernetesCompute "
        "RemoteCompute "
    ),
    "azureml.core.compute.aks": (
        "AksCompute "
        "AksProvisioningConfiguration "
    ),
    "azureml.core.compute.amlcompute": (
        "AmlCompute "
        "AmlComputeStatus "
        "ScaleSettings "
    ),
    "azureml.core.compute.batchai": (
        "BatchAiCompute "
    ),
    "azureml.core.compute.compute": (
        "ComputeTarget "
        "ComputeTargetAttachConfiguration "
        "ComputeTargetProvisioningConfiguration "
    ),
    "azureml.core.compute.computeinstance": (
        "ComputeInstance "
        "ComputeInstanceStatus "
    ),
    "azureml.core.compute.dsvm": (
        "DsvmCompute "
    ),
    "azureml.core.compute.hdinsight": (
        "HDInsightCompute "
    ),
    "azureml.core.compute.kubernetescompute": (
        "KubernetesCompute "
    ),
    "azureml.core.compute.remote": (
        "RemoteCompute "
    ),
    "azureml.core.compute_target": (
        "ComputeTarget "
        "ComputeTargetException "
    ),
    "azureml.core.conda_dependencies": (
        "CondaDependencies "
    ),
    "azureml.core.container_registry": (
        "ContainerRegistry "
    ),
    "azureml.core.environment": (
        "CondaDependencies "
        "ContainerRegistry "
        "DEFAULT_CPU_IMAGE "
        "DEFAULT_GPU_IMAGE "
        "DockerSection "
        "Environment "
        "PythonSection "
        "SparkSection "
    ),
    "azureml.core.experiment": (
        "Experiment "
        "ViewType "
    ),
    "azureml.core.image": (
        "ContainerImage "
        "Image "
    ),
    "azureml.core.image.container": (
        "ContainerImage "
        "ContainerImageConfig "
    ),
    "azureml.core.image.image": (
        "Image "
    ),
    "azureml.core.keyvault": (
        "KeyVaultContentType "
        "Keyvault "
    ),
    "azureml.core.model": (
        "InferenceConfig "
        "Model "
        "ModelPackage "
    ),
    "azureml.core.profile": (
        "ModelProfile "
    ),
    "azureml.core.runconfig": (
        "AmlComputeConfiguration "
        "CondaDependencies "
        "ContainerRegistry "
        "DEFAULT_CPU_IMAGE "
        "DEFAULT_GPU_IMAGE "
        "DataReferenceConfiguration "
        "DockerConfiguration "
        "DockerSection "
        "Environment "
        "EnvironmentDefinition "
        "HdiConfiguration "
        "HistoryConfiguration "
        "MPI_CPU_IMAGE "
        "MPI_GPU_IMAGE "
        "MpiConfiguration "
        "ParallelTaskConfiguration "
        "PyTorchConfiguration "
        "PythonSection "
        "RunConfiguration "
        "SparkConfiguration "
        "SparkSection "
        "TensorflowConfiguration "
    ),
    "azureml.core.script_run": (
        "ScriptRun "
    ),
    "azureml.core.script_run_config": (
        "ScriptRunConfig "
    ),
    "azureml.core.webservice": (
        "AciWebservice "
        "AksWebservice "
        "LocalWebservice "
        "Webservice "
    ),
    "azureml.core.webservice.aci": (
        "AciServiceDeploymentConfiguration "
        "AciWebservice "
    ),
    "azureml.core.webservice.aks": (
        "AksServiceDeploymentConfiguration "
        "AksWebservice "
    ),
    "azureml.core.webservice.local": (
        "LocalWebservice "
        "LocalWebserviceDeploymentConfiguration "
    ),
    "azureml.core.webservice.webservice": (
        "Webservice "
        "WebserviceDeploymentConfiguration "
    ),
    "azureml.core.workspace": (
        "ProjectSystemException "
        "UserErrorException "
        "Workspace "
        "WorkspaceException "
    ),
    "azureml.data.abstract_dataset": (
        "AbstractDataset "
    ),
    "azureml.data.abstract_datastore": (
        "AbstractDatastore "
    ),
    "azureml.data.azure_storage_datastore": (
        "AbstractAzureStorageDatastore "
        "AzureBlobDatastore "
        "AzureFileDatastore "
    ),
    "azureml.data.data_reference": (
        "DataReference "
    ),
    "azureml.data.datapath": (
        "DataPath "
        "DataPathComputeBinding "
    ),
    "azureml.data.dataset_consumption_config": (
        "DatasetConsumptionConfig "
    ),
    "azureml.data.dataset_type_definitions": (
        "PromoteHeadersBehavior "
    ),
    "azureml.data.file_dataset": (
        "FileDataset "
    ),
    "azureml.data.output_dataset_config": (
        "OutputDatasetConfig "
        "OutputFileDatasetConfig "
        "OutputTabularDatasetConfig "
    ),
    "azureml.data.tabular_dataset": (
        "TabularDataset "
    ),
    "azureml.mlflow": (""),
    "azureml.tensorboard": (
        "Tensorboard "
    ),
    "azureml.tensorboard.export": (
        "export_to_tensorboard "
    ),
    "azureml.train": (""),
    "azureml.train.dnn": (
        "Chainer "
        "Gloo "
        "Mpi "
        "Nccl "
        "ParameterServer "
        "PyTorch "
        "TensorFlow "
    ),
    "azureml.train.estimator": (
        "Estimator "
        "Gloo "
        "Mpi "
        "Nccl "
        "ParameterServer "
    ),
    "azureml.train.hyperdrive": (
        "BanditPolicy "
        "BayesianParameterSampling "
        "EarlyTerminationPolicy "
        "GridParameterSampling "
        "HyperDriveConfig "
        "HyperDriveRun "
        "HyperDriveRunConfig "
        "HyperParameterSampling "
        "MedianStoppingPolicy "
        "NoTerminationPolicy "
        "PrimaryMetricGoal "
        "RandomParameterSampling "
        "TruncationSelectionPolicy "
        "choice "
        "lognormal "
        "loguniform "
        "normal "
        "qlognormal "
        "qloguniform "
        "qnormal "
        "quniform "
        "randint "
        "uniform "
    ),
    "azureml.train.hyperdrive.exceptions": (
        "HyperDriveConfigException "
        "HyperDriveNotImplementedException "
        "HyperDriveRehydrateException "
        "HyperDriveScenarioNotSupportedException "
    ),
    "azureml.train.hyperdrive.parameter_expressions": (
        "choice "
        "lognormal "
        "loguniform "
        "normal "
        "qlognormal "
        "qloguniform "
        "qnormal "
        "quniform "
        "randint "
        "uniform "
    ),
    "azureml.train.hyperdrive.policy": (
        "BanditPolicy "
        "EarlyTerminationPolicy "
        "MedianStoppingPolicy "
        "NoTerminationPolicy "
        "TruncationSelectionPolicy "
    ),
    "azureml.train.hyperdrive.run": (
        "HyperDriveRun "
        "PrimaryMetricGoal "
    ),
    "azureml.train.hyperdrive.runconfig": (
        "HyperDriveConfig "
        "HyperDriveRunConfig "
        "PrimaryMetricGoal "
    ),
    "azureml.train.hyperdrive.sampling": (
        "BayesianParameterSampling "
        "GridParameterSampling "
        "HyperParameterSampling "
        "RandomParameterSampling "
    ),
    "azureml.train.sklearn": (
        "SKLearn "
    ),
    "azureml.train.widgets": (
        "RunDetails "
    ),
    "azureml.widgets": (
        "RunDetails "
    ),
}
