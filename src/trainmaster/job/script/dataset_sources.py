"""Turns what a user gives as the path of a dataset into its sources."""

import os

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.dataset_files import is_web

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from trainmaster.job.script.dataset_files import Source

    # From a datastore with a path, in any of v1's forms, to a source; None for anything else.
    StoreSource = Callable[[Any], Source | None]


def sources_of(path: "Any", store_source: "StoreSource | None" = None) -> "list[Source]":
    """The sources that `path` names: text, or what `store_source` makes a source from; or a list of those."""
    given = path if isinstance(path, list) else [path]
    if not given:
        raise UserErrorException("the path of a dataset is an empty list", hint="Give at least one path.")
    return [_source(each, store_source) for each in given]


def _source(item: "Any", store_source: "StoreSource | None") -> "Source":
    if isinstance(item, os.PathLike):
        item = os.fspath(item)
    if isinstance(item, str):
        return _text_source(item)
    source = store_source(item) if store_source is not None else None
    if source is None:
        raise UserErrorException(
            "a dataset cannot be made from a {}".format(type(item).__name__),
            hint="Give (datastore, 'path'), a web address, a path of this machine, or a list of those.",
        )
    return source


def _text_source(text: str) -> "Source":
    if not text.strip() or not text.isprintable():
        raise UserErrorException("{!r} is not a path of a dataset".format(text))
    source = {"path": text}
    if is_web(source):
        if "*" in text:
            raise UserErrorException(
                "{} has a wildcard, but web servers have no listings".format(text.partition("?")[0]),
                hint="List the addresses one by one, or register the container as a datastore.",
            )
        if not text.partition("://")[2].partition("/")[2].partition("?")[0]:
            raise UserErrorException("{} names no file".format(text), hint="Give the address of a file.")
        if ".." in text.partition("?")[0].split("/"):
            # The file would be written outside of the folder for the dataset's files.
            raise UserErrorException("{} has '..' in its path".format(text.partition("?")[0]))
        return source
    if "://" in text:
        raise UserErrorException(
            "{} cannot be read directly".format(text.partition("?")[0]),
            hint="Register it with Datastore.register(workspace, name, url), then give (datastore, 'path').",
        )
    return {"path": os.path.abspath(os.path.expanduser(text))}
