"""Shows `azureml.core.image.container` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.services.image import ContainerImage as ContainerImage
from trainmaster.sdk.services.image_configuration import ContainerImageConfig as ContainerImageConfig
