"""Where a run sees its data: what the plans of data references and of datasets have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmaster.job.errors import DatastoreException
from trainmaster.job.script.store_paths import check_name, compute_path, printable
from trainmaster.shared.job_spec import DataBinding
from trainmaster.shared.records import DatastoreRecord
from trainmaster.storage.dataplan import DataPlan, Link

PREFIX = "AZUREML_DATAREFERENCE_"


@dataclass(frozen=True)
class Places:
    """The folders of a run."""

    run: Path
    code: Path


def show_at(binding: DataBinding, target: Path, places: Places, plan: DataPlan) -> DataPlan:
    """Show `target` to the script: at `path_on_compute` through a link, or at its own path."""
    wanted = place_on_compute(binding, places)
    if not target.is_relative_to(places.run):
        plan = merge([plan, DataPlan(outside=(str(target),))])
    if wanted is None:
        return with_variable(binding, target, plan)
    link = (Link(str(wanted), str(target)),)
    is_inside = wanted.is_relative_to(places.code)
    linked = DataPlan(links=link) if is_inside else DataPlan(outer_links=link)
    return with_variable(binding, wanted, merge([plan, linked]))


def with_variable(binding: DataBinding, seen: Path, plan: DataPlan) -> DataPlan:
    """Add the variable by which the script finds `seen`."""
    name = check_name(binding.name, "data reference")
    return merge([plan, DataPlan(variables={PREFIX + name: str(seen)})])


def place_on_compute(binding: DataBinding, places: Places) -> Path | None:
    """Where the script wants to see the data; None if it does not say."""
    path = compute_path(binding.path_on_compute)
    # Joining keeps an absolute path unchanged.
    return places.code / path if path else None


def own_place(binding: DataBinding, places: Places) -> Path:
    """The folder of the run for copies of this binding."""
    return places.run / "data" / check_name(binding.name, "data reference")


def store_of(binding: DataBinding, stores: Mapping[str, DatastoreRecord]) -> DatastoreRecord:
    """The datastore of a binding; by default, the workspace's default datastore."""
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


def is_there(path: Path, store: DatastoreRecord) -> bool:
    """Whether `path` exists."""
    try:
        return path.exists()
    except OSError as error:
        raise DatastoreException(
            f"{printable(path)} of datastore {store.name!r} cannot be read", cause=error.strerror or str(error)
        ) from error


def merge(plans: Sequence[DataPlan]) -> DataPlan:
    """Merge plans into one."""
    return DataPlan(
        variables={name: value for plan in plans for name, value in plan.variables.items()},
        links=tuple(link for plan in plans for link in plan.links),
        outer_links=tuple(link for plan in plans for link in plan.outer_links),
        folders=tuple(dict.fromkeys(folder for plan in plans for folder in plan.folders)),
        downloads=tuple(download for plan in plans for download in plan.downloads),
        uploads=tuple(upload for plan in plans for upload in plan.uploads),
        stores={name: store for plan in plans for name, store in plan.stores.items()},
        gathers=tuple(gather for plan in plans for gather in plan.gathers),
        inputs={name: facts for plan in plans for name, facts in plan.inputs.items()},
        outputs={name: path for plan in plans for name, path in plan.outputs.items()},
        outside=tuple(dict.fromkeys(path for plan in plans for path in plan.outside)),
    )
