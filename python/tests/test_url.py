"""Places behind a URL: objects of a web server that the test starts."""
import contextlib
import http.server
import os
import re
import signal
import threading
import time

import pytest

import umem

SECRET = "hidden"


class Object(http.server.BaseHTTPRequestHandler):
    """Serves ranges of its server's bytes, one by one."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        server.heads.append((self.path, dict(self.headers)))
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not found or self.path.startswith("/missing"):
            self.send_error(404 if found else 400)
            return
        if server.is_silent:
            server.ended.wait(60)
            self.close_connection = True
            return
        first, last = map(int, found.groups())
        part = server.bytes[first:last + 1]
        self.send_response(206)
        self.send_header("ETag", server.etag)
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(server.bytes)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(part)


@pytest.fixture
def server():
    """A web server of 40,000 numbers of int32."""
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Object)
    found.bytes, found.etag, found.heads = umem.arange(40000, dtype="int32").tobytes(), '"1"', []
    found.is_silent, found.ended, found.handle_error = False, threading.Event(), lambda *_: None  # clients may go
    found.address = f"127.0.0.1:{found.server_address[1]}"
    thread = threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield found
    found.ended.set()
    found.shutdown()
    found.server_close()
    thread.join()


def test_an_object_is_an_array(server):
    with umem.Url(f"http://{server.address}/a.bin") as place:
        assert place.kind == "http" and place.stack == "http" and place.info.capacity == 160000
        array = umem.at(place, 0, 40000, "int32")
        assert array[:5].tolist() == [0, 1, 2, 3, 4] and array[39999].tolist() == 39999
        here = umem.empty(40000, "int32")
        found = umem.copy(here, array)
        assert here.tolist() == list(range(40000)) and found["route"] == "url -> http -> host"
        assert array[::1000].to("host:").tolist() == list(range(0, 40000, 1000))
        with pytest.raises(umem.NotSupportedError, match="the array is read-only"):
            array[0] = 1
        with pytest.raises(umem.NotSupportedError, match="is not writable"):
            umem.zeros(3, place=place)


def test_names_of_umem_open(server):
    place = umem.open(f"stats+http://{server.address}/a.bin?signed={SECRET}#connections=2&piece=64K")
    assert type(place.layer("http")) is umem.Url and server.heads[0][0] == f"/a.bin?signed={SECRET}"
    assert SECRET not in repr(place) and "/a.bin?..." in repr(place)


def test_options_and_credentials(server):
    place = umem.Url(f"http://me:{SECRET}@{server.address}/a.bin", connections=3, piece="64K", gap=0, retries=0,
                     connect_ms=1000, stall_ms=1000, total_ms=60000, version="1.1", redirects="none", unpinned=True,
                     headers={"X-Key": SECRET, "X-More": "2"})
    head = server.heads[0][1]
    assert head["Authorization"].startswith("Basic ") and head["X-Key"] == SECRET and head["X-More"] == "2"
    assert SECRET not in repr(place)
    umem.Url(f"http://{server.address}/a.bin", bearer=SECRET)
    assert server.heads[-1][1]["Authorization"] == f"Bearer {SECRET}"
    for wrong in "ftp://127.0.0.1/x", "x", "":
        with pytest.raises(umem.ValueError, match="neither http: nor https:"):
            umem.Url(wrong)
    with pytest.raises(umem.ValueError, match="redirects"):
        umem.Url(f"http://{server.address}/a.bin", redirects="some")


@pytest.mark.parametrize("text", ["http://me:hidden@{}/missing?hidden", "http://me:hidden@127.0.0.1:1/?hidden",
                                  "http://me:hidden@[::1/?hidden"])
def test_failures_show_no_credentials(server, text):
    with pytest.raises(umem.Error) as caught:
        umem.Url(text.format(server.address), retries=0, bearer=SECRET, headers={"X": SECRET})
    assert SECRET not in str(caught.value)


def test_an_object_that_changes_is_an_error(server):
    array = umem.at(umem.Url(f"http://{server.address}/a.bin"), 0, 40000, "int32")
    server.etag = '"2"'
    with pytest.raises(umem.OSError, match="the object has changed"):
        array.to("host:")


def test_many_parts_in_one_call(server):
    array = umem.at(umem.Url(f"http://{server.address}/a.bin"), 0, 40000, "int32")
    parts = [umem.empty(10, "int32") for _ in range(100)]
    umem.copy_many([(part, array[i * 20:i * 20 + 10]) for i, part in enumerate(parts)])
    assert [part[0].tolist() for part in parts] == list(range(0, 2000, 20))
    assert len(server.heads) == 2  # they are near


def test_a_transfer(server):
    array = umem.at(umem.Url(f"http://{server.address}/a.bin"), 0, 40000, "int32")
    here = umem.empty(40000, "int32")
    with umem.start(here, array) as transfer:
        transfer.wait()
    assert here[39999].tolist() == 39999



# ---- results of what is read-only ----

def test_results_are_in_ram(server):
    numpy = pytest.importorskip("numpy")
    there = umem.at(umem.Url(f"http://{server.address}/a.bin"), 0, (200, 200), "int32")
    here = numpy.arange(40000, dtype="int32").reshape(200, 200)
    chosen = here[:, 0] % 3 == 0
    for made, wanted in ((there[[3, 1, -1]], here[[3, 1, -1]]), (there[chosen], here[chosen]),
                         (there[[[2], [4]], [7, 8]], here[[[2], [4]], [7, 8]]), (there.take([5, 2], 1), here.take([5, 2], 1)),
                         (there.astype("f8"), here.astype("f8")), (there.astype("int32", copy=True), here), (there.copy(), here),
                         (there[:, ::2].ravel(), here[:, ::2].ravel()), (there[::-1].flatten(), here[::-1].flatten()),
                         (umem.zeros_like(there), numpy.zeros_like(here)), (umem.asarray(there, "f4"), here.astype("f4")),
                         (umem.concatenate([there, there]), numpy.concatenate([here, here]))):
        assert made.place == umem.Host() and not made.read_only
        assert made.dtype == wanted.dtype and numpy.array_equal(made, wanted)


# ---- servers that fall silent ----

def pass_blocks(there, here):
    for _ in umem.blocks(there, "host:", budget="1M"):
        pass


def forget(there, here):
    umem.start(here, there)
    time.sleep(0)  # where Python runs the handler


@pytest.mark.parametrize("use", [
    lambda there, _: there.sum(), lambda there, _: there.sum(axis=0), lambda there, _: there.std(), lambda there, _: there.std(axis=1),
    lambda there, _: there.any(), lambda there, _: there.argmin(axis=0), lambda there, here: here.__setitem__(..., there),
    lambda there, _: there[[0, 5, 999]], lambda there, _: there.numpy(copy=True), lambda there, here: umem.all_equal(there, here),
    lambda there, here: umem.copy_many([(here[k], there[k]) for k in range(500)]), pass_blocks,
    lambda there, here: umem.start(here, there).wait(), forget],
    ids=["sum", "sum of columns", "std", "std of rows", "any", "argmin", "assignment", "rows", "numpy", "all_equal", "copy_many",
         "blocks", "wait", "forgotten transfer"])
def test_ctrl_c_ends_what_waits_for_a_server(server, use):
    server.bytes = bytes(1 << 24)
    there = umem.at(umem.Url(f"http://{server.address}/a.bin", retries=0), 0, (1 << 10, 1 << 12), "f4")
    here = umem.empty(there.shape, "f4")
    server.is_silent = True
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have ignored
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            use(there, here)
        assert time.monotonic() - begin < 10  # stall_ms: 30 s
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
