#!/usr/bin/env python3
"""Measures objects of web servers and of S3 beside sockets alone, curl, kvikIO's RemoteFile, obstore and s3fs.

Usage: url_rows.py [--once] [--workers N] [--json FILE]

Runs with the Python of an environment in which umem and NumPy are installed; the others are measured where they are
installed. nginx serves a file of 1 GiB from the page cache on 127.0.0.1, by one process for two cores, and two at least; for S3 it
takes any signature. What is written goes to as many processes of url_sink.py, which drop it. All have 16 connections. In each row
both sides run in turns; the median of the ratios counts. Exit status 0: everything was measured, whether targets were met or not.
"""
import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from python_rows import Rows, has_gpu, module

import umem

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test/url"))
import servers  # noqa: E402

CONNECTIONS = 16


def curl(url, size, authority=None):
    """curl with as many connections, which drops what it reads."""
    each = -(-size // CONNECTIONS)
    command = ["curl", "--silent", "--no-progress-meter", "--fail", "--parallel", "--parallel-immediate", "--parallel-max", str(CONNECTIONS), "--http1.1"]
    for begin in range(0, size, each):
        command += ["--range", f"{begin}-{min(begin + each, size) - 1}", "--output", "/dev/null", url]
        command += (["--cacert", str(authority)] if authority else []) + ["--next", "--silent", "--fail", "--http1.1"]
    return lambda: subprocess.run(command[:-4], check=True)


def reader(place, size, target):
    array = umem.at(place, 0, size, "uint8")
    return lambda: umem.copy(target, array)


class Raw:
    """Reads or writes all by sockets alone, straight into or from the array, 8 MiB at a time: what the server and the kernel leave to win."""

    def __init__(self, port, path, size, array):
        self.path, self.size, self.view = path, size, memoryview(array).cast("B")
        self.sockets = [socket.create_connection((servers.HOST, port)) for _ in range(CONNECTIONS)]
        self.threads = ThreadPoolExecutor(CONNECTIONS)

    def read(self):
        self.each(self.read_ranges)

    def write(self):
        self.each(self.write_parts)

    def each(self, work):
        starts = iter(range(0, self.size, 8 << 20))  # next() of it is one step of Python
        list(self.threads.map(lambda connection: work(connection, starts), self.sockets))

    def write_parts(self, connection, starts):
        for start in starts:
            end = min(start + (8 << 20), self.size)
            connection.sendall(f"PUT {self.path}?partNumber={start >> 23} HTTP/1.1\r\nHost: x\r\nContent-Length: {end - start}\r\n\r\n".encode())
            connection.sendall(self.view[start:end])
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(4096)

    def read_ranges(self, connection, starts):
        for start in starts:
            end = min(start + (8 << 20), self.size)
            connection.sendall(f"GET {self.path} HTTP/1.1\r\nHost: x\r\nRange: bytes={start}-{end - 1}\r\n\r\n".encode())
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(4096)
            first = head.partition(b"\r\n\r\n")[2]
            self.view[start:start + len(first)] = first
            start += len(first)
            while start < end:
                start += connection.recv_into(self.view[start:end])


def remote_file(kvikio, url, buffer):
    """Reads all by kvikIO; None, after a line that says so, where it cannot, as without a driver of CUDA."""
    try:
        module("kvikio.defaults").set("num_threads", CONNECTIONS)
        file = kvikio.RemoteFile.open_http(url)
        file.read(buffer)
    except RuntimeError as error:
        print(f"left out: rows of kvikio: {error}")
        return None
    return lambda: file.read(buffer)


def measure_http(rows, nginx, size, rounds):
    numpy, kvikio, obstore = module("numpy"), module("kvikio"), module("obstore")
    target = umem.zeros(size, "uint8", "host:")
    url = nginx.plain + "/bucket/data"
    with umem.Url(url, connections=CONNECTIONS) as place:
        ours = reader(place, size, target)
        raw = Raw(nginx.port, "/bucket/data", size, target)
        rows.add("an object over http to RAM", "sockets alone, 16 threads", None, ours, raw.read, rounds=rounds)
        if shutil.which("curl"):
            rows.add("an object over http to RAM", "curl, 16 connections, to /dev/null", 1 / 0.95, ours, curl(url, size), rounds=rounds)
        theirs = kvikio and remote_file(kvikio, url, numpy.zeros(size, "uint8"))
        if theirs:
            rows.add("an object over http to RAM", "kvikIO RemoteFile.read, 16 threads", 1 / 1.2, ours, theirs, rounds=rounds)
        if obstore:
            store = module("obstore.store").HTTPStore(nginx.plain, client_options={"allow_http": True})
            rows.add("an object over http to RAM", "obstore get_range, 16 threads", 1 / 2, ours, ranges_of(obstore, store, "bucket/data", size),
                     rounds=rounds)
    if shutil.which("curl"):
        with umem.Url(nginx.secure + "/bucket/data", connections=CONNECTIONS, ca_file=nginx.authority) as place:
            rows.add("an object over https to RAM", "curl, 16 connections, to /dev/null", 1 / 0.95, reader(place, size, target),
                     curl(nginx.secure + "/bucket/data", size, nginx.authority), rounds=rounds)


def ranges_of(obstore, store, key, size):
    """Reads all by obstore: 8 MiB at a time, in as many threads as there are connections."""
    each, threads = 8 << 20, ThreadPoolExecutor(CONNECTIONS)

    def one(start):
        return obstore.get_range(store, key, start=start, end=min(start + each, size))

    return lambda: list(threads.map(one, range(0, size, each)))


@contextlib.contextmanager
def sink(workers):
    """The port of a server that takes uploads."""
    with socket.create_server((servers.HOST, 0), backlog=128) as listener:
        command = [sys.executable, str(Path(__file__).with_name("url_sink.py")), str(listener.fileno())]
        processes = [subprocess.Popen(command, pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL) for _ in range(workers)]
        try:
            yield listener.getsockname()[1]
        finally:
            for process in processes:
                servers.end(process)


def measure_writes(rows, port, size, rounds):
    obstore = module("obstore")
    url = f"http://{servers.HOST}:{port}"
    data = umem.full(size // 4, 7, "uint8", "host:")

    def write():
        with umem.S3("s3://sink/data", "w", endpoint=url, connections=CONNECTIONS) as place:
            umem.copy(umem.empty(data.shape, "uint8", place), data)

    rows.add("RAM to an object of S3", "sockets alone, 16 threads", None, write, Raw(port, "/sink/data", size // 4, data).write, rounds=rounds)
    if obstore:
        store = module("obstore.store").S3Store("sink", endpoint=url, virtual_hosted_style_request=False, client_options={"allow_http": True})
        rows.add("RAM to an object of S3", "obstore put, 16 at a time", 1 / 2, write,
                 lambda: obstore.put(store, "data", memoryview(data), chunk_size=8 << 20, max_concurrency=CONNECTIONS), rounds=rounds)


def measure_s3(rows, nginx, size, workers, rounds):
    obstore, s3fs = module("obstore"), module("s3fs")
    os.environ.update(AWS_ENDPOINT_URL=nginx.plain, AWS_ACCESS_KEY_ID=servers.KEY, AWS_SECRET_ACCESS_KEY=servers.SECRET,
                      AWS_REGION=servers.REGION)
    target = umem.zeros(size, "uint8", "host:")
    with sink(workers) as port:
        measure_writes(rows, port, size, rounds)
    with umem.S3("s3://bucket/data", connections=CONNECTIONS) as place:
        ours = reader(place, size, target)
        if obstore:
            store = module("obstore.store").S3Store("bucket", endpoint=nginx.plain, virtual_hosted_style_request=False,
                                                    client_options={"allow_http": True})
            rows.add("an object of S3 to RAM", "obstore get_range, 16 threads", 1 / 2, ours, ranges_of(obstore, store, "data", size),
                     rounds=rounds)
        if s3fs:
            files = s3fs.S3FileSystem(endpoint_url=nginx.plain, key=servers.KEY, secret=servers.SECRET,
                                      client_kwargs={"region_name": servers.REGION}, config_kwargs={"s3": {"addressing_style": "path"}})
            rows.add("an object of S3 to RAM", "s3fs cat_file", 1 / 2, ours, lambda: files.cat_file("bucket/data"), rounds=rounds)


class Relay:
    """Hands connections to a server, as a network would: requests arrive late, and answers at a bounded rate."""

    def __init__(self, port, seconds, rate):
        self.port, self.seconds, self.rate = port, seconds, rate
        self.listener = socket.create_server((servers.HOST, 0), backlog=128)
        self.url = f"http://{servers.HOST}:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, server = self.listener.accept()[0], socket.create_connection((servers.HOST, self.port))
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.move, args=(client, server, self.seconds, None), daemon=True).start()
                threading.Thread(target=self.move, args=(server, client, 0, self.rate), daemon=True).start()

    @staticmethod
    def move(source, target, seconds, rate):
        due = 0.0
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 18):
                time.sleep(seconds)
                target.sendall(data)
                if rate:
                    due = max(due, time.perf_counter()) + len(data) / rate
                    time.sleep(max(0.0, due - time.perf_counter()))
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def measure_network(rows, nginx, size, rounds):
    """Pieces and connections where each request takes 20 ms more, and each connection has 100 MB/s."""
    relay, size = Relay(nginx.port, 0.02, 100e6), size // 4
    target = umem.zeros(size, "uint8", "host:")
    url, what = relay.url + "/bucket/data", "an object by a slow network to RAM"
    with umem.Url(url, connections=CONNECTIONS) as place:
        usual = reader(place, size, target)
        for options in ({"piece": "1M"}, {"piece": "4M"}, {"piece": "16M"}, {"connections": 4}, {"connections": 32}, {"connections": 64}):
            with umem.Url(url, **{"connections": CONNECTIONS, **options}) as other:
                name, value = next(iter(options.items()))
                rows.add(f"{what}, {name} {value}", "umem, 8M, 16 connections", None, reader(other, size, target), usual, rounds=rounds)
    relay.listener.close()


def measure_choices(rows, nginx, size, rounds):
    """umem by fewer threads, and with other pieces than the default, beside the default."""
    target = umem.zeros(size, "uint8", "host:")
    url = nginx.plain + "/bucket/data"
    with umem.Url(url, connections=CONNECTIONS) as place:
        usual, all_threads = reader(place, size, target), umem.get_threads()

        def fewer(count):
            umem.set_threads(count)
            usual()
            umem.set_threads(0)

        for count in (count for count in (1, 4, 8) if count < all_threads):
            rows.add(f"an object over http to RAM, by {count} threads", f"umem by {all_threads}", None, lambda count=count: fewer(count), usual,
                     rounds=rounds)
        for piece in ("1M", "4M", "16M"):
            with umem.Url(url, connections=CONNECTIONS, piece=piece) as other:
                rows.add(f"an object over http to RAM, pieces of {piece}", "umem, pieces of 8M", None, reader(other, size, target), usual,
                         rounds=rounds)
        for connections in (4, 32, 64):
            with umem.Url(url, connections=connections) as other:
                rows.add(f"an object over http to RAM, {connections} connections", "umem, 16 connections", None, reader(other, size, target),
                         usual, rounds=rounds)


def measure_gpu(rows, nginx, size, rounds):
    cupy, kvikio = module("cupy"), module("kvikio")
    target = umem.empty(size, "uint8", umem.Cuda(0))
    url = nginx.plain + "/bucket/data"
    with umem.Url(url, connections=CONNECTIONS) as place:
        ours = reader(place, size, target)
        if shutil.which("curl"):
            rows.add("an object over http to the GPU", "curl, 16 connections, to /dev/null", 1 / 0.95, ours, curl(url, size), rounds=rounds)
        theirs = kvikio and cupy and remote_file(kvikio, url, cupy.empty(size, "uint8"))
        if theirs:
            rows.add("an object over http to the GPU", "kvikIO RemoteFile.read, 16 threads", 1 / 1.2, ours, theirs, rounds=rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--once", action="store_true", help="one short round: the figures mean nothing")
    parser.add_argument("--workers", type=int, default=max(2, len(os.sched_getaffinity(0)) // 2), help="processes of the server")
    parser.add_argument("--json", help="the file for all samples")
    arguments = parser.parse_args()
    rows, rounds = Rows(arguments.once), 7
    size = (32 << 20) if arguments.once else 1 << 30
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "root/bucket").mkdir(parents=True)
        with open(folder / "root/bucket/data", "wb") as file:
            for _ in range(size >> 20):
                file.write(os.urandom(1 << 20))
        with servers.Nginx(folder, folder / "root", workers=arguments.workers) as nginx:
            measure_http(rows, nginx, size, rounds)
            measure_choices(rows, nginx, size, rounds)
            measure_network(rows, nginx, size, rounds)
            measure_s3(rows, nginx, size, arguments.workers, rounds)
            if has_gpu():
                measure_gpu(rows, nginx, size, rounds)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows.results))


if __name__ == "__main__":
    main()
