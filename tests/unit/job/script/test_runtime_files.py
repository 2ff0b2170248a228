import io
import os
import threading

import pytest

from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.job.script.files import RunFiles, copy_out, file_name


@pytest.fixture
def files(job):
    return RunFiles(job / "files")


@pytest.mark.parametrize(
    ("name", "plain"), [("a", "a"), ("./a//b.txt", "a/b.txt"), ("a/", "a"), ("ä b/ç", "ä b/ç"), ("..a/b..", "..a/b..")]
)
def test_names(name, plain):
    assert file_name(name) == plain


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "/",
        "/etc/passwd",
        "..",
        "../a",
        "a/../../b",
        "a/..",
        "a\nb",
        "a\x00b",
        "x" * 256,
        "a/" * 600 + "b",
        "half \ud800",
        None,
        1,
        b"a",
        ".partial-1",
        "a/.partial-x",
    ],
)
def test_names_that_are_none(files, name):
    with pytest.raises(UserErrorException):
        files.add(name, io.BytesIO(b"x"))
    assert files.names() == []


def test_a_file_a_path_and_streams(files, job):
    (job / "code" / "m.txt").write_text("model")
    assert files.add("x/m.txt", "m.txt") == "x/m.txt"
    assert files.add("y/m.txt", job / "code" / "m.txt") == "y/m.txt"
    files.add("z.bin", io.BytesIO(b"\0\1"))
    files.add("z.txt", io.StringIO("zwölf"))
    assert files.names() == ["x/m.txt", "y/m.txt", "z.bin", "z.txt"]
    assert (job / "files" / "z.txt").read_bytes() == "zwölf".encode()


def test_outputs_lie_in_the_working_folder(files, job):
    files.add("outputs/deep/m.pkl", io.BytesIO(b"m"))
    assert (job / "code" / "outputs" / "deep" / "m.pkl").read_bytes() == b"m"
    assert files.names() == ["outputs/deep/m.pkl"]


def test_outputs_are_made_where_the_script_removed_them(files, job):
    (job / "code" / "outputs").rmdir()
    files.add("outputs/m.pkl", io.BytesIO(b"m"))
    assert (job / "code" / "outputs" / "m.pkl").read_bytes() == b"m"


def test_the_same_file_is_added_in_place(files, job):
    path = job / "code" / "outputs" / "m.pkl"
    path.write_bytes(b"m")
    assert files.add("outputs/m.pkl", "outputs/m.pkl") == "outputs/m.pkl"
    assert path.read_bytes() == b"m"


def test_a_name_is_taken_once(files, job):
    files.add("a.txt", io.BytesIO(b"one"))
    files.add("a.txt", io.BytesIO(b"one"))
    for other in (b"two", b"longer", b""):
        with pytest.raises(UserErrorException, match="already exists"):
            files.add("a.txt", io.BytesIO(other))
    assert (job / "files" / "a.txt").read_bytes() == b"one"
    assert os.listdir(job / "files") and not [n for n in os.listdir(job / "files") if n.startswith(".")]


def test_no_link_leads_out(files, job, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (job / "files" / "way").symlink_to(outside)
    (job / "code" / "outputs" / "way").symlink_to(outside)
    for name in ("way/a.txt", "way/b/c.txt", "outputs/way/a.txt"):
        with pytest.raises(UserErrorException, match="leads out"):
            files.add(name, io.BytesIO(b"x"))
    assert list(outside.iterdir()) == []


def test_a_link_is_not_written_through(files, job, tmp_path):
    target = tmp_path / "target.txt"
    target.write_text("precious")
    (job / "files" / "a.txt").symlink_to(target)
    with pytest.raises(UserErrorException, match="already exists"):
        files.add("a.txt", io.BytesIO(b"x"))
    assert target.read_text() == "precious"


@pytest.mark.parametrize("source", ["absent.txt", "outputs", None, 5, ["a"]])
def test_sources_that_are_none(files, job, source):
    with pytest.raises(UserErrorException):
        files.add("a.txt", source)
    assert files.names() == []


def test_a_file_cannot_be_a_folder(files):
    files.add("a", io.BytesIO(b"x"))
    with pytest.raises(UserErrorException, match="not a folder"):
        files.add("a/b", io.BytesIO(b"x"))
    files.add("c/d", io.BytesIO(b"x"))
    with pytest.raises(UserErrorException, match="already exists"):
        files.add("c", io.BytesIO(b"x"))


def test_a_stream_that_breaks_leaves_nothing(files, job):
    class Broken(io.BytesIO):
        def read(self, size=-1):
            if self.tell():
                raise ConnectionError("gone")
            return super().read(2)

    with pytest.raises(TrainmasterError, match="NOT kept") as caught:
        files.add("outputs/a.txt", Broken(b"abcdef"))
    assert "gone" in caught.value.cause
    assert os.listdir(job / "code" / "outputs") == []


def test_beside_takes_the_next_name(files, job):
    names = [files.add_beside("p/x.png", io.BytesIO(bytes([n]))) for n in (1, 2, 3, 2)]
    assert names == ["p/x.png", "p/x_1.png", "p/x_2.png", "p/x_1.png"]


def test_two_writers_never_overwrite_each_other(files, job):
    start = threading.Barrier(8)
    kept = []

    def add(n):
        start.wait()
        name = files.add_beside("same.txt", io.BytesIO(b"%d" % n))
        kept.append((name, b"%d" % n))

    threads = [threading.Thread(target=add, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({name for name, _ in kept}) == 8
    assert all((job / "files" / name).read_bytes() == contents for name, contents in kept)


def test_a_file_system_without_links(files, job, monkeypatch):
    def refuse(*_):
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    files.add("a.txt", io.BytesIO(b"one"))
    with pytest.raises(UserErrorException, match="already exists"):
        files.add("a.txt", io.BytesIO(b"two"))
    assert files.names() == ["a.txt"]


def test_files_in_the_making_are_not_listed(files, job):
    (job / "files" / ".partial-1").write_text("")
    (job / "code" / "outputs" / "loop").symlink_to(".")
    (job / "code" / "outputs" / "a").write_text("")
    assert files.names() == ["outputs/a"]


def test_what_is_not_there_is_told_with_what_is(files):
    files.add("a.txt", io.BytesIO(b"x"))
    with pytest.raises(UserErrorException, match=r"b\.txt") as caught:
        files.existing("b.txt")
    assert caught.value.cause == "it has: a.txt"


def test_copy_out_onto_itself_is_harmless(tmp_path):
    path = tmp_path / "a"
    path.write_text("x")
    copy_out(str(path), str(path))
    copy_out(str(path), str(tmp_path / "new" / "b"))
    assert path.read_text() == (tmp_path / "new" / "b").read_text() == "x"
