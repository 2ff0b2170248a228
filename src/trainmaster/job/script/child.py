"""ChildRun: a run within the run of a job, kept in the same journals."""

import os
from time import time

from trainmaster.job.errors import UserErrorException
from trainmaster.job.helper.names import RULE, is_plain
from trainmaster.job.script.asking import is_elsewhere
from trainmaster.job.script.identity import new_id
from trainmaster.job.script.journal import process_id
from trainmaster.job.script.run import JobRun

_LONGEST_ID = 128


class ChildRun(JobRun):
    """A child of the job's run (or of another child). It ends by `complete`, `fail`, or a `with` block."""

    def __init__(self, parent, name=None, run_id=None):
        if name is not None and not isinstance(name, str):
            raise UserErrorException("the name of a run has to be a str, not {}".format(type(name).__name__))
        self._id = new_id() if run_id is None else _checked_id(run_id)
        self._about = self._id
        self._parent = parent
        self._experiment = parent.experiment
        self._folder = os.path.join(_folder_of_children(parent), self._id)
        self._first_name = name
        self._texts = {"display_name": name} if name else {}
        self._state = "Running"
        self._children = []
        self._began_at = time()
        self._announced_in = 0
        self._journal()

    def __reduce__(self):
        return ChildRun, (self._parent, self._first_name, self._id)

    def __exit__(self, kind, error, trace):
        """Completed, or Failed on an exception, which goes on; `sys.exit(0)` is no failure."""
        if kind is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
            self.complete()
        else:
            self.fail("{}: {}".format(kind.__name__, error), error_code=kind.__name__)
        return False

    @property
    def parent(self):
        """The run that began this one."""
        return self._parent

    @property
    def status(self):
        """Running, Completed, Failed or Canceled."""
        return self._state

    @property
    def number(self):
        """Not known in a job."""
        return None

    def complete(self, _set_status=True):
        """Ends the run as Completed."""
        self._end("Completed", None)

    def fail(self, error_details=None, error_code=None, _set_status=True):
        """Ends the run as Failed; the details are a text or an exception."""
        self._end("Failed", {"code": str(error_code or "UserError"), "message": str(error_details or "")})

    def cancel(self):
        """Ends the run as Canceled."""
        self._end("Canceled", None)

    def _end(self, state, error):
        # A terminal state never changes.
        if self._state != "Running":
            return
        self._append({"k": "state", "v": state, "error": error, "t": time()})
        self._state = state

    def _journal(self):
        journal = self._parent._journal()
        # Each process has a journal of its own, and a reader must not meet the child in one that never named it.
        if self._announced_in != process_id():
            self._announced_in = process_id()
            self._parent._append({"k": "child", "id": self._id, "name": self._first_name, "t": self._began_at})
        return journal

    def _initial_text(self, variable):
        return ""

    def _initial_pairs(self, variable):
        return {}


def _folder_of_children(parent):
    """Beside the run's own folder or, where that is none of the workspace's, in it: from there they are fetched."""
    beside = os.path.dirname(parent._folder)
    if isinstance(parent, ChildRun) or not is_elsewhere():
        return beside
    seen = os.path.exists(os.path.join(os.path.dirname(beside), "workspace.json"))
    return beside if seen else os.path.join(parent._folder, "children")


def _checked_id(run_id):
    if not is_plain(run_id, _LONGEST_ID):
        raise UserErrorException(
            "{!r} cannot be the id of a run".format(run_id), hint="Use {}, {} at most.".format(RULE, _LONGEST_ID)
        )
    return run_id
