"""DataPlan: everything to do for the data of one run, stored in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainmaster.job.errors import DatastoreException
from trainmaster.job.script.store_folder import open_part
from trainmaster.job.script.store_paths import printable
from trainmaster.shared.job_spec import DataSource
from trainmaster.shared.private import open_private
from trainmaster.shared.records import DatastoreRecord
from trainmaster.shared.serialization import PlainDataError, from_plain, to_plain

PLAN_VERSION = 1


@dataclass(frozen=True)
class Link:
    """A link to create at `path`, pointing to `target`; both are absolute."""

    path: str
    target: str


@dataclass(frozen=True)
class Transfer:
    """A file or folder to copy between `path` of the datastore `store` and the local path `local`."""

    store: str
    path: str
    local: str
    overwrite: bool = False
    globs: tuple[str, ...] = ()
    """Which files to upload; empty for all."""


@dataclass(frozen=True)
class Gather:
    """The files of a dataset to show in the folder `local`: as links if they are on this machine, else as copies."""

    sources: tuple[DataSource, ...]
    local: str
    steps: tuple[Mapping[str, Any], ...] = ()
    copy: bool = False
    """Whether to copy files of this machine too."""


@dataclass(frozen=True)
class DataPlan:
    """Everything to do for the data of one run. It contains options of datastores, maybe keys: see `write_plan`."""

    version: int = PLAN_VERSION
    variables: Mapping[str, str] = field(default_factory=dict)
    """`AZUREML_DATAREFERENCE_<name>` to the path the script sees; for datasets also `<name>` and `<NAME>`."""
    links: tuple[Link, ...] = ()
    """In the working folder: the agent creates them after it has copied the code."""
    outer_links: tuple[Link, ...] = ()
    """At absolute paths: created by the stage before the job."""
    folders: tuple[str, ...] = ()
    """Folders to create before the job, if they do not exist."""
    downloads: tuple[Transfer, ...] = ()
    uploads: tuple[Transfer, ...] = ()
    stores: Mapping[str, DatastoreRecord] = field(default_factory=dict)
    """The datastores of the transfers and gathers, by name."""
    gathers: tuple[Gather, ...] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """Facts about the input datasets for the job, by name (`job/script/datasets.py`)."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Maps the name of each output to the path the script writes to."""
    outside: tuple[str, ...] = ()
    """Paths outside of the run's folder that the script needs."""

    @property
    def before(self) -> bool:
        """Whether the stage has something to do before the job."""
        return bool(self.downloads or self.folders or self.outer_links or self.gathers)

    @property
    def after(self) -> bool:
        """Whether the stage has something to do after the job."""
        return bool(self.uploads)


def write_plan(plan: DataPlan, path: Path) -> None:
    """Write `plan` to a file that only its owner can read."""
    with open_part(path) as part, open(part, "x", encoding="utf-8", opener=open_private) as file:
        json.dump(to_plain(plan), file, indent=1)


def read_plan(path: Path) -> DataPlan:
    """Read a plan; raise DatastoreException for anything else."""
    try:
        return from_plain(DataPlan, json.loads(path.read_text(encoding="utf-8")), "the data plan")
    except (OSError, ValueError, PlainDataError) as error:
        raise DatastoreException(f"{printable(path)} is not a data plan", cause=str(error)) from None
