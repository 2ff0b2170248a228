import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.store_paths import check_name, compute_path, join, printable, store_path


@pytest.mark.parametrize(
    ("given_path", "normal"),
    [
        (None, ""),
        ("", ""),
        (".", ""),
        ("./", ""),
        ("/", ""),
        ("//", ""),
        ("/mnist", "mnist"),
        ("mnist/", "mnist"),
        ("./a//b/./c", "a/b/c"),
        ("a/../b", "b"),
        ("a/..", ""),
        ("...", "..."),
        ("..a/b", "..a/b"),
        ("~/x", "~/x"),
        ("a b\nc", "a b\nc"),
        ("..\\x", "..\\x"),
    ],
)
def test_store_path(given_path, normal):
    assert store_path(given_path) == normal


@pytest.mark.parametrize("path", ["..", "../x", "/..", "/../etc/passwd", "a/../../b", "./..", "a/b/../../../c", "a\0b"])
def test_store_path_refuses(path):
    with pytest.raises(UserErrorException):
        store_path(path)


@pytest.mark.parametrize("path", [3, b"x", ["x"]])
def test_store_path_is_text(path):
    with pytest.raises(UserErrorException, match="must be text"):
        store_path(path)


@given(st.text(alphabet="./ab~\\\n", max_size=20))
def test_store_path_stays_inside_or_is_refused(text):
    try:
        path = store_path(text)
    except UserErrorException:
        return
    assert not posixpath.isabs(path)
    assert ".." not in path.split("/")
    assert store_path(path) == path


@pytest.mark.parametrize(
    ("given_path", "normal"),
    [
        (None, ""),
        ("", ""),
        ("data/", "data"),
        ("./data/x", "data/x"),
        ("/mnt//d/", "/mnt/d"),
        ("//mnt", "/mnt"),
    ],
)
def test_compute_path(given_path, normal):
    assert compute_path(given_path) == normal


@pytest.mark.parametrize("path", ["..", "../x", "a/../../x", ".", "./", "a\0"])
def test_compute_path_refuses(path):
    with pytest.raises(UserErrorException):
        compute_path(path)


@pytest.mark.parametrize("name", ["a", "workspaceblobstore", "A_1", "0", "x" * 255])
def test_names(name):
    assert check_name(name, "datastore") == name


@pytest.mark.parametrize(
    "name", ["", "../x", "a\n", "\n", "a b", "a-b", "a/b", ".", "..", "x" * 256, "é", "٣", "a\0", None, 3]
)
def test_names_refused(name):
    with pytest.raises(UserErrorException, match="cannot be the name of a datastore"):
        check_name(name, "datastore")


def test_join_leaves_empty_parts_out():
    assert join("", "a", "", "b/c") == "a/b/c"
    assert join("", "") == ""


def test_shown_is_one_printable_line():
    assert printable("a\nb\udcff\x1b[31m") == "a\\nb\\udcff\\x1b[31m"
    assert printable("größe.txt") == "größe.txt"
