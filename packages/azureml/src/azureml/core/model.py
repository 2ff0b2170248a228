"""`azureml.core.model` of v1."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.models": "Model",
        "trainmaster.serving.inference_config": "InferenceConfig",
        "trainmaster.serving.packaging": "ModelPackage",
    },
)
