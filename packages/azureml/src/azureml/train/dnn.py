"""`azureml.train.dnn` of v1."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.sdk.estimators": "Gloo Mpi Nccl ParameterServer",
        "trainmaster.sdk.v1.estimators": "Chainer PyTorch TensorFlow",
    },
)
