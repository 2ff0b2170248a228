"""`azureml.telemetry` inside a job: nothing is ever sent anywhere."""

__all__ = ["set_diagnostics_collection"]


def set_diagnostics_collection(send_diagnostics=True, verbosity=None):
    """Has no effect."""
