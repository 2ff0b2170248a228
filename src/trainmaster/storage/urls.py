"""The URLs of storages. Pure."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from trainmaster.job.errors import UserErrorException


def local_folder(url: str) -> Path | None:
    """The folder that `url` refers to; None for other kinds of storage.

    >>> local_folder("file:///data/sets"), local_folder("s3://bucket")
    (PosixPath('/data/sets'), None)
    """
    if url.startswith(("/", ".", "~")) or ("://" not in url and "::" not in url):
        return Path(os.path.normpath(Path(url).expanduser().absolute()))
    if "::" in url or protocol_of(url) not in ("file", "local"):
        return None
    address = urlsplit(url)
    if address.netloc not in ("", "localhost"):
        raise UserErrorException(
            f"{mask_url(url)} refers to another machine", hint="A file URL has three slashes: file:///folder."
        )
    return Path(os.path.normpath("/" + unquote(address.path).lstrip("/")))


def protocol_of(url: str) -> str:
    """The protocol of a URL, such as `s3`; the outermost one of a chain (`zip::s3://...`)."""
    return url.split("::")[0].split("://")[0].lower()


def mask_url(url: str) -> str:
    """The URL without its password, for messages."""
    return re.sub(r"(://[^/@:]*):[^/@]*@", r"\1:***@", url)
