"""The data of a run: which paths the script sees, and what has to be linked and copied for that.

| mode | the script sees |
|---|---|
| mount, the store is a folder | the path in the store, made if missing; a link to it at `path_on_compute` |
| mount, the store is elsewhere | as with download: a copy, and changes to it stay in the run |
| download | a copy from before the job, at `path_on_compute` or in the run's folder |
| upload | an empty folder, or `path_on_compute`; what lies there after the job goes to the store |

Copies go to `<run folder>/data/<name>/<last part of the path>`, so that the path the script sees is known
before the store was asked whether it is a file or a folder. The working folder has only links to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath

from trainmaster.datastores.dataplan import DataPlan, Link, Transfer, read_plan, write_plan
from trainmaster.datastores.modes import checked_mode
from trainmaster.datastores.paths import checked_name, compute_path, shown, store_path
from trainmaster.datastores.storage import local_folder
from trainmaster.errors import DatastoreException, UserErrorException
from trainmaster.job import DataBinding
from trainmaster.records import DatastoreRecord

__all__ = ["DataPlan", "Link", "Transfer", "plan_data", "read_plan", "write_plan"]

# The run collects these folders of the working folder as its own files: they have to stay real folders.
_COLLECTED = ("outputs", "logs")


@dataclass(frozen=True)
class _Places:
    run: Path
    code: Path


def plan_data(
    bindings: Iterable[DataBinding],
    stores: Mapping[str, DatastoreRecord],
    run_folder: Path,
    code_folder: Path,
) -> DataPlan:
    """The plan for `bindings`. Looks at folder stores to see what is there; changes nothing."""
    places = _Places(run_folder.absolute(), code_folder.absolute())
    plans = [_plan(binding, _store_of(binding, stores), places) for binding in dict.fromkeys(bindings)]
    names = [name for plan in plans for name in plan.variables]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise UserErrorException(
            f"Two data references of the run have one name: {twice.removeprefix('AZUREML_DATAREFERENCE_')}",
            hint="Give each its own data_reference_name.",
        )
    merged = _merged(plans)
    _check_apart([*merged.links, *merged.outer_links])
    return merged


def _plan(binding: DataBinding, store: DatastoreRecord, places: _Places) -> DataPlan:
    mode = checked_mode(binding.mode)
    if mode == "upload":
        return _plan_upload(binding, store, places)
    root = local_folder(store.url)
    if mode == "mount" and root is not None:
        return _plan_mount(binding, root / store_path(binding.path), store, places)
    if root is not None and not _is_there(root / store_path(binding.path), store):
        raise DatastoreException(
            f"Datastore {store.name!r} has nothing at {shown(binding.path or '/')}",
            cause=f"Data reference {binding.name!r} wants to {mode} it.",
            hint="Upload it first, or correct the path.",
        )
    return _plan_download(binding, store, places)


def _plan_mount(binding: DataBinding, target: Path, store: DatastoreRecord, places: _Places) -> DataPlan:
    folders = () if _is_there(target, store) else (str(target),)
    return _seen_at(binding, target, places, DataPlan(folders=folders))


def _plan_download(binding: DataBinding, store: DatastoreRecord, places: _Places) -> DataPlan:
    path = store_path(binding.path)
    wanted = _place_on_compute(binding, places)
    is_outside = wanted is not None and not wanted.is_relative_to(places.code)
    own = _own_place(binding, places) / PurePosixPath(path).name
    local = wanted if wanted is not None and is_outside else own
    transfer = Transfer(store.name, path, str(local), binding.overwrite)
    plan = DataPlan(downloads=(transfer,), stores={store.name: store})
    return _variable(binding, local, plan) if is_outside else _seen_at(binding, local, places, plan)


def _plan_upload(binding: DataBinding, store: DatastoreRecord, places: _Places) -> DataPlan:
    wanted = _place_on_compute(binding, places)
    local = _own_place(binding, places)
    folders: tuple[str, ...] = (str(local),)
    if wanted is not None and not _can_be_linked(wanted, places):
        local = wanted
        folders = _folder_for(wanted, places)
    transfer = Transfer(store.name, store_path(binding.path), str(local), binding.overwrite)
    plan = DataPlan(folders=folders, uploads=(transfer,), stores={store.name: store})
    return _variable(binding, local, plan) if local == wanted else _seen_at(binding, local, places, plan)


def _can_be_linked(wanted: Path, places: _Places) -> bool:
    """Whether what the script writes at `wanted` can go to a folder outside of the working folder."""
    if not wanted.is_relative_to(places.code) or _looks_like_a_file(wanted):
        return False
    return wanted.relative_to(places.code).parts[0] not in _COLLECTED


def _folder_for(wanted: Path, places: _Places) -> tuple[str, ...]:
    """The folder to make so that the script can write at `wanted`; none before the code is laid out."""
    if wanted.is_relative_to(places.code):
        return ()
    return (str(wanted.parent if _looks_like_a_file(wanted) else wanted),)


def _looks_like_a_file(path: Path) -> bool:
    # A folder made there would be in the script's way.
    return bool(path.suffix)


def _seen_at(binding: DataBinding, target: Path, places: _Places, plan: DataPlan) -> DataPlan:
    """`plan`, with `target` seen by the script at `path_on_compute`, if that is given, through a link."""
    wanted = _place_on_compute(binding, places)
    if wanted is None:
        return _variable(binding, target, plan)
    link = (Link(str(wanted), str(target)),)
    is_inside = wanted.is_relative_to(places.code)
    linked = DataPlan(links=link) if is_inside else DataPlan(outer_links=link)
    return _variable(binding, wanted, _merged([plan, linked]))


def _variable(binding: DataBinding, seen: Path, plan: DataPlan) -> DataPlan:
    name = checked_name(binding.name, "data reference")
    return _merged([plan, DataPlan(variables={f"AZUREML_DATAREFERENCE_{name}": str(seen)})])


def _place_on_compute(binding: DataBinding, places: _Places) -> Path | None:
    path = compute_path(binding.path_on_compute)
    # An absolute path stays itself when it is joined.
    return places.code / path if path else None


def _own_place(binding: DataBinding, places: _Places) -> Path:
    return places.run / "data" / checked_name(binding.name, "data reference")


def _store_of(binding: DataBinding, stores: Mapping[str, DatastoreRecord]) -> DatastoreRecord:
    store = stores.get(binding.datastore)
    if not binding.datastore:
        store = next((record for record in stores.values() if record.is_default), None)
    if store is None:
        raise DatastoreException(
            f"The workspace has no datastore {binding.datastore!r}",
            cause=f"Data reference {binding.name!r} needs it.",
            hint=f"It has: {', '.join(sorted(stores))}." if stores else "Register it with Datastore.register.",
        )
    return store


def _is_there(path: Path, store: DatastoreRecord) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise DatastoreException(
            f"{shown(path)} of datastore {store.name!r} cannot be read", cause=error.strerror or str(error)
        ) from error


def _merged(plans: Sequence[DataPlan]) -> DataPlan:
    return DataPlan(
        variables={name: value for plan in plans for name, value in plan.variables.items()},
        links=tuple(link for plan in plans for link in plan.links),
        outer_links=tuple(link for plan in plans for link in plan.outer_links),
        folders=tuple(dict.fromkeys(folder for plan in plans for folder in plan.folders)),
        downloads=tuple(download for plan in plans for download in plan.downloads),
        uploads=tuple(upload for plan in plans for upload in plan.uploads),
        stores={name: store for plan in plans for name, store in plan.stores.items()},
    )


def _check_apart(links: Sequence[Link]) -> None:
    """Refuse a link below another: it would be made inside the store that the other leads to."""
    paths = sorted(Path(link.path) for link in links)
    for upper, lower in pairwise(paths):
        if lower.is_relative_to(upper):
            raise UserErrorException(
                f"Two data references of the run want one place: {shown(upper)} and {shown(lower)}",
                hint="Give each a path_on_compute of its own, none below another.",
            )
