"""Plans the data of a run: which paths the script sees, and what to link and copy for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.store_paths import printable
from trainmaster.shared.job_spec import DataBinding, DatasetInput, DatasetOutput
from trainmaster.shared.records import DatastoreRecord
from trainmaster.storage.dataplan import DataPlan, Link, Transfer, read_plan, write_plan
from trainmaster.storage.dataset_plan import plan_input, plan_output, with_lists
from trainmaster.storage.places import PREFIX, Places, merge, store_of
from trainmaster.storage.reference_plan import plan_reference

__all__ = ["DataPlan", "Link", "Transfer", "plan_data", "read_plan", "write_plan"]


def plan_data(
    bindings: Iterable[DataBinding],
    stores: Mapping[str, DatastoreRecord],
    run_folder: Path,
    code_folder: Path,
    inputs: Sequence[DatasetInput] = (),
    outputs: Sequence[DatasetOutput] = (),
) -> DataPlan:
    """Plan the data of a run. Inspects folder stores but changes nothing."""
    places = Places(run_folder.absolute(), code_folder.absolute())
    plans = [
        *(plan_reference(binding, store_of(binding, stores), places) for binding in dict.fromkeys(bindings)),
        *(plan_input(each, stores, places) for each in inputs),
        *(plan_output(each, stores, places) for each in outputs),
    ]
    names = [name for plan in plans for name in plan.variables if name.startswith(PREFIX)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise UserErrorException(
            f"Two data references of the run have the same name: {twice.removeprefix(PREFIX)}",
            hint="Use a different data_reference_name for each.",
        )
    whole = with_lists(merge(plans), inputs, outputs)
    _check_apart([*whole.links, *whole.outer_links])
    return whole


def _check_apart(links: Sequence[Link]) -> None:
    """Refuse a link below another one: it would be created inside the store that the other points to."""
    paths = sorted(Path(link.path) for link in links)
    for upper, lower in pairwise(paths):
        if lower.is_relative_to(upper):
            raise UserErrorException(
                f"Two data references of the run overlap: {printable(upper)} and {printable(lower)}",
                hint="Use a different path_on_compute for each, none inside another.",
            )
