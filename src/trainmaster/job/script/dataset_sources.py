"""From what a person gives as the path of a dataset to its sources."""

import os

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.dataset_files import is_web


def sources_of(path, store_source=None):
    """The sources that `path` names: one or a list of texts, or what `store_source` makes a source of."""
    given = path if isinstance(path, list) else [path]
    if not given:
        raise UserErrorException("the path of a dataset is an empty list", hint="Give at least one path.")
    return [_source(each, store_source) for each in given]


def _source(item, store_source):
    if isinstance(item, os.PathLike):
        item = os.fspath(item)
    if isinstance(item, str):
        return _text_source(item)
    source = store_source(item) if store_source is not None else None
    if source is None:
        raise UserErrorException(
            "a dataset cannot be made of a {}".format(type(item).__name__),
            hint="Give (datastore, 'path'), a web address, a path of this machine, or a list of those.",
        )
    return source


def _text_source(text):
    if not text.strip() or not text.isprintable():
        raise UserErrorException("{!r} is no path of a dataset".format(text))
    source = {"path": text}
    if is_web(source):
        if "*" in text:
            raise UserErrorException(
                "{} has a wildcard, but web servers give no listings".format(text.partition("?")[0]),
                hint="List the addresses one by one, or register the container as a datastore.",
            )
        if not text.partition("://")[2].partition("/")[2].partition("?")[0]:
            raise UserErrorException("{} names no file".format(text), hint="Give the address of a file.")
        if ".." in text.partition("?")[0].split("/"):
            # It would be written outside of the folder for the dataset's files.
            raise UserErrorException("{} has '..' in its path".format(text.partition("?")[0]))
        return source
    if "://" in text:
        raise UserErrorException(
            "{} cannot be read directly".format(text.partition("?")[0]),
            hint="Register it with Datastore.register(workspace, name, url), then give (datastore, 'path').",
        )
    return {"path": os.path.abspath(os.path.expanduser(text))}
