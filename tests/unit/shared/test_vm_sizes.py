"""A vm_size is a wish: the table, the files that change it, and what a machine grants."""

from __future__ import annotations

import json

import pytest

from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.hardware import node_gpus
from trainmaster.shared.records import TargetRecord
from trainmaster.shared.vm_sizes import VmSize, VmSizes, grant, read_sizes

SIZES = VmSizes({"STANDARD_D2": VmSize("STANDARD_D2", 2, 0, 7), "STANDARD_NC12": VmSize("STANDARD_NC12", 12, 2, 112)})


@pytest.mark.parametrize(
    ("name", "vcpus", "gpus", "memory"),
    [
        ("STANDARD_NC6", 6, 1, 56),
        ("Standard_NC24rs_v3", 24, 4, 448),
        ("standard_d2_v2", 2, 0, 7),
        ("STANDARD_DS12_V2", 4, 0, 28),
        ("NC6s_v2", 6, 1, 112),
        ("STANDARD_ND40rs_v2", 40, 8, 672),
    ],
)
def test_sizes_that_are_shipped(name, vcpus, gpus, memory):
    size = read_sizes().find(name)
    assert size is not None
    assert (size.vcpus, size.gpus, size.memory_gb) == (vcpus, gpus, memory)


@pytest.mark.parametrize(
    ("vm_size", "nodes", "cpus", "gpus", "granted"),
    [
        ("STANDARD_D2", 1, 8, 0, (2, 0)),
        ("STANDARD_D2", 4, 4, 0, (1, 0)),
        ("STANDARD_D2", 0, 4, 0, (2, 0)),
        ("STANDARD_NC12", 2, 64, 4, (12, 2)),
        ("STANDARD_D2", 2, 4, 4, (2, 0)),
        ("", 2, 8, 4, (4, 2)),
        ("", 8, 4, 1, (1, 0)),
    ],
)
def test_what_is_granted_without_doubt(vm_size, nodes, cpus, gpus, granted):
    given = grant(VmSizes(SIZES.sizes, strict=True), vm_size, nodes, cpus=cpus, gpus=gpus)
    assert ((given.cpus_per_node, given.gpus_per_node), given.doubts) == (granted, ())


@pytest.mark.parametrize(
    ("vm_size", "nodes", "gpus", "granted", "doubt"),
    [
        ("STANDARD_NC12", 1, 0, 0, "has none: scripts run on the CPU"),
        ("STANDARD_NC12", 1, 1, 1, "has 1: each node gets 1"),
        ("STANDARD_NC12", 4, 2, 2, "share them"),
        ("STANDARD_X9", 1, 0, 0, "not in the table"),
    ],
)
def test_wishes_that_cannot_be_granted(vm_size, nodes, gpus, granted, doubt):
    given = grant(SIZES, vm_size, nodes, cpus=8, gpus=gpus)
    assert given.gpus_per_node == granted
    assert doubt in given.doubts[0]
    with pytest.raises(ComputeTargetException, match=vm_size):
        grant(VmSizes(SIZES.sizes, strict=True), vm_size, nodes, cpus=8, gpus=gpus)


def test_files_of_the_user_and_of_the_workspace(home, tmp_path):
    workspace = WorkspaceFolder(tmp_path / "w")
    for place in (home, workspace.path):
        place.mkdir()
    mine = {"vcpus": 3, "gpus": 1, "memory_gb": 9}
    (home / "vm-sizes.json").write_text(json.dumps({"strict": True, "sizes": {"mine": mine, "Standard_NC6": mine}}))
    workspace.vm_sizes.write_text(json.dumps({"sizes": {"mine": {**mine, "vcpus": 5}}}))
    ours, theirs = read_sizes(workspace), read_sizes()
    assert (ours.find("MINE").vcpus, theirs.find("mine").vcpus) == (5, 3)
    assert ours.find("standard_nc6").vcpus == 3
    assert ours.find("STANDARD_NC12").vcpus == 12
    assert ours.strict
    workspace.vm_sizes.write_text('{"strict": false}')
    assert not read_sizes(workspace).strict


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "\x00",
        '{"sizes": []}',
        '{"strict": "yes"}',
        '{"sizes": {"A": 3}}',
        '{"sizes": {"A": {}}}',
        '{"sizes": {"A": {"vcpus": 0}}}',
        '{"sizes": {"A": {"vcpus": true}}}',
        '{"sizes": {"A": {"vcpus": 1, "gpus": -1}}}',
        '{"sizes": {"A": {"vcpus": 1, "memory_gb": "much"}}}',
    ],
)
def test_table_that_is_broken(home, text):
    home.mkdir()
    (home / "vm-sizes.json").write_text(text)
    with pytest.raises(ComputeTargetException, match=r"vm-sizes\.json cannot be used"):
        read_sizes()


@pytest.mark.parametrize(
    ("found", "per_node", "expected"),
    [
        (("0", "1"), 1, [("0",), ("1",), ("0",), ("1",)]),
        (("0", "1", "2"), 2, [("0", "1"), ("2", "0"), ("1", "2"), ("0", "1")]),
        ((), 1, [("0",), ("1",), ("2",), ("3",)]),
        (("0",), 0, [(), (), (), ()]),
    ],
)
def test_few_gpus_go_round(monkeypatch, found, per_node, expected):
    monkeypatch.setattr("trainmaster.shared.hardware.gpus", lambda: found)
    target = TargetRecord("c", "local", nodes=4, cpus_per_node=1, gpus_per_node=per_node)
    assert [node_gpus(target, node) for node in range(4)] == expected
