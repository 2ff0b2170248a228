"""OfflineRun: takes the place of the run when a script is started by hand; it prints values instead of keeping them."""

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script import values
from trainmaster.job.script.files import existing_file, file_name, is_stream
from trainmaster.job.script.identity import new_id
from trainmaster.job.script.recorder import Recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Mapping, NoReturn, Sequence


class OfflineRun(Recorder):
    """The printing substitute that `Run.get_context()` returns outside of a job.

    >>> OfflineRun().log("loss", 0.5)
    Attempted to log metric 'loss': 0.5
    """

    def __init__(self, parent: "OfflineRun | None" = None) -> None:
        self._id = "OfflineRun_" + new_id()
        self._parent = parent
        self._tags: "dict[str, Any]" = {}
        self._properties: "dict[str, Any]" = {}

    def __getattr__(self, name: str) -> "NoReturn":
        raise AttributeError(
            "an offline run has no {!r}: the script was started outside of a job "
            "(check run.id.startswith('OfflineRun'))".format(name)
        )

    def __repr__(self) -> str:
        return "OfflineRun(Id: {})".format(self._id)

    def __enter__(self) -> "OfflineRun":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        pass

    @property
    def id(self) -> str:
        """A unique id that begins with `OfflineRun_`."""
        return self._id

    @property
    def parent(self) -> "OfflineRun | None":
        """The offline run this one is a child of, or None."""
        return self._parent

    @property
    def status(self) -> str:
        return "Running"

    @property
    def tags(self) -> "dict[str, Any]":
        return dict(self._tags)

    @property
    def properties(self) -> "dict[str, Any]":
        return dict(self._properties)

    def log(self, name: str, value: "Any", description: str = "", step: "Any" = None) -> None:
        """Checks the value as a real run would, and prints it."""
        name = values.metric_name(name)
        self._keep_metric("metric", name, values.scalar(name, value), values.step_number(name, step))

    def get_status(self) -> str:
        return self.status

    def get_tags(self) -> "dict[str, Any]":
        return self.tags

    def get_properties(self) -> "dict[str, Any]":
        return self.properties

    def get_metrics(
        self, name: "str | None" = None, recursive: bool = False, run_type: "str | None" = None, populate: bool = False
    ) -> "dict[str, Any]":
        """Nothing: an offline run prints metrics and keeps none."""
        return {}

    def get_file_names(self) -> "list[str]":
        return []

    def get_details(self) -> "dict[str, Any]":
        return {"runId": self._id, "status": self.status, "properties": self.properties}

    def get_children(
        self,
        recursive: bool = False,
        tags: "Any" = None,
        properties: "Any" = None,
        type: "str | None" = None,
        status: "Any" = None,
    ) -> "Iterator[OfflineRun]":
        return iter(())

    def tag(self, key: str, value: "Any" = None) -> None:
        self.set_tags({key: value})

    def set_tags(self, tags: "Mapping[str, Any]") -> None:
        self._tags.update(tags)
        print("Attempted to set tags: {}".format(tags))

    def remove_tags(self, tags: "str | Sequence[str]") -> None:
        for name in [tags] if isinstance(tags, str) else tags:
            self._tags.pop(name, None)
        print("Attempted to remove tags: {}".format(tags))

    def add_properties(self, properties: "Mapping[str, Any]") -> None:
        self._properties.update(properties)
        print("Attempted to add properties: {}".format(properties))

    def child_run(self, name: "str | None" = None, run_id: "str | None" = None, outputs: "Any" = None) -> "OfflineRun":
        """Another offline run."""
        return OfflineRun(parent=self)

    def create_children(
        self, count: "int | None" = None, tag_key: "str | None" = None, tag_values: "Sequence[Any] | None" = None
    ) -> "list[OfflineRun]":
        """Several offline runs."""
        return [self.child_run() for _ in (range(count) if count is not None else tag_values or ())]

    def start(self) -> None:
        pass

    def complete(self, _set_status: bool = True) -> None:
        pass

    def fail(self, error_details: "Any" = None, error_code: "str | None" = None, _set_status: bool = True) -> None:
        print("Attempted to mark the run as failed: {}".format(error_details))

    def cancel(self) -> None:
        print("Attempted to cancel the run")

    def _keep_metric(self, kind: str, name: str, value: "Any", step: "int | None" = None) -> None:
        kind = "metric" if kind == "metric" else kind + " metric"
        end = "" if step is None else " (step {})".format(step)
        print("Attempted to log {} {!r}: {!r}{}".format(kind, name, value, end))

    def _append(self, record: "dict[str, Any]") -> None:
        raise UserErrorException("there is no journal outside of a job")

    def _add_files(self, pairs: "Sequence[tuple[str, Any]]") -> "list[str]":
        return [_would_add(name, source) for name, source in pairs]

    def _add_file_beside(self, name: str, source: "Any") -> str:
        return file_name(name)


def _would_add(name: str, source: "Any") -> str:
    name = file_name(name)
    shown = "a stream" if is_stream(source) else existing_file(source)
    print("Attempted to upload {} as {!r}".format(shown, name))
    return name
