"""`azureml.exceptions` inside a job: the errors of Trainmaster by their v1 names."""

import trainmaster.job.errors as _errors

__all__ = sorted(name for name in vars(_errors) if name.endswith(("Exception", "Error")))

globals().update((name, getattr(_errors, name)) for name in __all__)
