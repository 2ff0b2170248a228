"""What is known of all trials: kept up to date change by change, it is what looking at all of them would tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweeps import sweep

from trainmaster.shared.records import Status
from trainmaster.tuning.history import History
from trainmaster.tuning.planning import SweepState, plan
from trainmaster.tuning.trial import Trial

CHANGES = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.sampled_from([Status.STARTING, Status.RUNNING, Status.COMPLETED, Status.FAILED, Status.CANCELED]),
        st.lists(st.floats(0, 1), max_size=2),
        st.one_of(st.none(), st.integers(1, 4)),
    ),
    max_size=30,
)


@given(CHANGES)
def test_one_change_after_the_other_gives_the_same_as_all_at_once(changes):
    history, latest = History(), {}
    for number, status, values, ended_at in changes:
        before = latest.get(number)
        if before is not None and before.has_ended:
            # A state that is final stays; only what was reported may come in after it.
            status, ended_at = before.status, before.ended_at
        values = (*before.values, *values) if before is not None else tuple(values)
        latest[number] = Trial(number, {}, status, values, ended_at=ended_at)
        history.put(latest[number])
    trials = list(latest.values())
    ended = sorted((each for each in trials if each.has_ended), key=lambda each: (each.ended_at or 0, each.number))
    completed = [each for each in ended if each.status is Status.COMPLETED]
    assert history.ordered == tuple(sorted(trials, key=lambda each: each.number))
    assert history.in_order_of_end == ended
    assert history.going == {each.number: each for each in trials if not each.has_ended}
    assert (history.failed, history.completed) == (
        sum(each.status is Status.FAILED for each in trials),
        len(completed),
    )
    assert history.first_completed == (completed[0] if completed else None)
    assert history.has_reports == any(each.values for each in trials)
    assert list(history.free_numbers(8)) == [number for number in range(8) if number not in latest]


class Unseen(History):
    """A history whose trials must not all be read."""

    @property
    def ordered(self):
        pytest.fail("all trials were read")

    @property
    def in_order_of_end(self):
        pytest.fail("all trials were read")


def test_planning_the_next_trial_looks_at_no_other():
    ended = [Trial(number, {"--lr": 0.5}, Status.COMPLETED, (0.5,), ended_at=float(number)) for number in range(1000)]
    spec = sweep(max_total_runs=2000, max_concurrent_runs=2)
    found = plan(spec, SweepState(0.0, Unseen([*ended, Trial(1000, {"--lr": 0.5})])), 0.0)
    assert [each.number for each in found.starts] == [1001]
