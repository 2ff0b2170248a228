import json
import os
import resource
import signal
import threading

import pytest

from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.job.script import journal as journal_module
from trainmaster.job.script.journal import LONGEST_RECORD, Journal, read_records


def test_one_line_per_record_with_its_end(tmp_path):
    path = tmp_path / "a" / "j.jsonl"
    journal = Journal(path)
    journal.append({"k": "metric", "v": "zwei\nZeilen"})
    journal.append({"k": "metric", "v": float("inf")})
    assert path.read_bytes() == b'{"k":"metric","v":"zwei\\nZeilen"}\n{"k":"metric","v":Infinity}\n'
    assert journal.records() == read_records(path)


def test_nothing_is_made_before_the_first_record(tmp_path):
    journal = Journal.create_in(str(tmp_path / "journals"), "0")
    assert journal.records() == []
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_named_by_rank_and_process(tmp_path):
    journal = Journal.create_in(str(tmp_path), "../7")
    journal.append({})
    (file,) = tmp_path.iterdir()
    assert file.name.startswith(f"7-{os.getpid()}-") and file.suffix == ".jsonl"


def test_a_closed_journal_goes_on(tmp_path):
    path = tmp_path / "j.jsonl"
    journal = Journal(path)
    journal.append({"n": 1})
    journal.close()
    journal.close()
    journal.append({"n": 2})
    assert path.read_bytes() == b'{"n":1}\n{"n":2}\n'


def test_a_torn_line_of_an_earlier_process_stays_alone(tmp_path):
    path = tmp_path / "j.jsonl"
    path.write_bytes(b'{"n":1}\n{"n":2}')
    Journal(path).append({"n": 3})
    assert read_records(path) == [{"n": 1}, {"n": 3}]


def test_a_full_disk_is_told(tmp_path):
    with pytest.raises(TrainmasterError, match="NOT kept") as caught:
        Journal("/dev/full").append({"n": 1})
    assert "No space left" in caught.value.cause
    assert caught.value.hint


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainmasterError, match="NOT kept"):
        Journal(tmp_path / "file" / "j.jsonl").append({"n": 1})


def _in_child(work):
    """Runs `work` in a forked process; its exit code."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_line_written_in_part_is_made_good(tmp_path):
    """A limit of the file's size makes the kernel write the first half of a line only."""
    path = tmp_path / "j.jsonl"
    journal = Journal(path)

    def work():
        journal.append({"n": 1})
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, resource.RLIM_INFINITY))
        with pytest.raises(TrainmasterError, match="NOT kept"):
            journal.append({"n": "does not fit, is not kept"})
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        journal.append({"n": 3})
        journal.append({"n": 4})

    assert _in_child(work) == 0
    assert b"#" in path.read_bytes(), "the half line has to be there for this test to say something"
    assert read_records(path) == [{"n": 1}, {"n": 3}, {"n": 4}]


@pytest.mark.parametrize("taken", [1, 6, 7])
def test_a_short_write_is_finished(tmp_path, monkeypatch, taken):
    """Even when only the line end is missing, the record is there exactly once."""
    path = tmp_path / "j.jsonl"
    journal = Journal(path)
    journal.append({"n": 1})
    calls = []

    def short_write(fd, line):
        calls.append(line)
        return os.write(fd, line[:taken] if len(calls) == 1 else line)

    monkeypatch.setattr(journal_module, "write", short_write)
    journal.append({"n": 2})
    journal.append({"n": 3})
    assert read_records(path) == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_endless_short_writes_end(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "write", lambda fd, line: os.write(fd, line[:1]))
    with pytest.raises(TrainmasterError, match="NOT kept"):
        Journal(tmp_path / "j.jsonl").append({"n": 1})


def test_a_script_that_closed_the_file_loses_nothing(tmp_path):
    path = tmp_path / "j.jsonl"
    journal = Journal(path)
    journal.append({"n": 1})
    os.close(journal._handles[os.getpid()].fd)
    journal.append({"n": 2})
    assert read_records(path) == [{"n": 1}, {"n": 2}]
    journal.close()


def test_a_record_that_no_reader_takes_is_refused(tmp_path):
    path = tmp_path / "j.jsonl"
    journal = Journal(path)
    with pytest.raises(UserErrorException, match="larger than 16 MB"):
        journal.append({"v": "x" * LONGEST_RECORD})
    journal.append({"n": 1})
    assert read_records(path) == [{"n": 1}]


def test_threads_and_forks_write_whole_lines(tmp_path):
    journal = Journal.create_in(str(tmp_path), "0")
    journal.append({"who": "first"})

    def write(who):
        for n in range(200):
            journal.append({"who": who, "n": n})

    def write_in_threads(who):
        threads = [threading.Thread(target=write, args=(f"{who}-{t}",)) for t in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    # Forked while the parent's lock is held: the child must not wait for it.
    with journal._handles[os.getpid()].lock:
        assert _in_child(lambda: write_in_threads("child")) == 0
    write_in_threads("parent")
    lines = [line for path in tmp_path.iterdir() for line in path.read_text().splitlines()]
    found = [json.loads(line) for line in lines]
    assert len(found) == 1 + 2 * 4 * 200
    assert len(list(tmp_path.iterdir())) == 2


def test_a_signal_handler_may_log_while_logging(tmp_path, monkeypatch):
    path = tmp_path / "j.jsonl"
    journal = Journal(path)
    journal.append({"n": 0})
    nested = []

    def interrupted_write(fd, line):
        if not nested:
            nested.append(os.write(fd, line[:5]))
            signal.raise_signal(signal.SIGUSR1)
            return 5
        return os.write(fd, line)

    before = signal.signal(signal.SIGUSR1, lambda *_: journal.append({"n": "handler"}))
    try:
        monkeypatch.setattr(journal_module, "write", interrupted_write)
        journal.append({"n": 1})
    finally:
        signal.signal(signal.SIGUSR1, before)
    journal.append({"n": 2})
    assert read_records(path) == [{"n": 0}, {"n": "handler"}, {"n": 1}, {"n": 2}]


def test_lines_that_are_no_records_are_passed_over(tmp_path):
    path = tmp_path / "j.jsonl"
    path.write_bytes(b'{"n":1}\nnonsense\n[1]\n\n{"n":2}\n{"n":3}')
    assert read_records(path) == [{"n": 1}, {"n": 2}]
    assert read_records(tmp_path / "absent") == []
