"""Objects in buckets: moto's S3, behind a proxy that checks each signature as S3 does."""
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

import numpy as np
import pytest
import servers
from servers import KEY, TOKEN, Proxy

import umem

PART = 5 << 20  # the shortest that S3 takes
WRITES = f"mode=w&part={PART}"


def data_of(size, seed=0):
    return np.random.default_rng(seed).integers(0, 256, size, "uint8")


def write(name, data, **options):
    more = "".join(f"&{key.replace('_', '-')}={value}" for key, value in options.items())
    with umem.open(f"{name}#{WRITES}{more}") as place:
        umem.copy(umem.empty(data.shape, data.dtype, place), data)


def read(name, size, options=""):
    with umem.open(name + options) as place:
        return np.asarray(umem.at(place, 0, size, "uint8").to("host:"))


def path_of(key):
    return "/bucket/" + urllib.parse.quote(key)


# ---- bytes ----


@pytest.mark.parametrize("size", [1, 1000, PART - 1, PART, PART + 1, 3 * PART + 7])
def test_an_object_is_written_and_read(s3, moto, size):
    data = data_of(size)
    write("s3://bucket/whole", data)
    assert moto.get("/bucket/whole") == data.tobytes()
    assert np.array_equal(read("s3://bucket/whole", size), data)
    assert moto.uploads("bucket") == 0
    methods = [request.method for request in s3.requests if request.method != "GET"]
    parts = -(-size // PART)
    assert methods == (["PUT"] if parts == 1 else ["POST"] + ["PUT"] * parts + ["POST"])


@pytest.mark.parametrize("flushes", [True, False])
def test_an_object_without_an_array_is_empty(s3, moto, flushes):
    moto.put("/bucket/empty", b"old")
    with umem.open("s3://bucket/empty#mode=w") as place:
        if flushes:
            place.flush()
    assert moto.get("/bucket/empty") == b""
    with umem.open("s3://bucket/empty") as place:
        assert place.info.capacity == 0


def test_parts_of_an_object_are_read(s3, moto):
    data = data_of(1 << 20).reshape(1024, 1024)
    moto.put("/bucket/parts", data.tobytes())
    with umem.open("s3://bucket/parts") as place:
        array = umem.empty(data.shape, "uint8", place)
        assert np.array_equal(np.asarray(array[3:5].to("host:")), data[3:5])
        assert np.array_equal(np.asarray(array[::100, 7:9].to("host:")), data[::100, 7:9])
        with pytest.raises(IndexError, match="past the end"):
            umem.at(place, (1 << 20) - 1, 2, "uint8").to("host:")


def test_an_object_has_the_bytes_of_a_file(s3, moto, tmp_path):
    def fill(place):
        for k, (shape, kind) in enumerate([((3,), "f8"), ((1000, 33), "u1"), ((7,), "u2"), ((700, 1000), "i8")]):
            umem.copy(umem.empty(shape, kind, place), np.full(shape, k + 1, kind))

    with umem.File(tmp_path / "file", "w") as place:
        fill(place)
    with umem.open(f"s3://bucket/layout#{WRITES}") as place:
        fill(place)
    assert moto.get("/bucket/layout") == (tmp_path / "file").read_bytes()


def test_an_object_of_a_web_server_goes_to_a_bucket(s3, moto, nginx):
    """With fewer buffers for parts than pieces that arrive."""
    data = data_of(136 << 20)
    (nginx.root / "long").write_bytes(data.tobytes())
    with umem.Url(nginx.plain + "/long") as source, umem.open("s3://bucket/long#mode=w&connections=4") as place:
        umem.copy(umem.empty(data.shape, "uint8", place), umem.at(source, 0, data.size, "uint8"))
    (nginx.root / "long").unlink()
    assert moto.get("/bucket/long") == data.tobytes()


KEYS = ["a b", "a+b", "a%b", "a?b", "a#b", "a&b=c;d", "ä/ö/€", "a//b", "~-._", "(x)!'*", "a:b@c", "[1]", '"<>\\^`{|}', "\x01",
        "k" * 1000]


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_keys_are_encoded(s3, moto, key):
    written = key.replace("%", "%25").replace("?", "%3F").replace("#", "%23")
    data = data_of(100)
    write(f"s3://bucket/{written}", data)
    assert moto.get(path_of(key)) == data.tobytes()
    assert np.array_equal(read(f"s3://bucket/{written}", 100), data)


WRONG = [
    ("s3://bucket", "a key follows"), ("s3://bucket/", "a key follows"), ("s3://b/k", "3 to 255"), ("s3:bucket/k", "otherwise"),
    ("s3://bucket/k?mode=w", "%3F"), ("s3://bucket/%", "%25"), ("s3://bucket/%4", "%25"), ("s3://bucket/%00", "value 0"),
    ("s3://bucket/../k", "part"), ("s3://bucket/a/.", "part"), ("s3://-bucket/k", "begins"), ("s3://buc..ket/k", "begins"),
    ("s3://bucket/" + 1025 * "k", "1024"), ("s3://user@host/k", "3 to 255|a key follows"), ("s3://bucket/k#mode=x", "r, w"),
    ("s3://bucket/k#part=1M&mode=w", "5 MiB"), ("s3://bucket/k#region=a/b", "region"), ("s3://bucket/k#endpoint=ftp://x", "endpoint"),
    ("s3://bucket/k#endpoint=https://user:word@x", "endpoint"), ("s3://Bucket/k#style=host", "style path"),
    ("s3://bucket/k#connections=0", "connections"), ("s3://bucket/k#connections=65&mode=w", "connections")]


@pytest.mark.parametrize("name, why", WRONG, ids=range(len(WRONG)))
def test_wrong_names_are_refused(s3, name, why):
    with pytest.raises(umem.ValueError, match=why):
        umem.open(name)
    assert not s3.requests


# ---- writing ----


def test_bytes_may_be_written_until_their_part_is_sent(s3, moto):
    data = data_of(2 * PART)
    with umem.open(f"s3://bucket/twice#{WRITES}") as place:
        array = umem.empty(2 * PART, "uint8", place)
        array[:100] = data_of(100, 1)
        array[50:150] = 7
        array[:PART] = data[:PART]
        with pytest.raises(umem.NotSupportedError, match="already sent"):
            array[0:1] = 1
        with pytest.raises(umem.OSError, match="earlier failure"):
            place.close()
    assert moto.get("/bucket/twice") is None and moto.uploads("bucket") == 0


def test_parts_are_sent_in_any_order(s3, moto):
    data = data_of(4 * PART + 9)
    edges = [0, 10, PART - 3, PART + 7, 2 * PART, 3 * PART - 1, 3 * PART + 5, len(data)]
    with umem.open(f"s3://bucket/order#{WRITES}&connections=2") as place:
        array = umem.empty(len(data), "uint8", place)
        for k in (5, 3, 0, 6, 1, 4, 2):
            array[edges[k]:edges[k + 1]] = data[edges[k]:edges[k + 1]]
    assert moto.get("/bucket/order") == data.tobytes()


def test_incomplete_parts_have_a_bound(s3, moto):
    with contextlib.suppress(umem.OSError), umem.open(f"s3://bucket/bound#{WRITES}&connections=1") as place:
        array = umem.empty(7 * PART, "uint8", place)
        for part in range(5):
            array[part * PART] = 1
        with pytest.raises(umem.MemoryError, match="ascending order"):
            array[5 * PART] = 1
    assert moto.get("/bucket/bound") is None


def test_threads_write_parts_of_one_object(s3, moto):
    data = data_of(6 * PART).reshape(6 * 16, -1)
    with umem.open(f"s3://bucket/threads#{WRITES}") as place:
        array = umem.empty(data.shape, "uint8", place)

        def fill(k):
            for row in range(k, len(data), 4):
                array[row] = data[row]

        threads = [threading.Thread(target=fill, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert moto.get("/bucket/threads") == data.tobytes()


def test_unwritten_bytes_make_no_object(s3, moto):
    moto.put("/bucket/old", b"old")
    with pytest.raises(umem.OSError, match=r"10 of its 15728650 bytes were never written"):
        with umem.open(f"s3://bucket/old#{WRITES}") as place:
            array = umem.empty(3 * PART + 10, "uint8", place)
            array[:3 * PART] = 1
    assert moto.get("/bucket/old") == b"old" and moto.uploads("bucket") == 0


def test_a_flush_writes_zeros_for_unwritten_bytes(s3, moto):
    with umem.open(f"s3://bucket/zeros#{WRITES}") as place:
        array = umem.zeros(3 * PART + 10, "uint8", place)
        array[PART + 3:PART + 90] = 5
        place.flush()
        place.flush()
        with pytest.raises(umem.NotSupportedError, match="complete"):
            array[0] = 1
        with pytest.raises(umem.NotSupportedError, match="complete"):
            umem.empty(1, "uint8", place)
    wanted = np.zeros(3 * PART + 10, "uint8")
    wanted[PART + 3:PART + 90] = 5
    assert moto.get("/bucket/zeros") == wanted.tobytes()


def test_an_exception_makes_no_object(s3, moto):
    with pytest.raises(KeyError):
        with umem.S3("s3://bucket/left", "w", part=PART) as place:
            array = umem.empty(3 * PART, "uint8", place)
            array[:2 * PART] = 1
            raise KeyError
    assert moto.get("/bucket/left") is None and moto.uploads("bucket") == 0


def test_an_object_longer_than_its_parts_allow_is_refused(s3):
    with umem.open(f"s3://bucket/long#{WRITES}") as place:
        umem.empty(1, "uint8", place)
        with pytest.raises(umem.MemoryError, match="the option length"):
            umem.empty(10000 * PART, "uint8", place)
        place.abandon()


def test_parts_are_long_enough_for_the_length(s3, moto):
    with umem.S3("s3://bucket/length", "w", length="160G") as place:
        array = umem.empty(40 << 20, "uint8", place)
        array[:] = 3
    assert {len(request.body) for request in s3.requests if request.method == "PUT"} == {17 << 20, 6 << 20}
    assert moto.get("/bucket/length") == (40 << 20) * b"\3"


def test_parts_in_flight_are_bounded(moto, s3):
    s3.edit = lambda request, reply: setattr(reply, "wait", 0.05 if request.method == "PUT" else 0)
    write("s3://bucket/flight", data_of(6 * PART), connections=3)
    assert 2 <= s3.most_inflight <= 3


PROGRAM = f"""
import os, resource, sys
import umem
place = umem.open("s3://bucket/{{}}#{WRITES}&connections=2")
array = umem.empty(({{}}, {PART}), "uint8", place)
row = umem.full({PART}, 7, "uint8", "host:")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for k in range({{}}):
    array[k] = row
"""


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)


def test_memory_is_bounded(s3, moto):
    done = run(PROGRAM.format("memory", 20, 20) + "place.close()\n"
               "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 6 * 1.125 * (PART >> 10) + (24 << 10)  # six buffers, of 100 MiB that are written
    assert len(moto.get("/bucket/memory")) == 20 * PART


def test_a_killed_process_leaves_no_object(s3, moto):
    before = moto.uploads("bucket")
    done = run(PROGRAM.format("killed", 9, 8) + f"import time; time.sleep(0.5); os.kill(os.getpid(), {int(signal.SIGKILL)})")
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert moto.get("/bucket/killed") is None
    assert moto.uploads("bucket") == before + 1
    for line in moto.ask("GET", "/bucket?uploads")[2].split(b"<UploadId>")[1:]:
        moto.ask("DELETE", f"/bucket/killed?uploadId={line.split(b'<')[0].decode()}")


UPLOAD = ["begin", "part 1", "part 2", "completion"]


@pytest.mark.parametrize("answered", [False, True], ids=["before the server has it", "after"])
@pytest.mark.parametrize("what, parts", [("put", 1)] + [(name, 2) for name in UPLOAD])
def test_a_process_killed_at_any_request_leaves_the_old_object_or_the_new_one(s3, moto, what, parts, answered):
    moto.put("/bucket/old", b"old")
    number, started, seen, real = (0 if what == "put" else UPLOAD.index(what)), threading.Event(), [], s3.reply

    def reply(request):
        if request.method == "GET":
            return real(request)
        with s3.lock:
            seen.append(request)
            mine = len(seen) == number + 1
        if mine and answered:
            real(request)
        if mine:
            started.wait()
            child.kill()
            child.wait()
        return servers.Reply(503) if mine else real(request)

    s3.reply = reply
    child = subprocess.Popen([sys.executable, "-c", PROGRAM.format("old", parts, parts).replace("connections=2", "connections=1")
                              + "place.close()"], stderr=subprocess.PIPE, text=True)
    started.set()
    error = child.communicate(timeout=120)[1]
    assert child.returncode == -signal.SIGKILL, error
    is_made = answered and what in ("put", "completion")
    assert moto.get("/bucket/old") == (parts * PART * b"\7" if is_made else b"old")
    left = [line.split(b"<")[0].decode() for line in moto.ask("GET", "/bucket?uploads")[2].split(b"<UploadId>")[1:]]
    assert len(left) == (0 if is_made or parts == 1 or (what == "begin" and not answered) else 1)
    for upload in left:
        assert moto.ask("DELETE", f"/bucket/old?uploadId={upload}")[0] == 204
    assert moto.uploads("bucket") == 0


def test_processes_killed_at_random_leave_whole_objects(s3, moto):
    program = PROGRAM.replace("for k", "value = int(sys.argv[1])\nrow[:] = value\nfor k").format("random", 3, 3) + "place.close()"
    chance, wholes, made = random.Random(5), [b"old"], 0
    moto.put("/bucket/random", b"old")
    for value in range(1, 9):
        wholes.append(3 * PART * bytes([value]))
        child = subprocess.Popen([sys.executable, "-c", program, str(value)], stderr=subprocess.DEVNULL)
        before = len(s3.requests)
        while len(s3.requests) == before and child.poll() is None:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.2))
        child.kill()
        made += child.wait() == 0
        while s3.inflight:
            time.sleep(0.01)
        assert moto.get("/bucket/random") in wholes
    assert made < 8
    for line in moto.ask("GET", "/bucket?uploads")[2].split(b"<UploadId>")[1:]:
        moto.ask("DELETE", f"/bucket/random?uploadId={line.split(b'<')[0].decode()}")


def test_a_forked_child_leaves_the_upload_alone(s3, moto):
    done = run(PROGRAM.format("forked", 4, 2) + f"""
child = os.fork()
if not child:
    try:
        array[2] = row
    except umem.NotSupportedError:
        os._exit(3)
    os._exit(4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
array[2], array[3] = row, row
place.close()
""")
    assert done.returncode == 0 and done.stdout == "3\n", done
    assert len(moto.get("/bucket/forked")) == 4 * PART


# ---- failures of the server ----


def is_begin(request):
    return request.method == "POST" and request.path.endswith("?uploads=")


def is_part(request):
    return request.method == "PUT"


def is_complete(request):
    return request.method == "POST" and "uploadId=" in request.path


def fail_with(proxy, which, status, code, times):
    """The first requests of a kind fail, before they have an effect."""
    real, count = proxy.reply, [0]

    def reply(request):
        if not which(request) or count[0] == times:
            return real(request)
        count[0] += 1
        text = f"\n<?xml version='1.0'?>\n<Error><Code>{code}</Code><Message>no</Message></Error>"
        return servers.Reply(status, [("Content-Type", "application/xml")], text.encode())

    proxy.reply = reply
    return count


@pytest.mark.parametrize("which", [is_begin, is_part, is_complete])
@pytest.mark.parametrize("status, code", [(403, "AccessDenied"), (400, "EntityTooSmall"), (404, "NoSuchBucket"), (200, "AccessDenied")])
def test_an_error_of_the_server_makes_no_object(s3, moto, which, status, code):
    moto.put("/bucket/error", b"old")
    fail_with(s3, which, status, code, -1)
    with pytest.raises(umem.OSError, match=rf"HTTP status {status} \({code}\)"):
        write("s3://bucket/error", data_of(PART + 1))
    assert moto.get("/bucket/error") == b"old" and moto.uploads("bucket") == 0


@pytest.mark.parametrize("which", [is_begin, is_part, is_complete])
@pytest.mark.parametrize("status, code", [(500, "InternalError"), (503, "SlowDown"), (400, "RequestTimeout"), (200, "InternalError")])
def test_an_error_that_passes_is_tried_again(s3, moto, which, status, code):
    """S3 may answer 200 before it joins the parts, and send an error as the body."""
    data = data_of(PART + 1)
    count = fail_with(s3, which, status, code, 2)
    write("s3://bucket/again", data)
    assert count == [2] and moto.get("/bucket/again") == data.tobytes()


def test_a_lost_answer_to_the_completion_is_found_out(s3, moto):
    data, count = data_of(PART + 1), [0]

    def cut(request, reply):
        if is_complete(request) and count[0] == 0:
            count[0] += 1
            reply.raw = b""

    s3.edit = cut
    write("s3://bucket/lost", data)
    assert count == [1] and moto.get("/bucket/lost") == data.tobytes()


@pytest.mark.parametrize("etag", [None, "x", '"a', 'W/"a"', '"<a>"'])
def test_a_part_without_an_etag_fails(s3, moto, etag):
    s3.edit = lambda request, reply: reply.set("ETag", etag) if is_part(request) else None
    with pytest.raises(umem.OSError, match="no ETag|contradict"):
        write("s3://bucket/etag", data_of(PART + 1))
    assert moto.get("/bucket/etag") is None and moto.uploads("bucket") == 0


NUMBERS = [b"", b"<UploadId></UploadId>", b"<UploadId>" + 2000 * b"x" + b"</UploadId>", b"<UploadId>a&b</UploadId>",
                                  b"<UploadId>a b</UploadId>", b"<UploadId>abc", 20000 * b"<", b"\0" + b"<UploadId>a</UploadId>"]


@pytest.mark.parametrize("body", NUMBERS, ids=range(len(NUMBERS)))
def test_a_malformed_number_of_an_upload_fails(s3, moto, body):
    real = s3.reply
    s3.reply = lambda request: servers.Reply(200, [], body) if is_begin(request) else real(request)
    with pytest.raises(umem.OSError, match="no UploadId"):
        write("s3://bucket/number", data_of(PART + 1))
    assert moto.get("/bucket/number") is None


@pytest.mark.parametrize("how", ["cut", "reset"])
def test_cut_connections_are_tried_again(s3, moto, how):
    data = data_of(PART + 1)

    def edit(request, reply):
        if request.number % 3 == 1 and not is_complete(request):
            reply.raw = b"HTTP/1.1 200"
            reply.reset = how == "reset"

    s3.edit = edit
    write("s3://bucket/cut", data)
    assert moto.get("/bucket/cut") == data.tobytes()
    assert np.array_equal(read("s3://bucket/cut", len(data)), data)


def test_an_object_that_changes_is_never_a_mixture(s3, moto):
    moto.put("/bucket/changes", 1000 * b"a")
    with umem.open("s3://bucket/changes") as place:
        assert bytes(umem.at(place, 0, 10, "uint8").to("host:")) == 10 * b"a"
        moto.put("/bucket/changes", 1000 * b"b")
        with pytest.raises(umem.OSError, match="changed"):
            umem.at(place, 500, 10, "uint8").to("host:")


def test_a_missing_object_says_so(s3):
    with pytest.raises(umem.OSError, match=r"s3://bucket/nothing: HTTP status 404"):
        umem.open("s3://bucket/nothing")


# ---- servers ----


def test_credentials_are_not_sent_to_another_server(s3, moto, monkeypatch):
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    with Proxy(data_of(1000).tobytes()) as other:
        def redirect(request, reply):
            reply.status = 307
            reply.set("Location", other.url + "/elsewhere")

        s3.edit = redirect
        assert np.array_equal(read("s3://bucket/moved", 1000), data_of(1000))
        assert other.requests
        for request in other.requests:
            text = str(request.headers)
            assert "authorization" not in text and KEY not in text and TOKEN not in text and "x-amz" not in text


def test_the_bucket_can_be_in_the_host(s3, moto):
    data = data_of(1000)
    with Proxy(data.tobytes(), check=servers.check_signature) as proxy:
        options = f"#style=host&endpoint=http://localhost:{proxy.port}"
        assert np.array_equal(read("s3://bucket/k", 1000, options), data)
        assert {(request.header("host"), request.path) for request in proxy.requests} == {(f"bucket.localhost:{proxy.port}", "/k")}


def test_buckets_with_dots(s3, moto):
    moto.put("/with.dots/k", b"dots")
    assert bytes(read("s3://with.dots/k", 4)) == b"dots"


def test_the_endpoint_may_have_a_path(s3):
    with Proxy(b"0123456789", check=servers.check_signature) as proxy:
        assert bytes(read("s3://bucket/k", 4, f"#endpoint={proxy.url}/a/b/")) == b"0123"
        assert proxy.requests[0].path == "/a/b/bucket/k"


def test_endpoints_of_the_environment(s3, moto, monkeypatch):
    moto.put("/bucket/where", b"where")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3.url)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert bytes(read("s3://bucket/where", 5)) == b"where"


def test_ctrl_c_ends_a_write_to_a_silent_server(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        place = umem.open("s3://bucket/key#mode=w&part=5M&connections=2")
        array = umem.empty(20 << 20, "uint8", place)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have ignored
        begin = time.monotonic()
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            with pytest.raises(KeyboardInterrupt):
                umem.copy(array, np.ones(20 << 20, "uint8"))
        finally:
            signal.signal(signal.SIGINT, before)
        with pytest.raises(OSError, match="because of an earlier failure"):
            place.close()
        assert time.monotonic() - begin < 20  # stall_ms is 30 s
