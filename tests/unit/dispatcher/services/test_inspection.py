"""What the counters of a service say."""

from __future__ import annotations

from trainmaster.dispatcher.services.inspection import LatencyBucket, read_traffic
from trainmaster.scoring.server import numbers as places
from trainmaster.scoring.server.numbers import Numbers


def test_the_text_of_the_scoring_server_is_read() -> None:
    numbers = Numbers()
    for status, seconds in ((200, 0.0007), (200, 0.02), (400, 0.0001), (503, 60.0)):
        numbers.count_request(places.SCORED, status, seconds, 10, 20)
    numbers.count_request(places.OTHERS, 200, 1.0, 0, 0)
    numbers.mine[places.IN_FLIGHT] = 2.0
    found = read_traffic(numbers.text(), at=5.0)
    assert (found.requests, found.refused, found.failed, found.in_flight) == (4, 1, 1, 2)
    assert round(found.seconds, 4) == 60.0208 and found.is_answering
    filled = [bucket for bucket in found.latency if bucket.count]
    assert filled == [
        LatencyBucket(0.0005, 1),
        LatencyBucket(0.001, 1),
        LatencyBucket(0.025, 1),
        LatencyBucket(None, 1),
    ]


def test_foreign_lines_are_ignored() -> None:
    assert read_traffic('# HELP x\nother_total 5\ntrainmaster_scoring_connections 3\n"', at=0.0).requests == 0
