"""The lock of a package: hashes of files that no index told."""

from __future__ import annotations

import hashlib

import pytest

from trainmaster.dispatcher.services.package_requirements import with_hashes_of_files
from trainmaster.environments.lock import Pin
from trainmaster.job.errors import WebserviceException


def test_files_of_a_folder_are_hashed(tmp_path):
    for name in ("My_Lib-2.0+cpu-py3-none-any.whl", "my_lib-2.0-py3-none-any.whl", "my_lib-2.0+cpu.tar.gz"):
        (tmp_path / name).write_bytes(name.encode())
    pins = [Pin("numpy", "2.4.6", "https://index.example/simple"), Pin("my-lib", "2.0+cpu", f"file://{tmp_path}")]
    found = with_hashes_of_files("numpy==2.4.6 \\\n    --hash=sha256:ab\nmy-lib==2.0+cpu\n", pins)
    wheel = hashlib.sha256(b"My_Lib-2.0+cpu-py3-none-any.whl").hexdigest()
    other = hashlib.sha256(b"my_lib-2.0-py3-none-any.whl").hexdigest()
    assert found.local == ("my-lib==2.0+cpu",)
    assert found.text.startswith("numpy==2.4.6 \\\n    --hash=sha256:ab\nmy-lib==2.0+cpu \\\n    --hash=sha256:")
    assert wheel in found.text and other not in found.text


@pytest.mark.parametrize("source", ["https://flat.example/wheels", "", "file:///no/such/folder"])
def test_what_has_no_hash_anywhere_is_refused(source):
    with pytest.raises(WebserviceException, match=r"my-lib==1.0 cannot be locked"):
        with_hashes_of_files("my-lib==1.0\n", [Pin("my-lib", "1.0", source)])
