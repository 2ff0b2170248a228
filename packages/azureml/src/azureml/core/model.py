"""`azureml.core.model` of v1."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.sdk.models": "Model",
        "trainmaster.sdk.services.inference_config": "InferenceConfig",
        "trainmaster.sdk.services.packaging": "ModelPackage",
    },
)
