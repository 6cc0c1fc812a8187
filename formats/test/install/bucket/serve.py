#!/usr/bin/env python3
"""Runs a command while a server has S3's objects, which it takes by one request each, in memory: AWS_ENDPOINT_URL names it.

Usage: serve.py COMMAND [ARGUMENT...]: {} in an argument is the server's URL.
"""
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "test/url"))
from servers import KEY, REGION, SECRET, Proxy, Reply, check_signature  # noqa: E402

OBJECTS = {}


class Bucket(Proxy):
    def reply(self, request):
        if request.method != "GET":
            wrong = check_signature(request)
            OBJECTS[request.path] = request.body
            return Reply(403, body=wrong.encode()) if wrong else Reply(200, [("ETag", self.etag)])
        if request.path not in OBJECTS:
            return Reply(404)
        with self.lock:
            self.target = OBJECTS[request.path]
            return self.own(request)


with Bucket(b"") as server:
    environment = os.environ | {"AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
                                "AWS_REGION": REGION}
    command = [word.replace("{}", server.url) for word in sys.argv[1:]]
    sys.exit(subprocess.run(command, env=environment, timeout=60, check=False).returncode)
