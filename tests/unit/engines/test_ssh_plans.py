"""Plans of this machine as plans of a host; environments at another path; files that come back."""

from __future__ import annotations

import json
import shutil

import pytest

from trainmaster.engines.remote import mpi
from trainmaster.engines.remote.contents import scan
from trainmaster.engines.remote.data import RunData
from trainmaster.engines.remote.environments import relocate
from trainmaster.engines.remote.mirror import Mirror
from trainmaster.engines.remote.plans import replace_paths, translate
from trainmaster.engines.remote.starting import with_layout
from trainmaster.shared.folders import RunFolder

PROCESS = {
    "rank": 0,
    "argv": ["/ws/environments/d.1/bin/python", "train.py", "--data", "/ws/datastore/in"],
    "env": {
        "PATH": "/ws/environments/d.1/bin:/here/bin:/bin",
        "HOME": "/home/here",
        "LANG": "de_DE.UTF-8",
        "http_proxy": "http://here:3128",
        "TRAINMASTER_RUN_FOLDER": "/ws/runs/r",
        "MASTER_ADDR": "{trainmaster:host:0}",
        "OWN": "/ws2/stays",
    },
    "cwd": "/ws/runs/r/code",
    "log": "/ws/runs/r/files/azureml-logs/70_driver_log.txt",
}
PLAN = {
    "version": 1,
    "node": 0,
    "folder": "/ws/runs/r",
    "layout": {"manifest": "/ws/snapshots/s.json", "blobs": "/ws/blobs"},
    "links": [{"path": "/ws/runs/r/code/in", "target": "/ws/datastore/in"}],
    "processes": [PROCESS],
    "notify": {"socket": "/ws/dispatcher.sock"},
}
INHERITED = {"PATH": "/here/bin:/bin", "HOME": "/home/here", "LANG": "de_DE.UTF-8", "http_proxy": "http://here:3128"}


def translate_plan(**more):
    return translate(
        PLAN,
        paths={"/ws": "/there", "/ws/environments/d.1": "/there/environments/d.1", "/ws/datastore/in": "/there/in"},
        tokens={"{trainmaster:host:0}": "10.0.0.1"},
        inherited=INHERITED,
        variables={"PATH": "/usr/bin", "HOME": "/home/there"},
        more=more,
    )


def test_translate():
    plan = translate_plan()
    (process,) = plan["processes"]
    assert plan["notify"] is None
    assert plan["layout"] == {"manifest": "/there/snapshots/s.json", "blobs": "/there/blobs"}
    assert plan["links"] == [{"path": "/there/runs/r/code/in", "target": "/there/in"}]
    assert process["argv"] == ["/there/environments/d.1/bin/python", "train.py", "--data", "/there/in"]
    assert process["env"] == {
        "PATH": "/there/environments/d.1/bin:/usr/bin",
        "HOME": "/home/there",
        "LANG": "de_DE.UTF-8",
        "TRAINMASTER_RUN_FOLDER": "/there/runs/r",
        "MASTER_ADDR": "10.0.0.1",
        "OWN": "/ws2/stays",
    }
    assert "/ws/" not in json.dumps(plan)


def test_more_variables():
    (process,) = translate_plan(LD_LIBRARY_PATH="/there/lib", PATH="/first")["processes"]
    assert process["env"]["LD_LIBRARY_PATH"] == "/there/lib"
    assert process["env"]["PATH"].startswith("/first:/there/")


def test_values_of_the_user_stay():
    given = {**PLAN, "processes": [{**PROCESS, "env": {"HOME": "/my/own", "PATH": "/my/path"}}]}
    plan = translate(given, paths={"/ws": "/there"}, tokens={}, inherited=INHERITED, variables={"HOME": "/h"}, more={})
    assert plan["processes"][0]["env"] == {"HOME": "/my/own", "PATH": "/my/path"}


@pytest.mark.parametrize(
    ("text", "moved"),
    [("/ws", "/t"), ("/ws/a", "/t/a"), ("/ws2", "/ws2"), ("/ws-old/a", "/ws-old/a"), ('{"a": "/ws"}', '{"a": "/t"}')],
)
def test_only_whole_paths_are_moved(text, moved):
    assert replace_paths(text, {"/ws": "/t"}) == moved


def test_every_host_lays_out_its_own_folder():
    second = {**PLAN, "node": 1, "layout": None, "links": []}
    assert with_layout(second, PLAN, shared=False)["layout"] == PLAN["layout"]
    assert with_layout(second, PLAN, shared=False)["links"] == PLAN["links"]
    assert with_layout(second, PLAN, shared=True) == second


def test_mpi_requests():
    launcher = mpi.launcher_plan(PLAN, "/ws/runs/r/nodes/0", "/ws/kits/k", "python3")
    reach = launcher["processes"][0]["env"]["PRTE_MCA_plm_ssh_agent"]
    assert reach == "python3 -I -S /ws/kits/k/trainmaster/job/agent/remote_launch.py ask /ws/runs/r/nodes/0/launch"
    helper = mpi.helper_plan(PLAN, 1, "/ws/runs/r/nodes/1", "/ws/kits/k", "python3")
    assert (helper["node"], helper["processes"][0]["service"]) == (1, True)
    assert (helper["layout"], helper["links"]) == (None, []), "in a shared folder, the first node lays it out"
    assert mpi.find_node("nodes/0/launch/b.json", {"host": "b"}, ["a", "b"]) == 1
    assert mpi.find_node("nodes/0/launch/b.json", {"host": "c"}, ["a", "b"]) is None
    assert mpi.find_node("nodes/0/running.json", {"host": "b"}, ["a", "b"]) is None


def test_relocate(tmp_path):
    here = tmp_path / "env"
    (here / "bin").mkdir(parents=True)
    (here / "lib" / "python3.11" / "__pycache__").mkdir(parents=True)
    (here / "bin" / "python").symlink_to("/usr/bin/python3.11")
    (here / "bin" / "python3").symlink_to("python")
    (here / "bin" / "own").symlink_to(here / "bin" / "tool")
    (here / "bin" / "tool").write_text(f"#!{here}/bin/python\nprint()\n")
    (here / "bin" / "binary").write_bytes(b"\x7fELF\0" + str(here).encode())
    (here / "pyvenv.cfg").write_text("home = /usr/bin\nversion_info = 3.11.2\n")
    (here / "lib" / "python3.11" / "module.py").write_text(f"# {here}")
    tree = relocate(scan(here), str(here), "/there/env", "/opt/python/bin/python3.11")
    links, texts = dict(tree.links), {name: (text, mode) for name, text, mode in tree.texts}
    assert links == {
        "bin/python": "/opt/python/bin/python3.11",
        "bin/python3": "python",
        "bin/own": "/there/env/bin/tool",
    }
    assert texts == {
        "bin/tool": ("#!/there/env/bin/python\nprint()\n", 0o755),
        "pyvenv.cfg": ("home = /opt/python/bin\nversion_info = 3.11.2\n", 0o644),
    }
    assert {name for name, _ in tree.files} == {"bin/binary", "lib/python3.11/module.py"}


class TestMirror:
    @pytest.fixture
    def run(self, tmp_path):
        folder = RunFolder(tmp_path / "run")
        folder.node(0).mkdir(parents=True)
        return folder

    def test_growth_at_its_place(self, run):
        mirror = Mirror(run, 0, {}, RunData())
        mirror.take({"grown": "journals/a", "offset": 0}, b"one\n")
        mirror.take({"grown": "journals/a", "offset": 4}, b"two\n")
        # Again, as after a lost connection.
        mirror.take({"grown": "journals/a", "offset": 4}, b"two\nthree\n")
        assert (run.journals / "a").read_text() == "one\ntwo\nthree\n"
        assert mirror.sizes() == {"journals/a": 14}

    def test_result_comes_last(self, run):
        mirror = Mirror(run, 0, {}, RunData())
        assert mirror.take({"small": "nodes/0/result.json"}, b"{}") == "nodes/0/result.json"
        assert not (run.node(0) / "result.json").exists()
        mirror.finish()
        assert (run.node(0) / "result.json").read_bytes() == b"{}"

    def test_whole_files_and_their_tails(self, run):
        mirror = Mirror(run, 0, {}, RunData())
        frame = {"work": "code/outputs/model", "mode": 0o644}
        mirror.take({**frame, "offset": 0, "start": 0, "last": False}, b"ab")
        assert not (run.code / "outputs" / "model").exists()
        mirror.take({**frame, "offset": 2, "start": 0, "last": True}, b"cd")
        assert (run.code / "outputs" / "model").read_bytes() == b"abcd"
        mirror.take({**frame, "offset": 4, "start": 4, "last": True}, b"ef")
        assert (run.code / "outputs" / "model").read_bytes() == b"abcdef"
        mirror.take({**frame, "offset": 0, "start": 0, "last": True}, b"x")
        assert (run.code / "outputs" / "model").read_bytes() == b"x"

    def test_the_tail_of_a_file_that_was_removed_here_is_ignored(self, run):
        """The files of a job request go away when it is answered, while the host may send them once more."""
        mirror = Mirror(run, 0, {}, RunData())
        frame = {"work": "kept/1/files/a", "mode": 0o644}
        mirror.take({**frame, "offset": 0, "start": 0, "last": True}, b"ab")
        shutil.rmtree(run.path / "kept")
        mirror.take({**frame, "offset": 2, "start": 2, "last": True}, b"")
        mirror.take({**frame, "offset": 2, "start": 0, "last": True}, b"cd")
        assert not (run.path / "kept").exists()

    def test_first_node_counts(self, run):
        owners: dict[str, int] = {}
        first, second = (Mirror(run, number, owners, RunData()) for number in (0, 1))
        frame = {"work": "code/outputs/same", "mode": 0o644, "offset": 0, "start": 0, "last": True}
        second.take(frame, b"second")
        first.take(frame, b"first")
        second.take(frame, b"second again")
        assert (run.code / "outputs" / "same").read_bytes() == b"first"

    def test_states_are_remembered(self, run):
        mirror = Mirror(run, 0, {}, RunData())
        mirror.take({"state": "code/outputs/a", "is": [1, 2, 3]}, b"")
        mirror.finish()
        assert Mirror(run, 0, {}, RunData()).states() == {"code/outputs/a": [1, 2, 3]}

    @pytest.mark.parametrize("kind", ["small", "grown", "work", "state"])
    @pytest.mark.parametrize(
        "name",
        [
            *("../x", "/etc/x", "nodes/../../x", "nodes/0/../../../x.json", "", ".", "nodes//x.json", 7, None, ["a"]),
            # Files of this machine: the specification, plans, keys.
            *("spec.json", "data.json", "secrets.json", "nodes/0/plan.json", "attempts/2/nodes/0/plan.json"),
            *("nodes/0/ssh.json", "letters/1.answer", "workspace.json", "children/../../x"),
            *("children/../files/x", "children/other/files/x", "children/interactive/files/x"),
        ],
    )
    def test_hosts_cannot_write_elsewhere(self, run, tmp_path, kind, name):
        for other in ("other", "interactive"):
            (tmp_path / other).mkdir()
        (tmp_path / "other" / "spec.json").touch()
        (tmp_path / "interactive" / "journals").mkdir()
        before = {path for path in tmp_path.rglob("*") if not path.is_relative_to(run.path)}
        Mirror(run, 0, {}, RunData()).take(
            {kind: name, "offset": 0, "start": 0, "last": True, "mode": 0o644, "is": [1]}, b"x"
        )
        assert {path for path in tmp_path.rglob("*") if not path.is_relative_to(run.path)} == before
        if not str(name).startswith("children/"):
            assert not [path for path in run.path.rglob("*") if path.is_file()]

    def test_hosts_cannot_set_special_bits(self, run):
        frame = {"work": "code/outputs/a", "mode": 0o6755, "offset": 0, "start": 0, "last": True}
        Mirror(run, 0, {}, RunData()).take(frame, b"x")
        assert (run.code / "outputs" / "a").stat().st_mode & 0o7777 == 0o755

    def test_data_goes_back_to_where_it_came_from(self, run, tmp_path):
        data = RunData({"outside/0/in": tmp_path / "store" / "in"}, ("outside/0/in",))
        frame = {"work": "outside/0/in/deep/new", "mode": 0o644, "offset": 0, "start": 0, "last": True}
        Mirror(run, 0, {}, data).take(frame, b"new")
        assert (tmp_path / "store" / "in" / "deep" / "new").read_bytes() == b"new"
        assert data.outside_paths("/there") == {str(tmp_path / "store" / "in"): "/there/outside/0/in"}
