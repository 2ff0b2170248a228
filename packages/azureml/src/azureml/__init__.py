"""The import names of the azureml SDK v1, for Trainmaster. An independent implementation, not Microsoft's."""

from azureml._others import refuse_microsofts_sdk, tell_what_is_not_here

refuse_microsofts_sdk()
tell_what_is_not_here()
