"""The plan for the dataset inputs and outputs of a run.

| input | the script sees |
|---|---|
| a whole local file or folder, mount or direct | that file or folder itself; nothing is copied |
| selected files (wildcards, several sources, take, ...) | a folder of the run with a link or copy of each file |
| anything in another store or on the web | a copy in the run's folder |

An output mounted on a folder is written there directly. Any other output is a folder of the run; its files are
uploaded to the store after the job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from trainmaster.job.errors import DatastoreException
from trainmaster.job.script.dataset_files import find_single_path, is_pattern, is_web, path_in_place, without_all
from trainmaster.job.script.store_paths import printable
from trainmaster.shared.job_spec import DataBinding, DatasetInput, DatasetOutput, DataSource
from trainmaster.shared.records import DatastoreRecord
from trainmaster.shared.serialization import to_plain
from trainmaster.storage.dataplan import DataPlan, Gather
from trainmaster.storage.places import PREFIX, Places, merge, own_place, show_at, store_of
from trainmaster.storage.reference_plan import plan_reference, plan_written_folder
from trainmaster.storage.urls import local_folder

# Programs break if these variables become paths of data.
_NEEDED = frozenset({"PATH", "HOME", "USER", "SHELL", "LANG", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH", "PWD"})


def plan_input(given: DatasetInput, stores: Mapping[str, DatastoreRecord], places: Places) -> DataPlan:
    """Plan one dataset that the script reads."""
    records = {source.store: _store(given.name, source.store, stores) for source in given.definition.sources}
    plan = _plan_files(given, records, places)
    path = plan.variables[PREFIX + given.name]
    facts = {
        "id": given.dataset_id,
        "name": given.dataset_name,
        "version": given.dataset_version,
        "mode": given.mode,
        "path": path,
        "definition": _describe_for_job(given, path),
    }
    variables = {
        # For the command line, independent of the input's name.
        f"TRAINMASTER_DATASET_{given.name}": given.dataset_id,
        **_variables(given.name, given.dataset_id if given.mode == "direct" else path),
    }
    return merge([plan, DataPlan(variables=variables, inputs={given.name: facts})])


def plan_output(given: DatasetOutput, stores: Mapping[str, DatastoreRecord], places: Places) -> DataPlan:
    """Plan one dataset that the script writes."""
    binding = DataBinding(
        given.name, given.datastore, output_path(given, places.run.name), "upload", given.source, given.overwrite
    )
    store = store_of(binding, stores)
    root = local_folder(store.url)
    if given.mode == "mount" and root is not None:
        plan = plan_written_folder(replace(binding, overwrite=False), root, store, places)
    elif given.mode == "mount":
        plan = plan_reference(replace(binding, overwrite=True), store, places)
    else:
        plan = plan_reference(binding, store, places)
    if given.globs:
        plan = replace(plan, uploads=tuple(replace(upload, globs=given.globs) for upload in plan.uploads))
    path = plan.variables[PREFIX + given.name]
    return merge([plan, DataPlan(variables=_variables(given.name, path), outputs={given.name: path})])


def output_path(given: DatasetOutput, run_id: str) -> str:
    """The path of a run's output in its store."""
    return given.path.replace("{run-id}", run_id).replace("{output-name}", given.name)


def with_lists(plan: DataPlan, inputs: Sequence[DatasetInput], outputs: Sequence[DatasetOutput]) -> DataPlan:
    """Add the variables that list all datasets of a run."""
    lists = {}
    if inputs:
        lists["AZUREML_DATASET_ENVIRONMENT_VARS"] = ",".join(f"{each.name}:{each.mode}" for each in inputs)
    if outputs:
        lists["AZUREML_DATASET_FILE_OUTPUTS"] = ",".join(each.name for each in outputs)
    return merge([plan, DataPlan(variables=lists)])


def _plan_files(given: DatasetInput, records: Mapping[str, DatastoreRecord | None], places: Places) -> DataPlan:
    """Plan how the files become visible, and the variable with their path."""
    sources = given.definition.sources
    # The steps of a tabular dataset select rows, so it needs all files.
    steps = given.definition.steps if given.definition.kind == "file" else ()
    first = sources[0]
    binding = DataBinding(given.name, first.store, "", "download", given.path_on_compute)
    stores = {name: record for name, record in records.items() if record is not None}
    whole = find_single_path([to_plain(source) for source in sources], steps, _roots(records))
    if whole is not None:
        return _plan_whole(given, binding, Path(whole), places)
    path = path_in_place(to_plain(first))
    is_one = len(sources) == 1 and not steps
    if is_one and first.store and not is_pattern(path):
        return plan_reference(replace(binding, path=without_all(path)), stores[first.store], places)
    own = own_place(binding, places)
    plan = DataPlan(
        gathers=(Gather(sources, str(own), steps, given.mode == "download"),),
        stores=stores,
        outside=tuple(str(root) for root in _roots(records).values() if given.mode != "download" and root != Path("/")),
    )
    is_file = is_one and is_web(to_plain(first))
    seen = own / PurePosixPath(path.partition("?")[0]).name if is_file else own
    return show_at(binding, seen, places, plan)


def _plan_whole(given: DatasetInput, binding: DataBinding, path: Path, places: Places) -> DataPlan:
    if not path.exists():
        raise DatastoreException(
            f"{printable(path)} does not exist",
            cause=f"Input {given.name!r} is a dataset of these files.",
            hint="Upload them first, or correct the path of the dataset.",
        )
    if given.mode != "download":
        return show_at(binding, path, places, DataPlan())
    own = own_place(binding, places)
    gather = Gather((DataSource(str(path)),), str(own), copy=True)
    return show_at(binding, own / path.name if path.is_file() else own, places, DataPlan(gathers=(gather,)))


def _describe_for_job(given: DatasetInput, path: str) -> dict[str, Any]:
    """The dataset's definition for the job: with the path where its files are visible, and file steps already done."""
    definition: dict[str, Any] = to_plain(given.definition)
    steps = definition["steps"] if given.definition.kind == "tabular" else []
    return {**definition, "sources": [{"path": path}], "steps": steps}


def _variables(name: str, value: str) -> dict[str, str]:
    return {each: value for each in (name, name.upper()) if each not in _NEEDED}


def _roots(records: Mapping[str, DatastoreRecord | None]) -> dict[tuple[str, str], Path]:
    """The folders of the stores on this machine."""
    roots = {("local", ""): Path("/")}
    for name, record in records.items():
        folder = local_folder(record.url) if record is not None else None
        if folder is not None:
            roots["store", name] = folder
    return roots


def _store(name: str, store: str, stores: Mapping[str, DatastoreRecord]) -> DatastoreRecord | None:
    if not store:
        return None
    if store not in stores:
        raise DatastoreException(
            f"The workspace has no datastore {store!r}",
            cause=f"Input {name!r} is a dataset of files in it.",
            hint=f"It has: {', '.join(sorted(stores))}." if stores else "Register it with Datastore.register.",
        )
    return stores[store]
