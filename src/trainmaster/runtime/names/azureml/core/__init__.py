"""`azureml.core` inside a job: Run and VERSION; the rest where the full Trainmaster is installed."""

import sys
import types

import trainmaster
from trainmaster.runtime.run import Run

VERSION = trainmaster.__version__
__version__ = VERSION
__all__ = ["VERSION", "Run", "get_run"]


def get_run(experiment, run_id, **kwargs):
    """The run with this id (full Trainmaster)."""
    return Run(experiment, run_id)


class _Package(types.ModuleType):
    # Python 3.6 has no module-level __getattr__.
    def __getattr__(self, name):
        from trainmaster.runtime.absent import absent_name, is_in_full

        if is_in_full(name):
            try:
                return getattr(trainmaster, name)
            except (ImportError, SyntaxError) as error:
                raise absent_name(__name__, name) from error
        raise absent_name(__name__, name)


sys.modules[__name__].__class__ = _Package
