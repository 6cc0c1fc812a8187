"""umem.trace: what a log says, and the same calls again on another place."""
import csv
import json
import os
import stat

import pytest
from conftest import resident

import umem


@pytest.fixture
def log(tmp_path):
    """20 arrays of 1000 bytes, of which two are live at the same time, a copy, and two failures."""
    path = tmp_path / "run.umem"
    with umem.Log(umem.Limit(umem.Host(), 4000), path, max="64K") as place:
        last = umem.zeros(1000, "uint8", place)
        for number in range(19):
            array = umem.full(1000, number, "uint8", place)
            umem.copy(last, array)
            last = array
        del array, last
        for _ in range(2):
            with pytest.raises(umem.MemoryError):
                umem.empty(5000, "uint8", place)
    return path


def test_a_summary(log):
    text = umem.trace.summary(log)
    assert "complete" in text and "Limit over Host" in text, text
    assert umem.trace.summary(str(log), context=1)


def test_a_replay_in_ram(log):
    figures = umem.trace.replay(log)
    assert figures["operations"] >= 20 + 19 + 20 and figures["peak_bytes"] == 2000
    assert 0 < figures["seconds"] < 10 and figures["left_out"] == 0 and figures["failed"] == 0


def test_a_replay_allocates_from_the_place(log, place):
    with umem.Stats(place) as stats:
        figures = umem.trace.replay(log, stats)
        assert figures["failed"] == 0
        assert stats.figures["total_count"] == 20 and stats.figures["peak_bytes"] == 2000
        assert stats.figures["current_count"] == 0


def test_failures_of_a_replay_are_counted(log):
    with umem.Limit(umem.Host(), 1500) as limit:
        figures = umem.trace.replay(log, limit)
        assert 0 < figures["failed"] < figures["operations"]
        assert limit.used == 0
    umem.zeros(3)  # nothing is left to raise


def test_what_a_callback_raises_in_a_replay_arrives(log):
    def stop(*_):
        raise KeyError("enough")

    with umem.Retry(umem.Limit(umem.Host(), 10), stop) as place, pytest.raises(KeyError, match="enough"):
        umem.trace.replay(log, place)


def test_one_place_of_a_log(tmp_path):
    path = tmp_path / "two.umem"
    with umem.Log(umem.Host(), path) as one, umem.Log(umem.Host(), path) as two:
        umem.empty(100, place=one)
        umem.empty(100, place=two), umem.empty(100, place=two)
    assert [umem.trace.replay(path, context=number)["operations"] for number in (0, 1, 2)] == [6, 2, 4]
    with pytest.raises(umem.ValueError, match="no context 3"):
        umem.trace.summary(path, context=3)


def test_files_for_viewers(log, tmp_path):
    umem.trace.to_chrome(log, tmp_path / "a.json", flows=True)
    assert json.loads((tmp_path / "a.json").read_text())
    umem.trace.to_csv(log, tmp_path / "a.csv")
    with open(tmp_path / "a.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(row["Action"] == "allocate" for row in rows) == 20


def test_files_for_viewers_keep_what_they_replace(log, tmp_path):
    (tmp_path / "a.csv").touch(0o600)
    (tmp_path / "link").symlink_to("a.csv")
    umem.trace.to_csv(log, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert stat.S_IMODE((tmp_path / "a.csv").stat().st_mode) == 0o600
    written = (tmp_path / "a.csv").read_text()
    with pytest.raises(umem.ValueError, match="no context"):
        umem.trace.to_csv(log, tmp_path / "a.csv", context=200)
    assert (tmp_path / "a.csv").read_text() == written
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] == ".") == []


def test_a_log_may_be_replaced_by_its_trace(log):
    umem.trace.to_csv(log, log)
    assert "Action" in open(log).read()


def test_logs_that_cannot_be_read(log, tmp_path):
    with pytest.raises(umem.OSError) as error:
        umem.trace.summary(tmp_path / "none")
    assert error.value.errno == 2 and error.value.filename == str(tmp_path / "none")
    (tmp_path / "text").write_text("no log")
    with pytest.raises(umem.ValueError, match="no log of umem"):
        umem.trace.replay(tmp_path / "text")
    with pytest.raises(umem.OSError):
        umem.trace.to_csv(log, tmp_path / "none" / "a.csv")
    if os.path.exists("/dev/full"):
        with pytest.raises(umem.OSError, match=os.strerror(28)):
            umem.trace.to_chrome(log, "/dev/full")


def test_a_replay_needs_an_open_place(log):
    place = umem.Host()
    place.close()
    with pytest.raises(umem.ValueError, match="closed"):
        umem.trace.replay(log, place)
    with pytest.raises(umem.TypeError):
        umem.trace.replay(log, "host")


def test_a_log_without_the_place_that_is_asked_for_is_not_kept(log):
    def ask():
        for _ in range(3000):
            with pytest.raises(umem.ValueError, match="no context 9"):
                umem.trace.summary(log, context=9)

    ask()
    before = resident()
    ask()
    assert resident() - before < 1 << 20


def test_a_path_has_no_null_byte(log, tmp_path):
    for call in (lambda: umem.trace.summary(f"{log}\0x"), lambda: umem.trace.to_csv(log, f"{tmp_path}/a.csv\0x"),
                 lambda: umem.File(f"{tmp_path}/a.bin\0x", "w"),
                 lambda: umem.save(f"{tmp_path}/a.npy\0x", umem.zeros(3))):
        with pytest.raises(umem.ValueError, match="null byte"):
            call()
    assert os.listdir(tmp_path) == [log.name]
