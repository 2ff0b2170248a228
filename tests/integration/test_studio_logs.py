"""The logs of a run in the studio: of real ranks while they print, of 1 GB, with colours, attacks and secrets."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.conftest import until
from tests.studio import WORKSPACE, Studio

from trainmaster import ComputeTarget, Experiment, Gloo, Keyvault, LocalCompute, PyTorch, Workspace
from trainmaster.sdk.run.run import Run

GIGABYTE = 1_000_000_000
SECRET = "hunter22-is-secret"
ATTACK = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"
SCRIPT = """
import os, sys, time
from trainmaster import Run
rank = int(os.environ["RANK"])
run = Run.get_context()

def wait_for(part):
    while not os.path.exists(os.path.join(sys.argv[1], part)):
        time.sleep(0.01)

print(f"rank {rank} has started", flush=True)
wait_for("colours")
if rank == 0:
    print("\\x1b[1;31mred alert\\x1b[0m and \\x1b[32mall good\\x1b[0m\\x1b[2K")
    for percent in range(101):
        print(f"\\rprogress {percent}%", end="")
    print(flush=True)
    print(ATTACK)
    print("the key is", run.get_secret("token"), "and its end", flush=True)
wait_for("many")
for number in range(500):
    print(f"rank {rank} line {number} größer 😀", flush=True)
print(f"rank {rank} has printed many", flush=True)
wait_for("end")
if rank == 1:
    raise ValueError("the loss is not a number")
""".replace("ATTACK", repr(ATTACK))


class Job:
    """A real run with two ranks that print when they are told to."""

    def __init__(self, run: Run, gates: Path) -> None:
        self.id: str = run.id
        self.run = run
        self._gates = gates

    def let(self, part: str) -> None:
        (self._gates / part).touch()


@pytest.fixture(scope="module")
def workspace(studio_server: Studio) -> Workspace:
    found = Workspace(path=studio_server.server.root / "workspaces" / WORKSPACE)
    Keyvault(found).set_secret("token", SECRET)
    ComputeTarget.create(found, "box", LocalCompute.configuration(nodes=2))
    return found


@pytest.fixture(scope="module")
def job(workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Job:
    source, gates = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("gates")
    (source / "train.py").write_text(SCRIPT)
    estimator = PyTorch(
        str(source),
        entry_script="train.py",
        script_params={str(gates): ""},
        compute_target="box",
        node_count=2,
        distributed_training=Gloo(),
        user_managed=True,
    )
    return Job(Experiment(workspace, "logs").submit(estimator), gates)


@pytest.fixture(scope="module")
def write_log(workspace: Workspace) -> Callable[[Callable[[Path], None]], str]:
    """A run that has ended, whose only log is written by a function; returns its id."""

    def create(write: Callable[[Path], None]) -> str:
        run = Experiment(workspace, "written").start_logging()
        folder = workspace.path / "runs" / run.id / "files" / "azureml-logs"
        folder.mkdir(parents=True, exist_ok=True)
        write(folder / "70_driver_log.txt")
        run.complete()
        return str(run.id)

    return create


def view(page: Page, name: str = "Output of the chosen ranks") -> Locator:
    return page.get_by_role("region", name=name)


def lines(region: Locator) -> list[str]:
    """The texts of the lines on the screen, and of some above and below it."""
    return [each.replace("\xa0", " ") for each in region.locator(".log-text").all_inner_texts()]


def scroll_to(region: Locator, place: str) -> None:
    region.evaluate(f"element => {{ element.scrollTop = {place} }}")


def test_lines_of_all_ranks_appear_while_they_are_printed(studio: Studio, job: Job) -> None:
    page = studio.open(f"runs/{job.id}/logs")
    expect(view(page)).to_contain_text("rank 0 has started")
    expect(view(page)).to_contain_text("rank 1 has started")
    job.let("colours")
    expect(view(page)).to_contain_text("and its end")

    # Colours are styles, other sequences are not shown, and a progress bar is one line.
    expect(view(page).locator(".ansi-bold.ansi-red")).to_have_text("red alert")
    expect(view(page).locator(".ansi-green")).to_have_text("all good")
    shown = lines(view(page))
    assert "red alert and all good" in shown
    assert [each for each in shown if "progress" in each] == ["progress 100%"]
    # What looks like HTML is text, and a secret is hidden.
    assert ATTACK in shown
    assert page.title() != "hacked"
    assert view(page).locator("img, script").count() == 0
    assert f"the key is {'*' * len(SECRET)} and its end" in shown
    assert SECRET not in page.content()


def test_a_connection_that_drops_loses_and_doubles_no_line(studio: Studio, job: Job) -> None:
    page = studio.open(f"runs/{job.id}/logs?ranks=0")
    expect(view(page, "Rank 0")).to_contain_text("and its end")
    page.context.set_offline(True)
    job.let("many")
    log = studio.server.root / "workspaces" / WORKSPACE / "runs" / job.id / "files/azureml-logs/70_driver_log_0.txt"
    until(lambda: "has printed many" in log.read_text())
    page.context.set_offline(False)
    expect(view(page, "Rank 0")).to_contain_text("rank 0 has printed many")
    scroll_to(view(page, "Rank 0"), "0")
    found: dict[int, str] = {}
    expect(view(page, "Rank 0")).to_contain_text("rank 0 has started")
    for place in range(0, 506 * 18, 300):
        scroll_to(view(page, "Rank 0"), str(place))
        expect(view(page, "Rank 0").get_by_label(f"Link to line {place // 18 + 1}", exact=True)).to_be_visible()
        rows = view(page, "Rank 0").locator(".log-line").all_inner_texts()
        for number, text in (re.split(r"\n+", each, maxsplit=1) for each in rows if "\n" in each):
            found[int(number)] = text
    assert [found[number] for number in sorted(found)] == [
        each.rpartition("\r")[2] for each in re.sub(r"\x1b\[[0-9;]*[mK]", "", masked(log)).split("\n")[:-1]
    ]


def masked(log: Path) -> str:
    return log.read_bytes().decode().replace(SECRET, "*" * len(SECRET))


def test_ranks_are_chosen_and_shown_side_by_side(studio: Studio, job: Job) -> None:
    job.let("many")
    page = studio.open(f"runs/{job.id}/logs")
    expect(view(page)).to_contain_text("has printed many")
    expect(page.get_by_text("Order estimated: lines have no times")).to_be_visible()
    page.get_by_role("button", name="Side by side").click()
    expect(page.get_by_text("Order estimated")).to_have_count(0)
    expect(view(page, "Rank 0")).to_contain_text("rank 0 has printed many")
    expect(view(page, "Rank 1")).to_contain_text("rank 1 has printed many")
    assert not [each for each in lines(view(page, "Rank 1")) if each.startswith("rank 0")]
    page.get_by_role("group", name="Ranks").get_by_role("button", name="Rank 1").click()
    expect(view(page, "Rank 0")).to_have_count(0)
    expect(page).to_have_url(re.compile("ranks=1"))
    page.reload()
    expect(view(page, "Rank 1")).to_contain_text("rank 1 has printed many")
    assert page.locator(".log-view").count() == 1


def test_scrolling_up_stops_following_and_the_end_begins_it_again(studio: Studio, job: Job) -> None:
    job.let("many")
    page = studio.open(f"runs/{job.id}/logs?ranks=1")
    region = view(page, "Rank 1")
    expect(region).to_contain_text("rank 1 has printed many")
    expect(page.get_by_role("button", name="Following")).to_have_attribute("aria-pressed", "true")
    region.hover()
    page.mouse.wheel(0, -2000)
    expect(page.get_by_role("button", name="Follow", exact=True)).to_have_attribute("aria-pressed", "false")
    page.get_by_role("button", name="Follow", exact=True).click()
    expect(region).to_contain_text("rank 1 has printed many")
    expect(page.get_by_role("button", name="Following")).to_be_visible()


def test_the_error_of_the_rank_that_failed_is_jumped_to(studio: Studio, job: Job) -> None:
    page = studio.open(f"runs/{job.id}/logs?ranks=0")
    for part in ("colours", "many", "end"):
        job.let(part)
    page.get_by_role("button", name="Jump to the error").click()
    expect(view(page, "Rank 1").locator("[aria-current]")).to_contain_text("Traceback (most recent call last)")
    expect(view(page, "Rank 1")).to_contain_text("ValueError: the loss is not a number")


def test_a_log_of_1_gb_opens_at_its_end_is_read_upwards_and_searched(
    studio: Studio, write_log: Callable[[Callable[[Path], None]], str]
) -> None:
    def write(file: Path) -> None:
        with file.open("wb") as log:
            log.writelines(f"line {number} of the beginning\n".encode() for number in range(100_000))
            log.write(b"the NEEDLE lies here\n")
            log.seek(GIGABYTE)
            log.write(b"\n")
            log.writelines(f"line {number} of the end größer\n".encode() for number in range(100_000))

    run_id = write_log(write)
    page = studio.open(f"runs/{run_id}/logs")
    region = view(page, "Output")
    expect(region).to_contain_text("line 99999 of the end größer")
    expect(page.get_by_text("1.0 GB above")).to_be_visible()

    # Upwards, as far as somebody scrolls; the window stays bounded.
    for _ in range(3):
        before = lines(region)
        scroll_to(region, "0")
        expect(region.locator(".log-text").first).not_to_have_text(before[0])
    assert region.locator(".log-line").count() < 200

    page.get_by_role("searchbox", name="Search the logs").fill("needle")
    # The whole gigabyte is read for that.
    expect(page.get_by_text("1 line", exact=True)).to_be_visible(timeout=240_000)
    page.get_by_role("searchbox", name="Search the logs").press("Enter")
    expect(region.locator("[aria-current]")).to_contain_text("the NEEDLE lies here")
    # The server has counted the lines.
    expect(region.locator("[aria-current] .log-number")).to_have_text("100001")
    expect(region.locator("mark").first).to_have_text("NEEDLE")
    # A link to the line shows it to a colleague.
    region.locator("[aria-current] .log-number").click()
    expect(page).to_have_url(re.compile("line=70_driver_log.txt"))
    page.reload()
    expect(region.locator("[aria-current]")).to_contain_text("the NEEDLE lies here")
    page.get_by_role("button", name="End", exact=True).click()
    expect(region).to_contain_text("line 99999 of the end größer")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(region).to_contain_text("line 0 of the beginning")


def test_logs_of_earlier_attempts_and_of_the_system_are_folded_below(
    studio: Studio, write_log: Callable[[Callable[[Path], None]], str]
) -> None:
    def write(file: Path) -> None:
        file.write_text("second attempt\n")
        (file.parent / "20_image_build_log.txt").write_text("installed numpy\n")
        (file.parent / "attempt_1").mkdir()
        (file.parent / "attempt_1" / file.name).write_text(f"first attempt {ATTACK}\n")

    page = studio.open(f"runs/{write_log(write)}/logs")
    expect(view(page, "Output")).to_contain_text("second attempt")
    page.get_by_text("Earlier attempts (1)").click()
    page.get_by_role("button", name="Rank 0, attempt 1").click()
    expect(view(page, "Output, attempt 1")).to_contain_text("first attempt")
    page.get_by_text("System logs (1)").click()
    page.get_by_role("button", name="20_image_build_log.txt").click()
    expect(view(page, "20_image_build_log.txt")).to_contain_text("installed numpy")
    page.go_back()
    expect(view(page, "Output, attempt 1")).to_contain_text("first attempt")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert Path(download.value.path()).read_text() == f"first attempt {ATTACK}\n"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_reader_sees_the_logs_and_axe_finds_nothing_serious(studio: Studio, job: Job, theme: str) -> None:
    job.let("colours")
    page = studio.open(
        f"runs/{job.id}/logs?ranks=0&search=alert", "reader", theme="dark" if theme == "dark" else "light"
    )
    expect(page.get_by_text("1 line", exact=True)).to_be_visible()
    page.get_by_role("searchbox").press("Enter")
    expect(view(page, "Rank 0").locator("mark")).to_have_text("alert")
    studio.check_accessibility(page)
