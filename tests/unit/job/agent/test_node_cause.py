"""Which rank failed first, as a table."""

from __future__ import annotations

import pytest

from trainmaster.job.agent import cause


def rank(number, ended_at, *, code=1, signal=None, raised_at=None, told=False, lost=False):
    return {
        "rank": number,
        "exit_code": None if signal else code,
        "signal": signal,
        "told": told,
        "raised": raised_at is not None,
        "wrote_at": ended_at if raised_at is None else raised_at,
        "ended_at": ended_at,
        "lost_peer": lost,
    }


@pytest.mark.parametrize(
    ("records", "first"),
    [
        pytest.param([], None, id="nobody"),
        pytest.param([rank(0, 5.0, code=0)], None, id="ended well"),
        pytest.param([rank(0, 5.0, signal=15, told=True)], None, id="told to end"),
        pytest.param([rank(0, 5.0), rank(1, 4.0)], 1, id="the earlier end"),
        pytest.param([rank(0, 5.0, raised_at=4.9), rank(1, 6.0, raised_at=4.5)], 1, id="the earlier traceback"),
        pytest.param([rank(0, 5.0, code=3), rank(1, 6.0, raised_at=4.5)], 1, id="a traceback before a silent end"),
        pytest.param([rank(0, 5.0, raised_at=4.9), rank(1, 5.2, signal=9)], 1, id="killed, noticed late"),
        pytest.param([rank(0, 5.0, raised_at=4.9), rank(1, 5.2, signal=11)], 1, id="crashed, noticed late"),
        pytest.param([rank(0, 5.2, signal=6), rank(1, 5.3, raised_at=5.0)], 1, id="aborted because of an exception"),
        pytest.param(
            [rank(0, 5.0, raised_at=4.9), rank(1, 6.0, signal=15, raised_at=4.5, told=True)],
            1,
            id="stopped while closing down",
        ),
        pytest.param(
            [rank(0, 5.0, raised_at=4.9), rank(1, 6.0, signal=15, raised_at=5.5, told=True)],
            0,
            id="a traceback because it was stopped",
        ),
        pytest.param(
            [rank(0, 500.0), rank(1, 501.0, signal=15, raised_at=4.5, told=True)], 0, id="an old traceback it survived"
        ),
        pytest.param([rank(0, 500.0, raised_at=4.5), rank(1, 400.0)], 1, id="an old traceback is not its end"),
        pytest.param([rank(0, 5.0, raised_at=4.8, lost=True), rank(1, 5.1, code=3)], 1, id="the other lost a peer"),
        pytest.param([rank(0, 5.0, lost=True), rank(1, 5.1, lost=True)], 0, id="all lost a peer"),
        pytest.param([rank(0, 5.0, lost=True), rank(1, 50.0)], 0, id="a much later failure is not the cause"),
        pytest.param(
            [rank(0, 5.0, raised_at=4.9, lost=True), rank(1, 6.0, raised_at=5.5, signal=15, told=True)],
            0,
            id="a traceback because of a stop is not the cause either",
        ),
        pytest.param([{"rank": 0, "pid": 7}, rank(1, 4.0)], 1, id="one without a recorded end"),
    ],
)
def test_first(records, first):
    found = cause.first_failure(records)
    assert (found and found["rank"]) == first


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("ConnectionResetError: [Errno 104] Connection reset by peer", True),
        (
            "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [::1]:4711",
            True,
        ),
        ("horovod.common.exceptions.HorovodInternalError: Horovod has been shut down.", True),
        ("ValueError: the real mistake", False),
        ("Connection reset, trying again\n" + "step\n" * 20 + "ValueError: the real mistake", False),
        ("", False),
    ],
)
def test_last_words_of_a_lost_peer(text, lost):
    assert cause.reports_lost_peer(text) is lost
