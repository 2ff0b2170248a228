"""The members of v1 that people use, with their parameters in v1's order and with v1's defaults."""

from __future__ import annotations

import inspect

import pytest

from trainmaster import CondaDependencies, Environment, Experiment, Run, ScriptRun, Workspace
from trainmaster.compute import ComputeTarget

METHODS = {
    Workspace: """
        from_config(path=None, auth=None)
        create(name, auth=None, subscription_id=None, resource_group=None, location=None, create_resource_group=True,\
 sku='basic', tags=None, friendly_name=None)
        get(name, auth=None, subscription_id=None, resource_group=None, location=None, cloud='AzureCloud', id=None)
        write_config(path=None, file_name=None)
        get_details()
        get_mlflow_tracking_uri()
        get_default_compute_target(type)
        get_default_datastore()
        set_default_datastore(name)
        get_run(run_id)
    """,
    Experiment: """
        submit(config, tags=None)
        start_logging()
        archive()
        reactivate(new_name=None)
        tag(key, value=None)
        set_tags(tags)
        remove_tags(tags)
        refresh()
        list(workspace, experiment_name=None, view_type='ActiveOnly', tags=None)
        delete(workspace, experiment_id)
        get_runs(type=None, tags=None, properties=None, include_children=False)
    """,
    Run: """
        get_context(allow_offline=True, used_for_context_manager=False)
        get_submitted_run()
        get_secret(name)
        get_secrets(secrets)
        add_type_provider(runtype, run_factory)
        list(experiment, type=None, tags=None, properties=None, status=None, include_children=False)
        list_by_compute(compute, type=None, tags=None, properties=None, status=None)
        get(workspace, run_id)
        submit_child(config, tags=None)
        wait_for_completion(show_output=False, wait_post_processing=False, raise_on_error=True)
        clean()
        get_all_logs(destination=None)
        get_details_with_logs()
        get_status()
        get_detailed_status()
        get_environment()
        get_details()
        get_children(recursive=False, tags=None, properties=None, type=None, status=None)
        get_metrics(name=None, recursive=False, run_type=None, populate=False)
        start()
        complete()
        fail(error_details=None, error_code=None)
        cancel()
        flush(timeout_seconds=300)
        child_run(name=None, run_id=None, outputs=None)
        create_children(count=None, tag_key=None, tag_values=None)
        tag(key, value=None)
        set_tags(tags)
        get_tags()
        remove_tags(tags)
        add_properties(properties)
        get_properties()
        log(name, value, description='', step=None)
        log_list(name, value, description='')
        log_row(name, description=None)
        log_table(name, value, description='')
        log_confusion_matrix(name, value, description='')
        log_accuracy_table(name, value, description='')
        log_residuals(name, value, description='')
        log_predictions(name, value, description='')
        log_image(name, path=None, plot=None, description='')
        upload_file(name, path_or_stream, datastore_name=None)
        upload_folder(name, path, datastore_name=None)
        upload_files(names, paths, return_artifacts=False, timeout_seconds=None, datastore_name=None)
        get_file_names()
        download_file(name, output_file_path=None)
        download_files(prefix=None, output_directory=None, output_paths=None, batch_size=100, append_prefix=True,\
 timeout_seconds=None)
        take_snapshot(file_or_folder_path)
        restore_snapshot(snapshot_id=None, path=None)
        get_snapshot_id()
        register_model(model_name, model_path=None, tags=None, properties=None, model_framework=None,\
 model_framework_version=None, description=None, datasets=None, sample_input_dataset=None, sample_output_dataset=None,\
 resource_configuration=None)
    """,
    ComputeTarget: """
        create(workspace, name, provisioning_configuration)
        list(workspace)
        wait_for_completion(show_output=False)
        get_status()
        delete()
        detach()
    """,
    Environment: """
        register(workspace)
        label(workspace, name, version, labels)
        clone(new_name)
        get(workspace, name, version=None, label=None)
        list(workspace)
        from_dockerfile(name, dockerfile, conda_specification=None, pip_requirements=None)
        from_docker_image(name, image, container_registry=None, conda_specification=None, pip_requirements=None)
        from_docker_build_context(name, docker_build_context)
        from_conda_specification(name, file_path)
        from_existing_conda_environment(name, conda_environment_name)
        from_pip_requirements(name, file_path, pip_version=None)
        add_private_pip_wheel(workspace, file_path, exist_ok=False)
        get_image_details(workspace)
        build(workspace, image_build_compute=None)
        build_local(workspace, platform=None)
        save_to_directory(path, overwrite=False)
        load_from_directory(path)
    """,
    CondaDependencies: """
        create(pip_indexurl=None, pip_packages=None, conda_packages=None, python_version=None, pin_sdk_version=True)
        merge_requirements(requirements)
        sdk_origin_url()
        set_pip_index_url(index_url)
        get_default_number_of_packages()
        get_python_version()
        set_python_version(version)
        add_channel(channel)
        remove_channel(channel)
        add_conda_package(conda_package)
        remove_conda_package(conda_package)
        add_pip_package(pip_package)
        set_pip_option(pip_option)
        remove_pip_option(pip_option)
        remove_pip_package(pip_package)
        set_pip_requirements(pip_requirements)
        add_cntk_package(core_type='cpu')
        add_tensorflow_pip_package(core_type='cpu', version=None)
        add_tensorflow_conda_package(core_type='cpu', version=None)
        save_to_file(base_directory, conda_file_path=None)
        save(path=None)
        serialize_to_string()
        as_dict()
    """,
}
PROPERTIES = {
    Workspace: "name subscription_id resource_group location sku tags compute_targets datastores experiments "
    "environments images models webservices",
    Experiment: "workspace workspace_object name id archived_time tags",
    Run: "id name display_name description type number parent status tags properties experiment",
    ScriptRun: "id status",
    CondaDependencies: "conda_channels conda_packages pip_packages pip_options",
}


def v1_parameters(text):
    """The names and defaults in `name(a, b=1)`."""
    name, _, rest = text.strip().partition("(")
    scope: dict[str, object] = {}
    exec(f"def function({rest}: pass", scope)
    return name, list(inspect.signature(scope["function"]).parameters.values())


@pytest.mark.parametrize(
    ("owner", "text"),
    [(owner, line.strip()) for owner, lines in METHODS.items() for line in lines.strip().splitlines()],
    ids=lambda value: value.partition("(")[0] if isinstance(value, str) else value.__name__,
)
def test_methods(owner, text):
    name, wanted = v1_parameters(text)
    ours = [each for each in inspect.signature(getattr(owner, name)).parameters.values() if each.name != "self"]
    positional = [each for each in ours if each.kind is each.POSITIONAL_OR_KEYWORD]
    takes_any = any(each.kind is each.VAR_KEYWORD for each in ours)
    assert [each.name for each in positional[: len(wanted)]] == [each.name for each in wanted]
    assert [each.default for each in positional[: len(wanted)]] == [each.default for each in wanted]
    # What we have beyond v1 must not be asked for.
    assert takes_any or all(each.default is not each.empty for each in positional[len(wanted) :])


@pytest.mark.parametrize(
    ("owner", "name"), [(owner, name) for owner, names in PROPERTIES.items() for name in names.split()]
)
def test_properties(owner, name):
    assert isinstance(inspect.getattr_static(owner, name), property)
    assert inspect.getdoc(getattr(owner, name))


def test_constructors():
    def names(owner):
        return [each for each in inspect.signature(owner.__init__).parameters if each != "self"]

    assert names(Workspace)[:6] == ["subscription_id", "resource_group", "workspace_name", "auth", "sku", "tags"]
    assert names(Experiment)[:2] == ["workspace", "name"]
    assert names(Run)[:3] == ["experiment", "run_id", "outputs"]
    assert names(ComputeTarget)[:2] == ["workspace", "name"]
