"""Shows `azureml.core.keyvault` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.workspace.keyvault import KeyVaultContentType as KeyVaultContentType
from trainmaster.sdk.workspace.keyvault import Keyvault as Keyvault
