#!/usr/bin/env python3
"""Takes uploads of S3, and drops them: a process of the server that url_rows.py measures writes against.

Usage: url_sink.py DESCRIPTOR

DESCRIPTOR is a socket that listens; several processes may share it. Bodies are read 1 MiB at a time, so that the server takes
little of the time. nginx drops 4 KiB at a time, and is the bound of each client that writes to it.
"""
import re
import socket
import sys
import threading

BEGUN = b"<InitiateMultipartUploadResult><Bucket>sink</Bucket><Key>data</Key><UploadId>one</UploadId></InitiateMultipartUploadResult>"
JOINED = (b"<CompleteMultipartUploadResult><Bucket>sink</Bucket><Key>data</Key><ETag>&quot;one-1&quot;</ETag>"
          b"</CompleteMultipartUploadResult>")


def answer(connection, head, rest, buffer):
    """Drops the body of a request of which rest is there, and answers. Returns what follows it."""
    length = int((re.search(rb"(?i)\r\ncontent-length: *(\d+)", head) or [0, 0])[1])
    if re.search(rb"(?i)\r\nexpect: *100", head):
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    left = length - len(rest)
    while left > 0:
        left -= connection.recv_into(buffer, min(left, len(buffer))) or left
    text = b"" if not head.startswith(b"POST") else BEGUN if b"?uploads" in head.split(b"\r\n", 1)[0] else JOINED
    connection.sendall(b'HTTP/1.1 200 OK\r\nETag: "one"\r\nContent-Length: %d\r\n\r\n%s' % (len(text), text))
    return rest[length:]


def serve(connection):
    buffer, data = memoryview(bytearray(1 << 20)), b""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while True:
        head, end, rest = data.partition(b"\r\n\r\n")
        if end:
            data = answer(connection, head, rest, buffer)
            continue
        more = connection.recv(1 << 16)
        if not more:
            return
        data += more


def main():
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


if __name__ == "__main__":
    main()
