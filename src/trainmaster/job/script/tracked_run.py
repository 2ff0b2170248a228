"""TrackedRun: what a run is and can do, in jobs and outside of them.

Standard library only. `job/script/run.py` has the classes for scripts in jobs, `sdk/run/run.py` the one for programs;
both say where a run's state, metrics and files are read from.
"""

import os

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.labels import Labels
from trainmaster.job.script.recorder import Recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from typing import Any, Iterator, Mapping, Sequence

    from trainmaster.job.script.metrics import Reference

    # Those of jobs, or the SDK's.
    Model = Any
    Run = Any
    PathText = str | os.PathLike[str]

_MOST_CHILDREN = 100


class TrackedRun(Labels, Recorder):
    """A run with its state, metrics, files, models and children."""

    # Where they are read from

    @property
    def experiment(self) -> "Any":
        """The experiment of the run."""
        raise NotImplementedError

    @property
    def type(self) -> str:
        """What kind of run it is."""
        raise NotImplementedError

    @property
    def status(self) -> str:
        """The last known state."""
        raise NotImplementedError

    def _read_metrics(self, name: "str | None", reference: "Reference") -> "dict[str, Any]":
        """Metric name to value; `reference` makes what stands for a file."""
        raise NotImplementedError

    def _read_file(self, name: str) -> bytes:
        """The contents of a file of the run; an error if the run has no such file."""
        raise NotImplementedError

    def _list_files(self, prefix: str) -> "builtins.list[str]":
        """The names of the files that begin with `prefix`."""
        raise NotImplementedError

    def _copy_file(self, name: str, target: str) -> None:
        """Copies a file of the run to the path `target`."""
        raise NotImplementedError

    def _create_children(self, tags: "builtins.list[dict[str, Any]]") -> "builtins.list[Run]":
        """Begins a child run for each dict of tags."""
        raise NotImplementedError

    @staticmethod
    def _model_class() -> "Any":
        raise NotImplementedError

    def get_children(
        self,
        recursive: bool = False,
        tags: "str | Mapping[str, Any] | None" = None,
        properties: "str | Mapping[str, Any] | None" = None,
        type: "str | None" = None,
        status: "str | Sequence[str] | None" = None,
    ) -> "Iterator[Run]":
        """The children that match all filters."""
        raise NotImplementedError

    # Metrics

    def get_metrics(
        self,
        name: "str | None" = None,
        recursive: bool = False,
        run_type: "str | None" = None,
        populate: bool = False,
    ) -> "dict[str, Any]":
        """Metric name to its value, list of values or table; with `recursive` run id to that, with all children.

        With `populate` pictures and structured metrics are read, instead of being named by a reference.
        """
        if recursive:
            runs = [self, *self.get_children(recursive=True, type=run_type)]
            return {run.id: run.get_metrics(name, populate=populate) for run in runs}
        if populate:
            return self._read_metrics(name, self._read_contents)
        from trainmaster.job.script.metrics import file_reference

        return self._read_metrics(name, file_reference)

    def _read_contents(self, kind: str, file: str) -> "Any":
        contents = self._read_file(file)
        if kind == "image":
            return contents
        import json

        return json.loads(contents.decode("utf-8"))

    # Files

    def download_file(self, name: str, output_file_path: "PathText | None" = None) -> None:
        """Copies a file of the run; by default into the current folder, under the last part of its name.

        A folder as `output_file_path` receives it.
        """
        last = os.path.basename(name)
        target = last if output_file_path is None else os.fspath(output_file_path)
        if target.endswith("/") or os.path.isdir(target):
            target = os.path.join(target, last)
        self._copy_file(name, target)

    def download_files(
        self,
        prefix: "str | None" = None,
        output_directory: "PathText | None" = None,
        output_paths: "Sequence[str] | None" = None,
        batch_size: int = 100,
        append_prefix: bool = True,
        timeout_seconds: "float | None" = None,
    ) -> None:
        """Copies all files of the run whose names begin with `prefix`."""
        start = prefix or ""
        names = self._list_files(start)
        if output_paths is None:
            cut = 0 if append_prefix else len(start)
            output_paths = [name[cut:].lstrip("/") or os.path.basename(name) for name in names]
        if len(output_paths) != len(names):
            raise UserErrorException(
                "download_files needs one output path per file",
                cause="{} paths for {} files: {}".format(len(output_paths), len(names), ", ".join(names[:20])),
            )
        for name, path in zip(names, output_paths):  # noqa: B905
            self._copy_file(name, os.path.join(os.fspath(output_directory or "."), path))

    # Models

    def register_model(
        self,
        model_name: str,
        model_path: "str | None" = None,
        tags: "Mapping[str, Any] | None" = None,
        properties: "Mapping[str, Any] | None" = None,
        model_framework: "str | None" = None,
        model_framework_version: "str | None" = None,
        description: "str | None" = None,
        datasets: "Any" = None,
        sample_input_dataset: "Any" = None,
        sample_output_dataset: "Any" = None,
        resource_configuration: "Any" = None,
        **kwargs: "Any",
    ) -> "Model":
        """Keeps files of the run as the next version of a model: a file, a folder, or all whose names begin so.

        Without `model_path` the name of the model is the path. Inside a job the files are those that were uploaded, and
        those in outputs/.
        """
        return self._model_class()._register_run_files(
            self,
            model_name,
            model_path,
            tags=tags,
            properties=properties,
            description=description,
            datasets=datasets,
            framework=model_framework,
            framework_version=model_framework_version,
            sample_input=sample_input_dataset,
            sample_output=sample_output_dataset,
            resources=resource_configuration,
        )

    # Children

    def create_children(
        self, count: "int | None" = None, tag_key: "str | None" = None, tag_values: "Sequence[Any] | None" = None
    ) -> "builtins.list[Run]":
        """Begins several child runs: `count` of them, or one for each of `tag_values` with the tag `tag_key`."""
        if (count is None) == (tag_key is None or tag_values is None):
            raise UserErrorException("create_children takes either count, or tag_key and tag_values")
        if count is not None and (not isinstance(count, int) or isinstance(count, bool)):
            raise UserErrorException("count must be a whole number, not {!r}".format(count))
        tags = [{str(tag_key): value} for value in tag_values or ()] if count is None else [{} for _ in range(count)]
        if not 1 <= len(tags) <= _MOST_CHILDREN:
            raise UserErrorException("create_children makes 1 to {} children, not {}".format(_MOST_CHILDREN, len(tags)))
        return self._create_children(tags)

    def __enter__(self) -> "Run":
        return self

    def __str__(self) -> str:
        return "Run(Experiment: {}, Id: {}, Type: {}, Status: {})".format(
            self.experiment.name, self.id, self.type, self.status
        )

    __repr__ = __str__
