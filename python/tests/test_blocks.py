"""Passages of arrays through a place, block by block."""
import threading

import pytest

import umem

numpy = pytest.importorskip("numpy")


@pytest.mark.parametrize("rows", [0, 7])
def test_blocks_pass_through_every_place(place, rows):
    if place.kind == "fixed":
        pytest.skip("its blocks are too small for it")
    src = umem.arange(300, dtype="int32").reshape(100, 3)
    dst = umem.zeros((100, 3), "int32")
    seen = []
    for block in umem.blocks(src, place, rows=rows, destination=dst, budget="1M"):
        assert block.array.place is place and block.out.shape == block.array.shape == (block.rows, 3)
        with block.array.host() as found:
            assert found[0, 0] == 3 * block.first
            found *= 2
        seen.append((block.number, block.first, block.rows))
    assert [number for number, _, _ in seen] == list(range(len(seen)))
    assert sum(count for _, _, count in seen) == 100
    assert dst.tolist() == (2 * numpy.arange(300).reshape(100, 3)).tolist()


def test_blocks_have_ghost_rows_and_results_of_their_own():
    src, dst = umem.arange(20, dtype="float64"), umem.zeros(20)
    for block in umem.blocks(src, umem.Host(), rows=6, before=1, after=1, clamped=True, apart=True, destination=dst):
        assert block.whole.shape == (block.rows + 2,) and (block.before, block.after) == (1, 1)
        found = block.whole.numpy()
        block.out.numpy()[:] = (found[:-2] + found[2:]) / 2
    expected = numpy.pad(numpy.arange(20.0), 1, mode="edge")
    assert dst.tolist() == ((expected[:-2] + expected[2:]) / 2).tolist()


def test_blocks_of_a_file(tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.arange(1000.0))
    total = sum(block.array.numpy().sum() for block in umem.blocks(umem.load(tmp_path / "x.npy"), umem.Host(), rows=64))
    assert total == 499500


def test_the_array_of_a_block_is_stale_when_the_next_one_begins():
    found = []
    for block in umem.blocks(umem.zeros((10, 2)), umem.Host(), rows=4):
        if found:
            with pytest.raises(umem.ValueError, match="released"):
                found[-1].array.shape
        found.append(block)
    with pytest.raises(umem.ValueError, match="released"):
        found[-1].whole.tolist()
    assert "rows 8 to 9" in repr(found[-1])


def test_memory_of_blocks_lives_as_long_as_numpy_uses_it():
    with umem.Stats(umem.Host()) as stats:
        kept = [block.array.numpy() for block in umem.blocks(umem.full(100, 3), stats, rows=30)]
        assert stats.figures["current_count"] == 1 and kept[-1].sum() == 30
        del kept
        assert stats.figures["current_count"] == 0


def test_blocks_end_early():
    with umem.Stats(umem.Host()) as stats:
        dst = umem.zeros(100)
        with umem.blocks(umem.full(100, 3.0), stats, rows=10, destination=dst) as blocks:
            assert blocks.info["blocks"] == 10 and blocks.info["rows"] == 10
            for block in blocks:
                if block.number == 3:
                    break
        assert sum(dst.tolist()) == 90 and stats.figures["current_count"] == 0
        assert list(blocks) == []
        with pytest.raises(umem.ValueError):
            blocks.info


def test_blocks_are_closed_while_one_is_awaited():
    for by_thread in (False, True):
        made = []

        def close(done, total):
            if done < 20:
                return
            if by_thread:
                thread = threading.Thread(target=made[0].close)
                thread.start()
                thread.join(30)
            else:
                made[0].close()

        made.append(umem.blocks(umem.zeros(100), umem.Host(), rows=10, progress=close))
        assert 2 <= len(list(made[0])) <= 10


def test_threads_take_turns_with_blocks():
    errors = []

    def next_too(done, total):
        try:
            next(blocks)
        except umem.RuntimeError as error:
            errors.append(error)

    blocks = umem.blocks(umem.zeros(100), umem.Host(), rows=10, progress=next_too)
    assert len(list(blocks)) == 10 and "another thread" in str(errors[0])


def test_a_failing_write_arrives_at_the_latest_when_blocks_close():
    for nth in (None, 1):
        dst = umem.zeros(1000, place=umem.Fault(umem.Host(), calls="copy-from", status="IOError", nth=nth))
        blocks = umem.blocks(umem.full(1000, 1.0), umem.Host(), rows=100, destination=dst)
        raised = False
        try:
            for block in blocks:
                if block.number == 2:
                    break
            blocks.close()
        except umem.OSError:
            raised = True
        assert raised == (nth == 1)


def test_progress_of_blocks():
    calls = []
    for _ in umem.blocks(umem.zeros(100), umem.Host(), rows=30, progress=lambda *args: calls.append(args)):
        pass
    assert calls[0] == (0, 100) and calls[-1] == (100, 100)
    with pytest.raises(umem.CancelledError):
        for _ in umem.blocks(umem.zeros(100), umem.Host(), rows=30, progress=lambda done, total: done < 60):
            pass

    def fail(done, total):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        for _ in umem.blocks(umem.zeros(100), umem.Host(), rows=30, progress=fail):
            pass


@pytest.mark.parametrize("make, error", [
    (lambda: umem.blocks(umem.zeros(()), umem.Host()), umem.ValueError),
    (lambda: umem.blocks(umem.zeros((4, 4)).T, umem.Host()), umem.ValueError),
    (lambda: umem.blocks(umem.zeros(100), umem.Host(), budget=1), umem.MemoryError),
    (lambda: umem.blocks(umem.zeros(100), umem.Limit(umem.Host(), 8)), umem.MemoryError),
    (lambda: umem.blocks(umem.zeros(4), umem.Host(), destination=umem.zeros(5)), umem.ValueError),
    (lambda: umem.blocks(umem.zeros(4), umem.Host(), destination=umem.zeros(4, "int64")), umem.TypeError),
    (lambda: umem.blocks(umem.zeros(4), 3), umem.TypeError),
    (lambda: umem.blocks("text", umem.Host()), umem.TypeError),
])
def test_wrong_blocks(make, error):
    with pytest.raises(error):
        make()


def test_failures_of_blocks_arrive():
    fault = umem.Fault(umem.Host(), calls="copy-from", status="IOError", nth=3)
    with pytest.raises(umem.OSError, match="block|row"):
        for _ in umem.blocks(umem.zeros(100), fault, rows=10):
            pass
    assert fault.failures == 1


def test_blocks_keep_what_they_use():
    src = umem.arange(100, dtype="float64", place=umem.Pool(umem.Host()))
    place = umem.Pool(umem.Host())
    blocks = umem.blocks(src, place, rows=10)
    del src
    place.close()
    assert sum(block.rows for block in blocks) == 100
