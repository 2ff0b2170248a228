"""Which channels are used, and as which addresses."""

from __future__ import annotations

import pytest

from trainmaster.environments.conda_channels import SETTING, address, channels, condarc_files, without_secrets
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.job_spec import EnvironmentSpec

FORGE = "https://conda.anaconda.org/conda-forge"


@pytest.fixture
def environ(tmp_path):
    return {"HOME": str(tmp_path), "CONDARC": str(tmp_path / "chosen")}


def of(environ, *given):
    return channels(EnvironmentSpec(conda_channels=given), environ)


def test_the_default(environ):
    assert of(environ) == (FORGE,)


def test_the_order_of_places(environ, tmp_path):
    (tmp_path / ".condarc").write_text("channels: [home]\n")
    assert of(environ) == ("https://conda.anaconda.org/home",)
    (tmp_path / "chosen").write_text("channels: [chosen]\n")
    assert of(environ) == ("https://conda.anaconda.org/chosen",)
    environ[SETTING] = "one, file:///two three/label/dev"
    assert of(environ) == (
        "https://conda.anaconda.org/one",
        "file:///two",
        "https://conda.anaconda.org/three/label/dev",
    )
    assert of(environ, "given", "given/") == ("https://conda.anaconda.org/given",)


def test_names_stand_for_addresses(environ, tmp_path):
    (tmp_path / ".condarc").write_text(
        "channel_alias: https://mirror/conda/\ndefault_channels: [https://mirror/main]\n"
    )
    assert of(environ, "forge", "defaults", "https://elsewhere/x/") == (
        "https://mirror/conda/forge",
        "https://mirror/main",
        "https://elsewhere/x",
    )


def test_defaults_are_those_of_conda(environ):
    assert of(environ, "defaults")[0] == "https://repo.anaconda.com/pkgs/main"


@pytest.mark.parametrize("text", ["", "just words", "- a list", "channels: text"])
def test_condarc_without_channels(environ, tmp_path, text):
    (tmp_path / ".condarc").write_text(text)
    assert of(environ) == (FORGE,)


@pytest.mark.parametrize("content", [b"channels: [", b"\xff\xfe\x00"])
def test_condarc_that_cannot_be_read(environ, tmp_path, content):
    (tmp_path / ".condarc").write_bytes(content)
    with pytest.raises(EnvironmentException, match=r"conda's settings in .*\.condarc cannot be read"):
        of(environ)


@pytest.mark.parametrize(
    ("channel", "found"),
    [
        ("/srv/my channel", "file:///srv/my%20channel"),
        ("~/channel/", "file:///home/me/channel"),
        ("http://host/channel/", "http://host/channel"),
        ("pytorch", "https://alias/pytorch"),
    ],
)
def test_addresses(channel, found):
    assert address(channel, "https://alias", {"HOME": "/home/me"}) == found


@pytest.mark.parametrize("channel", ["./here", "../there", " ", "."])
def test_no_address(channel):
    with pytest.raises(EnvironmentException, match="is neither a name nor a URL"):
        address(channel, "https://alias", {})


def test_secrets_are_not_shown():
    text = "could not read https://user:pw@host/t/tk-1/channel and https://open/x"
    assert without_secrets(text) == "could not read https://host/channel and https://open/x"


def test_files_of_conda():
    files = [str(file) for file in condarc_files({"HOME": "/h", "XDG_CONFIG_HOME": "/x"})]
    assert files == ["/etc/conda/.condarc", "/x/conda/.condarc", "/h/.conda/.condarc", "/h/.condarc"]
