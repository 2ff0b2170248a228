"""What is sent to hosts: folders by their contents, in batches, and Pythons without what environments do not use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from trainmaster.engines.remote import contents
from trainmaster.engines.remote.contents import Content, batches, is_compiled, scan
from trainmaster.engines.remote.environments import is_unneeded


class TestScan:
    def test_names_are_relative_and_sorted(self, tmp_path):
        for name in ("b/deep/two.txt", "a/one.txt", "top.txt"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(name)
        (tmp_path / "a/link").symlink_to("one.txt")
        (tmp_path / "b/folder-link").symlink_to("../a")
        tree = scan(tmp_path)
        assert tree.folders == ("a", "b", "b/deep")
        assert [name for name, _ in tree.files] == ["top.txt", "a/one.txt", "b/deep/two.txt"]
        assert sorted(tree.links) == [("a/link", "one.txt"), ("b/folder-link", "../a")]

    def test_excluded_folders_are_not_entered(self, tmp_path):
        (tmp_path / "module/__pycache__/deep").mkdir(parents=True)
        (tmp_path / "module/__pycache__/deep/left_out.bin").write_text("x")
        (tmp_path / "module/kept.py").write_text("")
        asked = []
        tree = scan(tmp_path, lambda name: asked.append(name) or is_compiled(name))
        assert tree.folders == ("module",) and [name for name, _ in tree.files] == ["module/kept.py"]
        assert sorted(asked) == ["module", "module/__pycache__", "module/kept.py"]


class TestBatches:
    def test_sizes(self, monkeypatch):
        monkeypatch.setattr(contents, "_BATCH", 10)
        files = [Content(str(number), Path("x"), size) for number, size in enumerate([30, 4, 5, 2, 0, 12])]
        assert [[each.size for each in batch] for batch in batches(files)] == [[0, 2, 4], [5], [12], [30]]

    def test_many_small_files_take_time_in_proportion(self):
        reads = 0

        class Counted(Content):
            def __getattribute__(self, name):
                nonlocal reads
                reads += name == "size"
                return super().__getattribute__(name)

        count = 20_000
        (batch,) = batches(Counted(str(number), Path("x"), 100) for number in range(count))
        assert len(batch) == count
        assert reads <= 4 * count


class TestPythons:
    def test_packages_of_the_base_are_left_out(self):
        names = ["lib/python3.11/site-packages", "lib/python3/dist-packages", "include", "share", "lib/python3.11/test"]
        assert [is_unneeded(name) for name in names] == [True] * 5
        names = ["lib/python3.11", "lib/python3.11/site.py", "lib/libpython3.11.so", "lib/python3.11/unittest", "bin"]
        assert [is_unneeded(name) for name in names] == [False] * 5

    def test_what_is_left_runs(self, tmp_path):
        """The standard library is complete, and there are no packages."""
        version = f"python3.{sys.version_info.minor}"
        # The base may be a part of the system, with much else in its folder.
        own = (f"bin/{version}", f"lib/{version}", "lib/libpython")
        tree = scan(
            Path(sys.base_prefix),
            lambda name: is_unneeded(name) or not (name in ("bin", "lib") or name.startswith(own)),
        )
        assert not [name for name, _ in tree.files if "site-packages" in name]
        for folder in tree.folders:
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        for name, content in tree.files:
            os.symlink(content.path, tmp_path / name)
        for name, link in tree.links:
            os.symlink(link, tmp_path / name)
        python = tmp_path / "bin" / version
        python.unlink()
        python.write_bytes(Path(os.path.realpath(sys.executable)).read_bytes())
        python.chmod(0o755)
        code = "import asyncio, ctypes, json, multiprocessing, ssl, unittest, venv, zlib, sys; print(sys.prefix)"
        environment = {"PATH": os.defpath, "LD_LIBRARY_PATH": str(tmp_path / "lib")}
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, env=environment)
        assert done.stdout == f"{tmp_path}\n", done.stderr
