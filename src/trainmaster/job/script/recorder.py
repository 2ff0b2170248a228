"""Recorder: the part of a run that writes metrics and files, in jobs and outside of them."""

import os
from time import time

from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.job.script import values
from trainmaster.job.script.files import RunFiles, existing_folder, walk_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from trainmaster.job.script.journal import Journal

try:
    # Importing all of json would take longer than the rest of this module.
    from _json import encode_basestring_ascii as as_json
except ImportError:
    from json.encoder import encode_basestring_ascii as as_json

_FAST_INT = 2**63
_HEADS_KEPT = 1000
_LONGEST_STEM = 200
# Where v1 keeps the files of runs. A script may name it, because files of a run are kept with the run anyway.
_OWN_STORE = "workspaceartifactstore"


class Recorder:
    """Logging and uploading. Subclasses say where to: `_journal()` returns the Journal, `_files_folder()` the folder of
    the run's files. `_about` is the id of the run if it is a child of the journal's run.
    """

    _about: "str | None" = None
    # The first part of scalar records by metric name. This one stays empty; each run gets its own.
    _heads: "dict[str, str]" = {}

    def _journal(self) -> "Journal":
        raise NotImplementedError

    def _files_folder(self) -> str:
        raise NotImplementedError

    def _open_files(self) -> "Any":
        """The run's files; outside of jobs they may be on a server."""
        return RunFiles(self._files_folder())

    def log(self, name: str, value: "Any", description: str = "", step: "Any" = None) -> None:
        """Appends one value to the metric `name`: a number, text, bool or None.

        >>> run.log("loss", 0.25)  # doctest: +SKIP
        """
        kind = type(value)
        # A fast path for nearly all calls; the difference excludes NaN and infinity.
        if step is None and (
            (kind is float and value - value == 0.0) or (kind is int and -_FAST_INT < value < _FAST_INT)
        ):
            try:
                head = self._heads[name]
            except (KeyError, TypeError):
                head = self._new_head(name)
            self._journal().write(f'{head}{value!r},"t":{time():.6f}}}\n'.encode())
            return
        name = values.metric_name(name)
        self._keep_metric("metric", name, values.scalar(name, value), values.step_number(name, step))

    def log_list(self, name: str, value: "Any", description: str = "") -> None:
        """Appends several values to the metric `name`: any iterable of scalars, generators included."""
        name = values.metric_name(name)
        self._keep_metric("list", name, values.scalars(name, value))

    def log_row(self, name: str, description: "Any" = None, **kwargs: "Any") -> None:
        """Appends one row to the table `name`; each keyword is a column."""
        name = values.metric_name(name)
        self._keep_metric("row", name, values.row(name, kwargs))

    def log_table(self, name: str, value: "Any", description: str = "") -> None:
        """Appends several rows to the table `name`: a dict of columns, all of one length."""
        name = values.metric_name(name)
        self._keep_metric("table", name, values.table(name, value))

    def log_image(
        self, name: str, path: "str | os.PathLike[str] | None" = None, plot: "Any" = None, description: str = ""
    ) -> None:
        """Keeps a picture: the image file at `path`, or a `plot` of matplotlib. Specify exactly one of them."""
        from trainmaster.job.script import pictures

        name = values.metric_name(name)
        if (path is None) == (plot is None):
            raise TrainmasterError(
                "log_image({!r}) takes exactly one of path and plot".format(name),
                cause="both were given" if path is not None else "neither was given",
            )
        if plot is not None:
            file = "{}_{}.png".format(_stem(name), int(time()))
            kept = self._add_file_beside(file, pictures.draw(plot))
        else:
            source = pictures.image_file(path)
            kept = self._add_file_beside(_own_name(source), source)
        self._keep_metric("image", name, kept)

    def log_confusion_matrix(self, name: str, value: "Any", description: str = "") -> None:
        """Keeps a confusion matrix: a dict or JSON text of the schema `confusion_matrix`."""
        self._log_json(name, value, "confusion_matrix")

    def log_accuracy_table(self, name: str, value: "Any", description: str = "") -> None:
        """Keeps an accuracy table: a dict or JSON text of the schema `accuracy_table`."""
        self._log_json(name, value, "accuracy_table")

    def log_residuals(self, name: str, value: "Any", description: str = "") -> None:
        """Keeps residuals: a dict or JSON text of the schema `residuals`."""
        self._log_json(name, value, "residuals")

    def log_predictions(self, name: str, value: "Any", description: str = "") -> None:
        """Keeps predictions: a dict or JSON text of the schema `predictions`."""
        self._log_json(name, value, "predictions")

    def upload_file(self, name: str, path_or_stream: "Any", datastore_name: "str | None" = None) -> None:
        """Adds the file at a path, or the contents of a stream, to the run as `name`.

        >>> run.upload_file("outputs/model.pkl", "model.pkl")  # doctest: +SKIP
        """
        _check_datastore(datastore_name)
        self._add_files([(name, path_or_stream)])

    def upload_files(
        self,
        names: "Sequence[str]",
        paths: "Sequence[Any]",
        return_artifacts: bool = False,
        timeout_seconds: "Any" = None,
        datastore_name: "str | None" = None,
    ) -> "list[str] | None":
        """Adds several files, one name per path. With `return_artifacts` returns the names as kept."""
        _check_datastore(datastore_name)
        if isinstance(names, str) or isinstance(paths, str):
            raise UserErrorException(
                "upload_files takes lists of names and paths", hint="Use run.upload_file() for one."
            )
        names, paths = list(names), list(paths)
        if len(names) != len(paths):
            raise UserErrorException(
                "upload_files needs as many names as paths",
                cause="{} names, {} paths".format(len(names), len(paths)),
            )
        kept = self._add_files(list(zip(names, paths)))  # noqa: B905
        return kept if return_artifacts else None

    def upload_folder(self, name: str, path: "str | os.PathLike[str]", datastore_name: "str | None" = None) -> None:
        """Adds all files below the folder `path`, under the prefix `name`."""
        _check_datastore(datastore_name)
        folder = existing_folder(path)
        files = sorted(walk_files(folder))
        self._add_files([("{}/{}".format(name, os.path.relpath(file, folder)), file) for file in files])

    def flush(self, timeout_seconds: float = 300) -> None:
        """Returns at once: values and files are already safe when `log` and `upload_file` return."""

    def _new_head(self, name: str) -> str:
        checked = values.metric_name(name)
        about = "" if self._about is None else '"r":{},'.format(as_json(self._about))
        head = '{{{}"k":"metric","n":{},"v":'.format(about, as_json(checked))
        if not self._heads or len(self._heads) >= _HEADS_KEPT:
            self._heads = {}
        self._heads[checked] = head
        return head

    def _keep_metric(self, kind: str, name: str, value: "Any", step: "int | None" = None) -> None:
        record = {"k": kind, "n": name, "v": value, "t": time()}
        if step is not None:
            record["s"] = step
        self._append(record)

    def _append(self, record: "dict[str, Any]") -> None:
        if self._about is not None:
            record["r"] = self._about
        self._journal().append(record)

    def _add_files(self, pairs: "Sequence[tuple[str, Any]]") -> "list[str]":
        """Adds files, pairs of a name and a path or stream; returns the names as kept."""
        files = self._open_files()
        kept = [files.add(name, source) for name, source in pairs]
        files.flush(kept)
        return kept

    def _add_file_beside(self, name: str, source: "Any") -> str:
        files = self._open_files()
        kept: "str" = files.add_beside(name, source)
        files.flush([kept])
        return kept

    def _log_json(self, name: str, value: "Any", schema: str) -> None:
        import io

        name = values.metric_name(name)
        text = _json_metric(name, value, schema)
        file = "{}_{}.json".format(_stem(name), int(time()))
        self._keep_metric("json", name, self._add_file_beside(file, io.StringIO(text)))


def _json_metric(name: str, value: "Any", schema: str) -> str:
    """`value` as JSON text, if it is a structured metric with this `schema`."""
    import json

    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise UserErrorException("the value of {!r} is not JSON".format(name), cause=str(error)) from None
    if not isinstance(value, dict):
        raise UserErrorException("the value of {!r} has to be a dict, or its JSON text".format(name))
    if value.get("schema_type") != schema or not isinstance(value.get("data"), dict):
        raise UserErrorException(
            "the value of {!r} is not a {}".format(name, schema),
            cause="schema_type is {!r}, data is a {}".format(
                value.get("schema_type"), type(value.get("data")).__name__
            ),
            hint='It looks like {{"schema_type": "{}", "schema_version": "v1", "data": {{...}}}}.'.format(schema),
        )
    try:
        return json.dumps(value, default=_as_plain)
    except (TypeError, ValueError) as error:
        raise UserErrorException("the value of {!r} cannot be put in JSON".format(name), cause=str(error)) from None


def _as_plain(value: "Any") -> "Any":
    # Numpy's arrays and scalars both have it.
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError("it contains a {}".format(type(value).__name__))


def _stem(name: str) -> str:
    """`name` as the beginning of a file name, with room left for an ending."""
    stem = "/".join(part for part in name.split("/") if part not in ("", ".", ".."))
    return stem.encode("utf-8")[:_LONGEST_STEM].decode("utf-8", "ignore") or "metric"


def _own_name(path: str) -> str:
    """The path relative to the working folder, or only its last part if the file is not in there."""
    relative = os.path.relpath(path)
    return os.path.basename(path) if relative.split(os.sep)[0] == ".." else relative


def _check_datastore(name: "str | None") -> None:
    if name not in (None, _OWN_STORE):
        raise UserErrorException(
            "files of a run cannot be kept in the datastore {!r}".format(name),
            hint="Leave datastore_name out: the file is kept with the run.",
        )
