"""What the workspace is asked about models, in jobs and outside of them.

`call` sends an operation to the workspace; answers are plain data.
"""

from trainmaster.job.errors import ModelNotFoundException, WebserviceException
from trainmaster.job.script.model_rules import as_filter, check_known_name, check_labels, check_version, split_id
from trainmaster.job.script.resource_configuration import to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from trainmaster.job.script.resource_configuration import ResourceConfiguration

    Call = Callable[..., Any]


def find(
    call: "Call",
    name: "str | None",
    model_id: "str | None",
    version: "int | str | None",
    tags: "Any",
    properties: "Any",
    run_id: "str | None",
    framework: "str | None",
) -> "Any":
    """The newest model that matches all of it."""
    name, number = _name_and_version(name, model_id, version)
    found = list_matching(
        call,
        name=name,
        version=number,
        run_id=run_id,
        framework=framework,
        tags=tags,
        properties=properties,
        latest=True,
    )
    if found:
        return found[0]
    # Raises an error that lists the models or versions there are, unless only the other filters did not match.
    call("models.get", name=name, version=number)
    raise ModelNotFoundException("ModelNotFound: no version of model {!r} matches all filters".format(name))


def _name_and_version(
    name: "str | None", model_id: "str | None", version: "int | str | None"
) -> "tuple[str, int | None]":
    number = check_version(version)
    if model_id is not None:
        name, number_of_id = split_id(model_id)
        if number not in (None, number_of_id):
            raise ModelNotFoundException("ModelNotFound: model {} is not version {}".format(model_id, number))
        number = check_version(number_of_id)
    if name is None:
        raise WebserviceException("a model is found by its name or its id: neither was given")
    return check_known_name(name), number


def list_matching(call: "Call", tags: "Any" = None, properties: "Any" = None, **query: "Any") -> "list[Any]":
    """The models that match all of it, newest first."""
    query.update(tags=as_filter(tags, "tags"), properties=as_filter(properties, "properties"))
    found: "list[Any]" = call("models.list", query=query)
    return found


def list_changes(
    tags: "Any",
    description: "str | None",
    sample_input: str,
    sample_output: str,
    resources: "ResourceConfiguration | None",
) -> "dict[str, Any]":
    """The fields of a model to be set: those that were given. The samples are ids of datasets."""
    given = {
        "tags": None if tags is None else check_labels(tags, "tags"),
        "description": None if description is None else str(description),
        "sample_input": sample_input or None,
        "sample_output": sample_output or None,
        "resources": to_plain(resources) or None,
    }
    return {key: value for key, value in given.items() if value is not None}
