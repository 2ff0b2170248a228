import re
from pathlib import Path

import pytest

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.datastores import DataPath, DataPathComputeBinding, DataReference
from trainmaster.shared.job_spec import DataBinding


def test_the_root_has_the_name_of_the_store(store):
    for path in (None, "", ".", "./", "/"):
        assert str(store.path(path)) == "$AZUREML_DATAREFERENCE_workspaceblobstore"
    assert str(store.as_mount()) == "$AZUREML_DATAREFERENCE_workspaceblobstore"


def test_a_sub_path_has_a_fresh_name(store):
    first, second = store.path("mnist"), store.path("mnist")
    assert re.fullmatch(r"\$AZUREML_DATAREFERENCE_[0-9a-f]{32}", str(first))
    assert first.data_reference_name != second.data_reference_name


def test_a_given_name_is_kept_through_modes(store):
    reference = store.path("/mnist/", data_reference_name="digits")
    assert str(reference) == repr(reference) == "$AZUREML_DATAREFERENCE_digits"
    download = reference.as_download("data", overwrite=True)
    assert str(download) == str(reference)
    assert download.to_binding() == DataBinding(
        "digits", "workspaceblobstore", "mnist", "download", "data", overwrite=True
    )
    assert download.as_mount().to_binding().mode == "mount"
    assert reference.as_upload("out/").to_binding() == DataBinding(
        "digits", "workspaceblobstore", "mnist", "upload", "out"
    )
    assert reference.mode == "mount"


def test_a_narrower_reference(store):
    inner = store.path("a").path("b/./c", "inner")
    assert (inner.path_on_datastore, inner.data_reference_name) == ("a/b/c", "inner")
    with pytest.raises(UserErrorException, match="leaves"):
        store.path("a").path("../b")
    download = store.path("a").as_download("data", overwrite=True).path("b")
    assert (download.mode, download.path_on_compute, download.overwrite) == ("download", "data", True)


@pytest.mark.parametrize("mode", ["", "Mount", "direct", None, "hdfs"])
def test_unknown_modes(store, mode):
    with pytest.raises(UserErrorException, match="data mode"):
        DataReference(store, mode=mode)
    with pytest.raises(UserErrorException, match="data mode"):
        DataPathComputeBinding(mode)


@pytest.mark.parametrize("name", ["../x", "a b", "a-b", "a\n", "a/b", "$X"])
def test_names_that_no_variable_can_have(store, name):
    with pytest.raises(UserErrorException, match="data reference"):
        store.path("x", name)


def test_what_is_no_datastore():
    for other in ("workspaceblobstore", Path("x"), None):
        with pytest.raises(UserErrorException, match="needs a datastore"):
            DataReference(other)


def test_a_bare_datastore_is_mounted_whole(store):
    assert store.to_binding() == DataBinding("workspaceblobstore", "workspaceblobstore")


def test_whole_store_in_other_modes(store):
    assert store.as_download().to_binding().mode == "download"
    assert store.as_upload("out").to_binding() == DataBinding(
        "workspaceblobstore", "workspaceblobstore", "", "upload", "out"
    )


def test_to_config(store):
    config = store.path("mnist", "digits").as_download("data").to_config()
    assert config.datastore_name == "workspaceblobstore"
    assert (config.mode, config.path_on_datastore, config.path_on_compute) == ("download", "mnist", "data")
    assert config.overwrite is False
    config.overwrite = True
    assert config.to_binding("digits").overwrite is True


def test_path_and_binding_make_a_reference(store):
    path = DataPath(store, "/mnist", name="digits")
    assert (path.datastore_name, path.path_on_datastore) == ("workspaceblobstore", "mnist")
    binding = DataPathComputeBinding("download", "data", overwrite=True)
    expected = DataBinding("digits", "workspaceblobstore", "mnist", "download", "data", overwrite=True)
    assert path.create_data_reference(datapath_compute_binding=binding).to_binding() == expected
    assert binding.create_data_reference(datapath=path).to_binding() == expected
    assert DataReference.create("digits", path, binding).to_binding() == expected
    assert path.create_data_reference("other").to_binding().mode == "mount"


def test_a_reference_makes_path_and_binding(store):
    reference = store.path("mnist", "digits").as_upload("out", overwrite=True)
    path = DataPath.create_from_data_reference(reference)
    binding = DataPathComputeBinding.create_from_data_reference(reference)
    assert DataReference.create("digits", path, binding).to_binding() == reference.to_binding()


def test_a_path_without_store(store):
    assert DataPath().datastore_name is None
    with pytest.raises(UserErrorException, match="datapath"):
        DataPath().create_data_reference()
    with pytest.raises(UserErrorException, match="datapath"):
        DataPathComputeBinding().create_data_reference("x")
