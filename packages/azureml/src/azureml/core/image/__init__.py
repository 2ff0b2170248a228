"""Shows `azureml.core.image` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.v1.image import ContainerImage as ContainerImage
from trainmaster.sdk.v1.image import Image as Image
