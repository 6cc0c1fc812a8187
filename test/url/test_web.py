"""Objects of web servers: nginx over http, TLS and HTTP/2, and a proxy that misbehaves."""
import os
import signal
import threading
import time

import numpy as np
import pytest
import servers
from servers import Proxy

import umem

SIZE = 3_000_001


def data_of(size=SIZE, seed=0):
    return np.random.default_rng(seed).integers(0, 256, size, "uint8")


DATA = data_of()


def read(url, size=SIZE, **options):
    with umem.Url(url, **options) as place:
        assert place.info.capacity == size
        return np.asarray(umem.at(place, 0, size, "uint8").to("host:"))


@pytest.fixture(autouse=True, scope="module")
def files(nginx):
    (nginx.root / "data").write_bytes(DATA.tobytes())
    (nginx.root / "a b+c%d").write_bytes(b"odd")
    (nginx.root / "empty").write_bytes(b"")


# ---- nginx ----


def test_http(nginx):
    assert np.array_equal(read(nginx.plain + "/data"), DATA)


@pytest.mark.parametrize("version", ["auto", "1.1", "2"])
def test_tls(nginx, version):
    assert np.array_equal(read(nginx.secure + "/data", version=version, ca_file=nginx.authority), DATA)


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "CURL_CA_BUNDLE"])
def test_authorities_of_the_environment(nginx, monkeypatch, name):
    monkeypatch.setenv(name, str(nginx.authority))
    assert np.array_equal(read(nginx.secure + "/data"), DATA)


def test_an_unknown_authority_is_refused(nginx, tmp_path):
    for authority in (None, servers.make_authority(tmp_path, "another")):
        with pytest.raises(umem.OSError, match="certificate"):
            umem.Url(nginx.secure + "/data", ca_file=authority, retries=0)


def test_a_certificate_of_another_host_is_refused(nginx, tmp_path):
    authority = servers.make_authority(tmp_path, "authority")
    servers.make_certificate(tmp_path, authority, "DNS:example.org")
    with Proxy(b"0123", certificate=tmp_path) as proxy, pytest.raises(umem.OSError, match="certificate|subject"):
        umem.Url(proxy.url + "/data", ca_file=authority, retries=0)


def test_names_of_umem_open(nginx):
    with umem.open(f"{nginx.plain}/a%20b+c%25d#connections=2&retries=0") as place:
        assert bytes(umem.at(place, 0, 3, "uint8").to("host:")) == b"odd"
        assert isinstance(place, umem.Url)


def test_an_empty_object(nginx):
    with umem.Url(nginx.plain + "/empty") as place:
        assert place.info.capacity == 0


def test_parts_and_lists(nginx):
    with umem.Url(nginx.plain + "/data", piece="64K", connections=7) as place:
        array = umem.at(place, 1, (1000, 3000), "uint8")
        wanted = DATA[1:].reshape(1000, 3000)
        assert np.array_equal(np.asarray(array[7:900:13, ::-1].to("host:")), wanted[7:900:13, ::-1])
        rows = np.random.default_rng(1).permutation(1000)[:200]
        target = umem.empty((200, 3000), "uint8", "host:")
        umem.copy_many([(target[k], array[int(row)]) for k, row in enumerate(rows)])
        assert np.array_equal(np.asarray(target), wanted[rows])
        transfer = umem.start(umem.empty((1000, 3000), "uint8", "host:"), array)
        transfer.wait()


def test_a_file_is_the_target(nginx, tmp_path):
    with umem.Url(nginx.plain + "/data") as place, umem.File(tmp_path / "copy", "w") as target:
        umem.copy(umem.empty(SIZE, "uint8", target), umem.at(place, 0, SIZE, "uint8"))
    assert (tmp_path / "copy").read_bytes() == DATA.tobytes()


def test_threads_read_one_place(nginx):
    found = [None] * 8
    with umem.Url(nginx.plain + "/data", connections=4) as place:
        def work(k):
            found[k] = np.asarray(umem.at(place, k * 1000, 100_000, "uint8").to("host:"))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for k in range(8):
        assert np.array_equal(found[k], DATA[k * 1000:k * 1000 + 100_000])


def test_passwords(nginx):
    private = nginx.plain + "/private/data"
    assert np.array_equal(read(private, user="user", password="pass word"), DATA)
    assert np.array_equal(read(private.replace("http://", "http://user:pass%20word@")), DATA)
    with pytest.raises(umem.OSError, match="401") as found:
        umem.Url(private.replace("http://", "http://user:wrong-word@"))
    assert "wrong-word" not in str(found.value)


def test_redirects(nginx):
    assert np.array_equal(read(nginx.plain + "/moved/data"), DATA)
    with pytest.raises(umem.OSError, match="redirect"):
        umem.Url(nginx.plain + "/moved/data", redirects="none")
    with pytest.raises(umem.OSError, match="from https to http"):
        umem.Url(nginx.secure + "/to-http/data", ca_file=nginx.authority)


def test_a_password_is_not_sent_to_another_host(nginx):
    def move(request, reply):
        reply.status = 302
        reply.set("Location", nginx.plain + "/data")

    with Proxy(b"0123", edit=move) as first:
        with Proxy(nginx.port) as second:
            first.edit = lambda request, reply: (setattr(reply, "status", 302), reply.set("Location", second.url + "/data"))
            assert np.array_equal(read(first.url + "/x", user="user", password="word", headers={"X-Secret": "hidden"}), DATA)
            assert first.requests[0].header("authorization") and first.requests[0].header("x-secret") == "hidden"
            for request in second.requests:
                assert request.header("authorization") is None and request.header("x-secret") is None


def test_servers_without_ranges_or_tags(nginx):
    with pytest.raises(umem.NotSupportedError, match="range"):
        umem.Url(nginx.plain + "/no-range/data")
    with pytest.raises(umem.NotSupportedError, match="unpinned"):
        umem.Url(nginx.plain + "/no-tag/data")
    assert np.array_equal(read(nginx.plain + "/no-tag/data", unpinned=True), DATA)


@pytest.mark.parametrize("path, status", [("/missing", 404), ("/", 403)])
def test_a_missing_object_says_so(nginx, path, status):
    with pytest.raises(umem.OSError, match=rf"HTTP status {status}"):
        umem.Url(nginx.plain + path)


def test_a_file_that_changes_is_never_a_mixture(nginx):
    path = nginx.root / "changes"
    path.write_bytes(1000 * b"a")
    with umem.Url(nginx.plain + "/changes") as place:
        assert bytes(umem.at(place, 0, 4, "uint8").to("host:")) == b"aaaa"
        path.write_bytes(1001 * b"b")
        with pytest.raises(umem.OSError, match="changed"):
            umem.at(place, 0, 4, "uint8").to("host:")


def test_a_proxy_of_the_environment(nginx, monkeypatch):
    with Proxy(nginx.port) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert np.array_equal(read(nginx.plain + "/data"), DATA)
        assert proxy.requests and all(request.path.startswith("http://") for request in proxy.requests)
        count = len(proxy.requests)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert np.array_equal(read(nginx.plain + "/data"), DATA)
        assert len(proxy.requests) == count


def test_nothing_listens():
    with pytest.raises(umem.OSError, match="127.0.0.1"):
        umem.Url(f"http://127.0.0.1:{servers.free_port()}/x", retries=1)


# ---- a server that misbehaves, once: the bytes are right ----


def once(change):
    """An edit of every third answer to a range after the first."""
    def edit(request, reply):
        if request.number % 3 == 1:
            change(request, reply)

    return edit


def cut(request, reply):
    reply.cut = len(reply.body) // 2


def cut_head(request, reply):
    reply.raw = b"HTTP/1.1 206 Partial\r\nContent-Le"


def nothing(request, reply):
    reply.raw = b""


def reset(request, reply):
    reply.cut, reply.reset = 100, True


def stall(request, reply):
    reply.stall = (len(reply.body) // 2, 3)


def stall_head(request, reply):
    reply.wait = 3


def busy(status):
    def change(request, reply):
        reply.status, reply.body = status, b"busy"
        reply.set("Content-Length", None)

    change.__name__ = f"busy{status}"
    return change


def later(request, reply):
    busy(503)(request, reply)
    reply.set("Retry-After", "1")


PASSES = [cut, cut_head, nothing, reset, stall, stall_head, later] + [busy(status) for status in (408, 429, 500, 502, 503, 504)]


@pytest.mark.parametrize("change", PASSES, ids=lambda change: change.__name__)
def test_what_passes_is_tried_again(change):
    with Proxy(DATA.tobytes(), edit=once(change)) as proxy:
        assert np.array_equal(read(proxy.url + "/data", piece="256K", stall_ms=300), DATA)
        again = len(proxy.requests) - 1 - -(-SIZE // (256 << 10))
        assert again > 0 or any(request.number % 3 == 1 for request in proxy.requests)


def test_only_missing_bytes_are_requested_again():
    with Proxy(DATA.tobytes(), edit=lambda request, reply: cut(request, reply) if request.number == 1 else None) as proxy:
        assert np.array_equal(read(proxy.url + "/data", piece="4M", connections=1), DATA)
        sent = sum(last - first + 1 for first, last in (request.range for request in proxy.requests[1:]))
        assert SIZE < sent < 1.6 * SIZE


# ---- always: it is refused, and no byte of it is used ----


def header(name, value):
    def change(request, reply):
        reply.set(name, value(reply) if callable(value) else value)

    change.__name__ = f"{name}={value if isinstance(value, str) or value is None else 'odd'}"
    return change


def whole(request, reply):
    reply.status, reply.body = 200, DATA.tobytes()
    reply.set("Content-Range", None)
    reply.set("Content-Length", None)


def longer(request, reply):
    reply.body += b"more"
    reply.set("Content-Length", None)


def shorter(request, reply):
    reply.body = reply.body[:-1]
    reply.set("Content-Length", None)


def shifted(request, reply):
    first, last = request.range
    reply.set("Content-Range", f"bytes {first + 1}-{last + 1}/{SIZE}")


def garbage(request, reply):
    reply.raw = os.urandom(2000)


def endless_head(request, reply):
    reply.raw = b"HTTP/1.1 206 Partial\r\n" + b"X-More: " + 2_000_000 * b"x"


def other_body(request, reply):
    reply.status = 404


def changed(request, reply):
    reply.set("ETag", '"two"')


REFUSED = [whole, longer, shorter, shifted, garbage, endless_head, other_body, changed, header("ETag", None),
           header("Content-Range", None), header("Content-Range", "bytes 0-9"), header("Content-Range", "bytes 9-0/10"),
           header("Content-Range", "bytes */10"), header("Content-Range", f"bytes 0-99999999999999999999/{SIZE}"),
           header("Content-Range", lambda reply: reply.header("content-range").replace(str(SIZE), str(SIZE + 1))),
           header("Content-Encoding", "gzip"), header("Content-Length", lambda reply: len(reply.body) - 1),
           header("Content-Length", "-1"), header("Content-Length", "x")]


@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change.__name__)
def test_lies_are_refused(change):
    def edit(request, reply):
        if request.number:
            change(request, reply)

    with Proxy(DATA.tobytes(), edit=edit) as proxy, umem.Url(proxy.url + "/data", retries=1, stall_ms=500) as place:
        target = umem.full(1000, 7, "uint8", "host:")
        with pytest.raises(umem.Error):
            umem.copy(target, umem.at(place, 5, 1000, "uint8"))
        assert len(proxy.requests) <= 4


@pytest.mark.parametrize("change", [whole, garbage, endless_head, header("Content-Range", None), header("Content-Range", "bytes 0-0/*"),
                                    header("Content-Encoding", "br"), header("ETag", None)], ids=lambda change: change.__name__)
def test_such_an_object_is_not_opened(change):
    with Proxy(DATA.tobytes(), edit=change) as proxy, pytest.raises(umem.Error):
        umem.Url(proxy.url + "/data", retries=1, stall_ms=500)


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("opened", [False, True], ids=["opening", "reading"])
def test_a_signal_ends_what_waits_for_a_silent_server(opened):
    def raise_(*_):
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, raise_)
    timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        with Proxy(DATA.tobytes(), edit=lambda request, reply: setattr(reply, "wait", 0 if opened and not request.number else 60)) as proxy:
            begin = time.monotonic()
            with pytest.raises(Interrupted):
                timer.start()
                with umem.open(proxy.url + "/data") as place:
                    umem.at(place, 0, 10, "uint8").to("host:")
            assert time.monotonic() - begin < 10
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)


def test_a_server_that_is_always_busy_ends_the_copy():
    with Proxy(DATA.tobytes(), edit=lambda request, reply: busy(503)(request, reply) if request.number else None) as proxy:
        with umem.Url(proxy.url + "/data", retries=2) as place, pytest.raises(umem.OSError, match="503"):
            umem.at(place, 0, 10, "uint8").to("host:")
        assert len(proxy.requests) == 4


def test_a_copy_has_a_time_limit():
    with Proxy(DATA.tobytes(), edit=lambda request, reply: setattr(reply, "wait", 0.3 if request.number else 0)) as proxy:
        with umem.Url(proxy.url + "/data", connections=1, piece="64K", total_ms=700) as place:
            begin = time.monotonic()
            with pytest.raises(umem.OSError, match="total_ms"):
                umem.at(place, 0, SIZE, "uint8").to("host:")
            assert time.monotonic() - begin < 3


def test_requests_in_flight_are_bounded():
    with Proxy(DATA.tobytes(), edit=lambda request, reply: setattr(reply, "wait", 0.02)) as proxy:
        assert np.array_equal(read(proxy.url + "/data", piece="64K", connections=5), DATA)
        assert 2 <= proxy.most_inflight <= 5
        assert proxy.connections <= 6


def test_a_header_has_one_line():
    for headers in ({"A": "hidden\nB: c"}, {"A\r": "hidden"}):
        with pytest.raises(ValueError, match="one line") as refused:
            umem.Url("http://127.0.0.1:1/x", headers=headers)
        assert "hidden" not in str(refused.value)
