"""What the workspace is asked about models: one wording for jobs and for programs outside of them.

`call` is how the side that asks reaches the workspace; answers are plain data.
"""

from trainmaster.job.errors import ModelNotFoundException, WebserviceException
from trainmaster.job.script.model_rules import as_filter, check_name, checked_labels, checked_version, split_id
from trainmaster.job.script.resource_configuration import as_plain


def find(call, name, model_id, version, tags, properties, run_id, framework):
    """The newest model for which all of it is true."""
    name, version = _meant(name, model_id, version)
    found = matching(
        call,
        name=name,
        version=version,
        run_id=run_id,
        framework=framework,
        tags=tags,
        properties=properties,
        latest=True,
    )
    if found:
        return found[0]
    # Says what there is instead; where there is a model of that name and version, the rest was not true.
    call("models.get", name=name, version=version)
    raise ModelNotFoundException("ModelNotFound: no version of model {!r} has all that was asked for".format(name))


def _meant(name, model_id, version):
    version = checked_version(version)
    if model_id is not None:
        name, of_id = split_id(model_id)
        if version not in (None, of_id):
            raise ModelNotFoundException("ModelNotFound: model {} is not version {}".format(model_id, version))
        version = checked_version(of_id)
    if name is None:
        raise WebserviceException("a model is found by its name or its id: neither was given")
    return check_name(name), version


def matching(call, tags=None, properties=None, **query):
    """The models for which all of it is true, newest first."""
    query.update(tags=as_filter(tags, "tags"), properties=as_filter(properties, "properties"))
    return call("models.list", query=query)


def changes(tags, description, sample_input, sample_output, resources):
    """What is to be set of a model: that which was given. The samples are ids of datasets."""
    said = {
        "tags": None if tags is None else checked_labels(tags, "tags"),
        "description": None if description is None else str(description),
        "sample_input": sample_input or None,
        "sample_output": sample_output or None,
        "resources": as_plain(resources) or None,
    }
    return {key: value for key, value in said.items() if value is not None}
