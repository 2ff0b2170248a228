"""Shows `azureml.core.image.image` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.services.image import Image as Image
