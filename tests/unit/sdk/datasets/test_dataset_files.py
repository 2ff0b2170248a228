"""Which files a dataset has, and what they are called."""

import pytest

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.dataset_files import find_files, find_single_path, local_files, matcher, select
from trainmaster.job.script.dataset_sources import sources_of
from trainmaster.job.script.dataset_views import check_sources, describe_sources
from trainmaster.job.script.storage import Storage, StoredFile


class Tree(Storage):
    """A storage that is a list of paths."""

    def __init__(self, *paths):
        self.paths = paths

    def list(self, prefix):
        return [StoredFile(p, 1) for p in sorted(self.paths) if not prefix or p == prefix or p.startswith(prefix + "/")]


ANIMALS = Tree("animals/dog/1.jpg", "animals/dog/old/2.jpg", "animals/cat/1.jpg", "animals/notes.txt", "dogs.txt")


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("animals", ["cat/1.jpg", "dog/1.jpg", "dog/old/2.jpg", "notes.txt"]),
        ("animals/**", ["cat/1.jpg", "dog/1.jpg", "dog/old/2.jpg", "notes.txt"]),
        ("/animals/", ["cat/1.jpg", "dog/1.jpg", "dog/old/2.jpg", "notes.txt"]),
        ("animals/*", ["notes.txt"]),
        ("animals/*/*.jpg", ["cat/1.jpg", "dog/1.jpg"]),
        ("animals/**/*.jpg", ["cat/1.jpg", "dog/1.jpg", "dog/old/2.jpg"]),
        ("animals/d?g/**", ["dog/1.jpg", "dog/old/2.jpg"]),
        ("animals/[!d]*/1.jpg", ["cat/1.jpg"]),
        ("animals/notes.txt", ["notes.txt"]),
        ("**/*.txt", ["animals/notes.txt", "dogs.txt"]),
        ("", ["animals/cat/1.jpg", "animals/dog/1.jpg", "animals/dog/old/2.jpg", "animals/notes.txt", "dogs.txt"]),
        ("nothing", []),
        ("anim", []),
    ],
)
def test_names_begin_after_what_was_fixed(pattern, names):
    found = find_files([{"store": "s", "path": pattern}], lambda key: ANIMALS)
    assert [file.name for file in found] == names


def test_several_sources_keep_their_order_and_each_file_once():
    sources = [{"store": "s", "path": "animals/dog"}, {"store": "s", "path": "animals/**/1.jpg"}]
    found = find_files(sources, lambda key: ANIMALS)
    assert [file.name for file in found] == ["dog/1.jpg", "dog/old/2.jpg", "cat/1.jpg"]


def test_sources_in_several_storages_keep_the_storage():
    sources = [{"store": "one", "path": "animals/cat"}, {"path": "https://example.com/web/x.csv?sig=secret"}]
    trees = {("store", "one"): ANIMALS, ("web", "https://example.com"): Tree("web/x.csv?sig=secret")}
    trees["web", "https://example.com"].has_listings = False
    names = [file.name for file in find_files(sources, trees.__getitem__)]
    assert names == ["one/animals/cat/1.jpg", "example.com/web/x.csv"]


def test_a_dot_is_no_wildcard():
    assert not matcher("a.csv")("abcsv")
    assert matcher("a[0-9].csv")("a1.csv")


def test_local_files_follow_links_but_never_back_up(tmp_path):
    (tmp_path / "set/deep").mkdir(parents=True)
    (tmp_path / "set/deep/a.txt").write_text("a")
    (tmp_path / "set/.trainmaster-00.part").write_text("half")
    (tmp_path / "set/deep/up").symlink_to(tmp_path / "set")
    (tmp_path / "set/aside").symlink_to(tmp_path / "other")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/b.txt").write_text("b")
    found = find_files([{"path": str(tmp_path / "set")}], lambda key: local_files())
    assert [file.name for file in found] == ["aside/b.txt", "deep/a.txt"]


@pytest.mark.parametrize(
    ("sources", "steps", "whole"),
    [
        ([{"store": "s", "path": "a/b"}], [], "/base/a/b"),
        ([{"store": "s", "path": "a/**"}], [], "/base/a"),
        ([{"path": "/data/x"}], [], "/data/x"),
        ([{"store": "s", "path": "a/*.csv"}], [], None),
        ([{"store": "s", "path": "a"}], [{"do": "take", "count": 1}], None),
        ([{"store": "s", "path": "a"}, {"store": "s", "path": "b"}], [], None),
        ([{"store": "far", "path": "a"}], [], None),
    ],
)
def test_what_is_whole_is_seen_where_it_lies(sources, steps, whole):
    assert find_single_path(sources, steps, {("store", "s"): "/base", ("local", ""): "/"}) == whole


def test_steps_choose_in_order():
    numbers = list(range(10))
    assert select(numbers, [{"do": "skip", "count": 2}, {"do": "take", "count": 3}]) == [2, 3, 4]
    assert select(numbers, [{"do": "take", "count": 3}, {"do": "skip", "count": 2}]) == [2]


def test_a_split_loses_and_doubles_nothing():
    one = {"do": "sample", "probability": 0.3, "seed": 5}
    first, second = select(list(range(100)), [one]), select(list(range(100)), [{**one, "rest": True}])
    assert sorted(first + second) == list(range(100))
    assert 10 < len(first) < 50
    assert first == select(list(range(100)), [one])


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ([], "empty list"),
        ("", "not a path"),
        (7, "cannot be made from a int"),
        ([("nobody", "x")], "cannot be made from a tuple"),
        ("https://example.com/*.csv", "wildcard"),
        ("https://example.com", "names no file"),
        ("s3://bucket/x", "cannot be read directly"),
        ("https://example.com/a/../../x", "has '..' in its path"),
    ],
)
def test_what_no_dataset_can_be_made_of(path, message):
    with pytest.raises(UserErrorException, match=message):
        sources_of(path)


def test_a_missing_path_is_named(tmp_path):
    sources = sources_of(str(tmp_path / "missing"))
    with pytest.raises(UserErrorException, match=f"there is nothing at {tmp_path}/missing"):
        check_sources(sources, lambda key: local_files())


def test_keys_in_addresses_are_not_shown():
    assert describe_sources([{"path": "https://example.com/a.csv?sig=secret"}]) == "https://example.com/a.csv"
