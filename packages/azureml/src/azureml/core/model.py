"""Shows `azureml.core.model` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.models.model import Model as Model
from trainmaster.sdk.services.inference_config import InferenceConfig as InferenceConfig
from trainmaster.sdk.services.packaging import ModelPackage as ModelPackage
