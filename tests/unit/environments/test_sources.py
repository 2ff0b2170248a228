"""pip's settings, read as pip reads them, and what uv is told."""

from __future__ import annotations

import os

import pytest

from trainmaster.environments.sources import config_files, pip_settings, source_variables, uv_options, uv_variables


@pytest.fixture
def conf(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_files_variables_and_sections(conf):
    machine = conf("machine", "[global]\nindex-url = https://machine\ntimeout = 5\n[install]\nfind_links = /machine\n")
    user = conf("user", "[global]\nindex_url = https://user\nfind-links = /user\n[freeze]\nindex-url = https://no\n")
    assert pip_settings({}, [machine, user]) == {
        "index-url": "https://user",
        "timeout": "5",
        # The section counts before the file.
        "find-links": "/machine",
    }
    settings = pip_settings({"PIP_INDEX_URL": "https://shell", "PIP_FIND_LINKS": "", "OTHER": "x"}, [machine, user])
    assert settings["index-url"] == "https://shell"
    assert settings["find-links"] == "/machine"


@pytest.mark.parametrize("text", ["no section\n", "[global\n", "[global]\nx = 1\nx = 2\n", "\ufeff["])
def test_broken_file_does_not_hide_the_others(conf, text):
    good = conf("good", "[global]\nindex-url = https://good\n")
    assert pip_settings({}, [conf("broken", text), good]) == {"index-url": "https://good"}


def test_file_that_is_not_text(tmp_path):
    (tmp_path / "bytes").write_bytes(b"[global]\nx = \xff\xfe\n")
    assert pip_settings({}, [tmp_path / "bytes", tmp_path / "missing"]) == {}


def test_percent_signs_stay(conf):
    file = conf("pip.conf", "[global]\nindex-url = https://me:p%40ss@host/simple\n")
    assert pip_settings({}, [file])["index-url"] == "https://me:p%40ss@host/simple"


def test_which_files(tmp_path, conf):
    home = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": "/first:/second"}
    files = [str(path) for path in config_files(home)]
    assert files[:3] == ["/first/pip/pip.conf", "/second/pip/pip.conf", "/etc/pip.conf"]
    assert files[3:5] == [f"{tmp_path}/.pip/pip.conf", f"{tmp_path}/.config/pip/pip.conf"]
    assert config_files({**home, "PIP_CONFIG_FILE": os.devnull}) == []
    chosen = conf("chosen", "")
    own = [str(path) for path in config_files({**home, "PIP_CONFIG_FILE": str(chosen)})]
    # As in pip: a chosen file stands in for the user's.
    assert own[-1] == str(chosen)
    assert f"{tmp_path}/.pip/pip.conf" not in own
    assert f"{tmp_path}/.pip/pip.conf" in map(str, config_files({**home, "PIP_CONFIG_FILE": "/no/such/file"}))
    elsewhere = [str(path) for path in config_files({**home, "XDG_CONFIG_HOME": "/configuration"})]
    assert "/configuration/pip/pip.conf" in elsewhere


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, []),
        ({"find-links": "/a /b"}, ["--find-links", "/a", "--find-links", "/b"]),
        ({"no-index": "1"}, ["--no-index"]),
        ({"no-index": "True"}, ["--no-index"]),
        ({"no-index": "0"}, []),
        ({"pre": "yes"}, ["--prerelease", "allow"]),
        ({"trusted-host": "a b"}, ["--allow-insecure-host", "a", "--allow-insecure-host", "b"]),
        ({"constraint": "/c.txt"}, ["--constraint", "/c.txt"]),
        ({"timeout": "5", "cert": "/c.pem"}, []),
        ({"index-url": "https://a", "extra-index-url": "https://b"}, []),
    ],
)
def test_options(settings, options):
    assert uv_options(settings) == options


@pytest.mark.parametrize(
    ("settings", "environ", "variables"),
    [
        ({"index-url": "https://a"}, {}, {"UV_DEFAULT_INDEX": "https://a"}),
        ({"index-url": "https://a"}, {"UV_DEFAULT_INDEX": "https://u"}, {"UV_DEFAULT_INDEX": "https://u"}),
        ({"index-url": "https://a"}, {"UV_INDEX_URL": "https://u"}, {"UV_INDEX_URL": "https://u"}),
        (
            {"extra-index-url": "\nhttps://a\nhttps://b"},
            {"UV_INDEX": "https://u"},
            {"UV_INDEX": "https://u https://a https://b", "UV_INDEX_STRATEGY": "unsafe-best-match"},
        ),
    ],
)
def test_indexes_are_variables_since_command_lines_can_be_read_by_everybody(settings, environ, variables):
    assert uv_variables(settings, environ) == variables


def test_certificates():
    assert uv_variables({"cert": "/c.pem"}, {"A": "1"}) == {"A": "1", "SSL_CERT_FILE": "/c.pem"}
    assert uv_variables({"cert": "/c.pem"}, {"SSL_CERT_FILE": "/own.pem"}) == {"SSL_CERT_FILE": "/own.pem"}
    assert uv_variables({}, {}) == {}


def test_what_travels_with_a_submit():
    environ = {"PIP_INDEX_URL": "a", "UV_INDEX": "b", "HTTPS_PROXY": "c", "SSL_CERT_FILE": "d", "AWS_SECRET": "e"}
    assert set(source_variables(environ)) == set(environ) - {"AWS_SECRET"}
