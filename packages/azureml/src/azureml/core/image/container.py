"""Shows `azureml.core.image.container` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.v1.image import ContainerImage as ContainerImage
from trainmaster.sdk.v1.image_configuration import ContainerImageConfig as ContainerImageConfig
