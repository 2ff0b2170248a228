"""OfflineRun: stands for the run when a script is started by hand; it prints instead of keeping."""

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script import values
from trainmaster.job.script.files import existing_file, file_name, is_stream
from trainmaster.job.script.identity import new_id
from trainmaster.job.script.recorder import Recorder


class OfflineRun(Recorder):
    """The printing stand-in that `Run.get_context()` gives outside of a job.

    >>> OfflineRun().log("loss", 0.5)
    Attempted to log metric 'loss': 0.5
    """

    def __init__(self, parent=None):
        self._id = "OfflineRun_" + new_id()
        self._parent = parent
        self._tags = {}
        self._properties = {}

    def __getattr__(self, name):
        raise AttributeError(
            "{!r} cannot be had: the script runs outside of a job, there is only this stand-in "
            "(ask run.id.startswith('OfflineRun'))".format(name)
        )

    def __repr__(self):
        return "OfflineRun(Id: {})".format(self._id)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return False

    @property
    def id(self):
        """`OfflineRun_` and a unique id."""
        return self._id

    @property
    def parent(self):
        """The offline run this one is a child of, or None."""
        return self._parent

    @property
    def status(self):
        return "Running"

    @property
    def tags(self):
        return dict(self._tags)

    @property
    def properties(self):
        return dict(self._properties)

    def log(self, name, value, description="", step=None):
        """Checks the value as a real run would, and prints it."""
        name = values.metric_name(name)
        self._keep_metric("metric", name, values.scalar(name, value), values.step_number(name, step))

    def get_status(self):
        return self.status

    def get_tags(self):
        return self.tags

    def get_properties(self):
        return self.properties

    def get_metrics(self, name=None, recursive=False, run_type=None, populate=False):
        """Nothing: what an offline run is given is printed, not kept."""
        return {}

    def get_file_names(self):
        return []

    def get_details(self):
        return {"runId": self._id, "status": self.status, "properties": self.properties}

    def get_children(self, recursive=False, tags=None, properties=None, type=None, status=None):
        return iter(())

    def tag(self, key, value=None):
        self.set_tags({key: value})

    def set_tags(self, tags):
        self._tags.update(tags)
        print("Attempted to set tags: {}".format(tags))

    def remove_tags(self, tags):
        for name in [tags] if isinstance(tags, str) else tags:
            self._tags.pop(name, None)
        print("Attempted to remove tags: {}".format(tags))

    def add_properties(self, properties):
        self._properties.update(properties)
        print("Attempted to add properties: {}".format(properties))

    def child_run(self, name=None, run_id=None, outputs=None):
        """Another offline run."""
        return OfflineRun(parent=self)

    def create_children(self, count=None, tag_key=None, tag_values=None):
        """Several offline runs."""
        return [self.child_run() for _ in (range(count) if count is not None else tag_values or ())]

    def start(self):
        pass

    def complete(self, _set_status=True):
        pass

    def fail(self, error_details=None, error_code=None, _set_status=True):
        print("Attempted to mark the run as failed: {}".format(error_details))

    def cancel(self):
        print("Attempted to cancel the run")

    def _keep_metric(self, kind, name, value, step=None):
        kind = "metric" if kind == "metric" else kind + " metric"
        end = "" if step is None else " (step {})".format(step)
        print("Attempted to log {} {!r}: {!r}{}".format(kind, name, value, end))

    def _append(self, record):
        raise UserErrorException("there is no journal outside of a job")

    def _add_files(self, pairs):
        return [_would_add(name, source) for name, source in pairs]

    def _add_file_beside(self, name, source):
        return file_name(name)


def _would_add(name, source):
    name = file_name(name)
    shown = "a stream" if is_stream(source) else existing_file(source)
    print("Attempted to upload {} as {!r}".format(shown, name))
    return name
