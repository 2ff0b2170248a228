"""A sweep as lines: whatever the width and the number of trials, nothing is too long and the best stands first."""

import doctest
import io

import pytest
from tests.made_sweeps import NOW, sweep_of

from trainmaster.cli import sweep_space
from trainmaster.cli.sweep_following import ChangePrinter
from trainmaster.sdk.display import sweep_frame
from trainmaster.sdk.display.screen import strict
from trainmaster.sdk.display.sweep_frame import choose_trials, frame, sweep_as_json, whole
from trainmaster.sdk.display.table import cells
from trainmaster.shared.records import Status
from trainmaster.tuning.view import rank_trials


def plain(text, styles):
    return text


@pytest.mark.parametrize("module", [sweep_frame, sweep_space])
def test_examples(module):
    result = doctest.testmod(module)
    assert result.attempted and not result.failed


@pytest.mark.parametrize("width", [20, 30, 50, 79, 119, 300])
@pytest.mark.parametrize(("count", "going", "parameters"), [(0, 0, 3), (3, 1, 1), (40, 4, 8), (1000, 12, 3)])
@pytest.mark.parametrize("height", [5, 23, 60])
def test_every_frame_fits(width, count, going, parameters, height):
    view = sweep_of(count, parameters, going, total=2000)
    lines = frame(view, NOW, width, height, plain)
    assert len(lines) <= height
    assert [line for line in lines if cells(line) > width] == []


def test_eighty_columns_show_three_parameters_each_in_its_column():
    lines = frame(sweep_of(20, 3, 2, total=40), NOW, 79, 23, plain)
    heading = next(line for line in lines if line.startswith("TRIAL"))
    assert heading.split() == ["TRIAL", "STATE", "accuracy", "lr", "batch-size", "optimizer"]


def test_many_parameters_share_a_column():
    lines = frame(sweep_of(5, 8), NOW, 79, 23, plain)
    assert "PARAMETERS" in next(line for line in lines if line.startswith("TRIAL"))
    wide = frame(sweep_of(5, 8), NOW, 160, 23, plain)
    assert "momentum" in next(line for line in wide if line.startswith("TRIAL"))


def test_the_best_is_first_and_those_that_go_are_there():
    view = sweep_of(1000, 1, going=3, total=2000)
    chosen = choose_trials(view, 10)
    assert len(chosen) == 10
    assert chosen[0] == rank_trials(view)[0]
    assert {997, 998, 999} <= {trial.number for trial in chosen}
    assert frame(view, NOW, 79, 20, plain)[-1].startswith("and 9")


def test_progress_states_and_the_last_failure_are_said():
    text = "\n".join(frame(sweep_of(20, 1, going=3, total=40), NOW, 119, 40, plain))
    assert "17 of 40 trials  16m 40s, about " in text and " left" in text
    assert "3 going  14 completed  2 cut  1 failed" in text
    assert "run_10 failed: rank 0 exited with code 1: ValueError: no data" in text
    assert "Cut at 4" in text


def test_a_sweep_without_trials_says_what_it_waits_for():
    view = sweep_of(0, waiting_for="its environment is built", warnings=("mind this",))
    text = "\n".join(frame(view, NOW, 79, 23, plain))
    assert "0 of 1 trial" in text and "its environment is built" in text and "note: mind this" in text
    assert "TRIAL" not in text


def test_whole_has_all_trials_or_the_best_of_them():
    view = sweep_of(100, 8)
    assert sum(line.startswith("run_") for line in whole(view, NOW, None, plain)) == 100 + 1  # and the last failure
    few = whole(view, NOW, None, plain, limit=3)
    assert few[-1] == "and 97 more trials"
    assert few[-4].startswith(f"run_{rank_trials(view)[0].number} ")


def test_json_is_strict_and_has_the_best():
    view = sweep_of(20, 3, going=2, total=40)
    data = strict(sweep_as_json(view, NOW))
    assert data["best"]["number"] == data["trials"][0]["number"] == rank_trials(view)[0].number
    assert data["counts"] == {
        "started": 20,
        "going": 2,
        "completed": 15,
        "cut": 2,
        "canceled": 0,
        "failed": 1,
        "ended": 18,
    }
    assert data["seconds_left"] > 0
    assert data["trials"][0]["id"].startswith("digits_1_")


def test_without_a_terminal_each_piece_of_news_is_told_once():
    output = io.StringIO()
    printer = ChangePrinter(output)
    early, later = sweep_of(3, 1, going=2, total=7), sweep_of(7, 1, total=7)
    for view in (early, early, later):
        printer.print(view)
    lines = output.getvalue().splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["[1/7]", "run_0", Status.COMPLETED],
        ["[1/7]", "run_1", Status.RUNNING],
        ["[1/7]", "run_2", Status.RUNNING],
        *([f"[{n + 1}/7]", f"run_{n}", Status.COMPLETED] for n in range(1, 6)),
        ["[7/7]", "run_6", "Cut"],
    ]
    assert lines[-1].endswith("run_6 best 0.1 < 0.9/(1+0.1) = 0.818: cancelled")


def test_the_whole_has_its_table_in_the_narrowest_terminal_too():
    lines = whole(sweep_of(5, 2), NOW, 10, plain)
    assert sum(line.startswith("run_") for line in lines) >= 5
