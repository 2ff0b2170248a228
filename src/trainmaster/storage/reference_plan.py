"""The plan for one data reference of a run.

| mode | the script sees |
|---|---|
| mount, the store is a folder | the path in the store; a link to it at `path_on_compute` |
| mount, the store is elsewhere | as with download: a copy, and changes to it stay in the run |
| download | a copy made before the job, at `path_on_compute` or in the run's folder |
| upload | an empty folder, or `path_on_compute`; its contents are uploaded after the job |

Mounted and downloaded paths must exist, so that a typo creates nothing in a store. Only outputs are created.

Copies go to `<run folder>/data/<name>/<last part of the path>`, so that the script's path is known before the store is
asked whether it is a file or a folder. The working folder only has links to them.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from itertools import islice
from pathlib import Path, PurePosixPath

from trainmaster.job.errors import DatastoreException
from trainmaster.job.script.data_reference import check_mode
from trainmaster.job.script.store_paths import printable, store_path
from trainmaster.shared.job_spec import DataBinding
from trainmaster.shared.records import DatastoreRecord
from trainmaster.storage.dataplan import DataPlan, Transfer
from trainmaster.storage.places import Places, is_there, own_place, place_on_compute, show_at, with_variable
from trainmaster.storage.urls import local_folder

# The run collects these folders of the working folder, so they must stay real folders.
_COLLECTED = ("outputs", "logs")


def plan_reference(binding: DataBinding, store: DatastoreRecord, places: Places) -> DataPlan:
    """Plan `binding`, a path of `store`."""
    mode = check_mode(binding.mode)
    if mode == "upload":
        return _plan_upload(binding, store, places)
    root = local_folder(store.url)
    if root is None:
        return _plan_download(binding, store, places)
    target = root / store_path(binding.path)
    if not is_there(target, store):
        raise _nothing_there(binding, store, root, target)
    return show_at(binding, target, places, DataPlan()) if mode == "mount" else _plan_download(binding, store, places)


def plan_written_folder(binding: DataBinding, root: Path, store: DatastoreRecord, places: Places) -> DataPlan:
    """Plan an output that the script writes directly to `root`, the folder of `store`; it is created if missing."""
    target = root / store_path(binding.path)
    folders = () if is_there(target, store) else (str(target),)
    return show_at(binding, target, places, DataPlan(folders=folders))


def _nothing_there(binding: DataBinding, store: DatastoreRecord, root: Path, target: Path) -> DatastoreException:
    return DatastoreException(
        f"Datastore {store.name!r} has nothing at {printable(binding.path or '/')}",
        cause=f"Data reference {binding.name!r} is to {binding.mode} it. {_what_is_there(root, target)}",
        hint="Upload it first, or correct the path. If the script writes there, use as_upload().",
    )


def _what_is_there(root: Path, target: Path) -> str:
    """Suggest existing names next to the missing one."""
    above = next((folder for folder in target.parents if folder.is_dir() and folder.is_relative_to(root)), None)
    if above is None:
        return f"Its folder {printable(root)} does not exist."
    with os.scandir(above) as entries:
        names = sorted(entry.name for entry in islice(entries, 1000))
    missing = target.relative_to(above).parts[0]
    close = get_close_matches(missing, names, n=3) or names[:10]
    place = printable(above.relative_to(root)) if above != root else "It"
    return f"{place} has: {', '.join(map(printable, close))}." if close else f"{place} is empty."


def _plan_download(binding: DataBinding, store: DatastoreRecord, places: Places) -> DataPlan:
    path = store_path(binding.path)
    wanted = place_on_compute(binding, places)
    is_outside = wanted is not None and not wanted.is_relative_to(places.code)
    own = own_place(binding, places) / PurePosixPath(path).name
    local = wanted if wanted is not None and is_outside else own
    transfer = Transfer(store.name, path, str(local), binding.overwrite)
    plan = DataPlan(downloads=(transfer,), stores={store.name: store})
    return with_variable(binding, local, plan) if is_outside else show_at(binding, local, places, plan)


def _plan_upload(binding: DataBinding, store: DatastoreRecord, places: Places) -> DataPlan:
    wanted = place_on_compute(binding, places)
    local = own_place(binding, places)
    folders: tuple[str, ...] = (str(local),)
    if wanted is not None and not _can_be_linked(wanted, places):
        local = wanted
        folders = _folder_for(wanted, places)
    transfer = Transfer(store.name, store_path(binding.path), str(local), binding.overwrite)
    plan = DataPlan(folders=folders, uploads=(transfer,), stores={store.name: store})
    return with_variable(binding, local, plan) if local == wanted else show_at(binding, local, places, plan)


def _can_be_linked(wanted: Path, places: Places) -> bool:
    """Whether `wanted` can be a link to a folder outside of the working folder."""
    if not wanted.is_relative_to(places.code) or _looks_like_a_file(wanted):
        return False
    return wanted.relative_to(places.code).parts[0] not in _COLLECTED


def _folder_for(wanted: Path, places: Places) -> tuple[str, ...]:
    """The folder to create so that the script can write to `wanted`; none inside the working folder."""
    if wanted.is_relative_to(places.code):
        return ()
    return (str(wanted.parent if _looks_like_a_file(wanted) else wanted),)


def _looks_like_a_file(path: Path) -> bool:
    # If a folder were created there, the script could not write a file of that name.
    return bool(path.suffix)
