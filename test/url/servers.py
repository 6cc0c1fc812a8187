"""Web servers and buckets for tests and benchmarks: nginx, moto's S3, and a proxy that misbehaves.

All listen on 127.0.0.1, on ports that the system chooses, and end with the `with` block that starts them.
"""
import contextlib
import hashlib
import hmac
import http.client
import os
import shutil
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path

HOST = "127.0.0.1"


def free_port():
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return listener.getsockname()[1]


def wait_for(port, process, seconds=60):
    """Returns when a server listens on port, and raises if its process ends."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args[0]} has ended with status {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), 0.5):
            return
        time.sleep(0.02)
    raise RuntimeError(f"nothing listens on port {port} after {seconds} s")


def end(process):
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def start(command, port, log):
    """Starts a server, and returns when it listens on port. Raises RuntimeError if another program has taken the port."""
    with open(log, "ab") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        wait_for(port, process)
    except BaseException:
        end(process)
        raise
    return process


def again(function, times=3):
    """function(), once more if another program was faster to take a port."""
    for attempt in range(times):
        try:
            return function()
        except RuntimeError:
            if attempt == times - 1:
                raise


# ---- certificates ----


def _openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, stdin=subprocess.DEVNULL, capture_output=True)


def make_authority(folder, name):
    """A certificate authority: the files name.pem, which clients trust, and name.key."""
    _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", 2, "-subj",
             f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem")
    return folder / f"{name}.pem"


def make_certificate(folder, authority, names="IP:127.0.0.1,DNS:localhost"):
    """A certificate for these names: the files server.pem and server.key."""
    request, extensions = folder / "server.csr", folder / "server.ext"
    extensions.write_text(f"subjectAltName={names}\n")
    _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=server", "-keyout",
             folder / "server.key", "-out", request)
    _openssl("x509", "-req", "-in", request, "-CA", authority, "-CAkey", authority.with_suffix(".key"), "-CAcreateserial",
             "-days", 2, "-extfile", extensions, "-out", folder / "server.pem")


# ---- nginx ----

_NGINX = """daemon off;
worker_processes {workers};
error_log {folder}/error.log warn;
pid {folder}/nginx.pid;
{user}
events {{ worker_connections 1024; }}
http {{
  access_log off;
  sendfile on;
  keepalive_requests 100000;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  default_type application/octet-stream;
  client_max_body_size 0;
  server {{
    listen 127.0.0.1:{plain};
    listen 127.0.0.1:{secure} ssl http2;
    ssl_certificate {folder}/server.pem;
    ssl_certificate_key {folder}/server.key;
    root {root};
    location / {{ }}
    location /private/ {{ auth_basic umem; auth_basic_user_file {folder}/users; alias {root}/; }}
    location /moved/ {{ rewrite ^/moved/(.*)$ /$1 redirect; }}
    location /to-http/ {{ return 302 http://127.0.0.1:{plain}$request_uri; }}
    location /no-range/ {{ alias {root}/; max_ranges 0; }}
    location /no-tag/ {{ alias {root}/; etag off; add_header Last-Modified ""; }}
  }}
}}
"""


class Nginx:
    """nginx over the files of a folder: the URLs plain and secure, and the file authority."""

    def __init__(self, folder, root, workers=1):
        self.folder, self.root = Path(folder), Path(root)
        self.authority = make_authority(self.folder, "authority")
        make_certificate(self.folder, self.authority)
        # "user:pass word", as `openssl passwd -apr1` writes it
        hashed = subprocess.run(["openssl", "passwd", "-apr1", "pass word"], check=True, capture_output=True, text=True).stdout
        (self.folder / "users").write_text(f"user:{hashed}")
        again(lambda: self._start(workers))

    def _start(self, workers):
        plain, secure = free_port(), free_port()
        (self.folder / "nginx.conf").write_text(_NGINX.format(
            folder=self.folder, root=self.root, plain=plain, secure=secure, workers=workers,
            user="user root;" if os.geteuid() == 0 else ""))
        program = os.environ.get("UMEM_TEST_NGINX") or shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
        command = [program, "-p", str(self.folder), "-e", str(self.folder / "error.log"), "-c", str(self.folder / "nginx.conf")]
        self.process = start(command, plain, self.folder / "nginx.log")
        self.port, self.plain, self.secure = plain, f"http://{HOST}:{plain}", f"https://{HOST}:{secure}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process)


# ---- S3 ----

KEY, SECRET, TOKEN, REGION = "AKUMEMTESTKEY0000001", "umem/test+SECRET/kept0out0of0messages000", "umem/test+TOKEN==", "eu-west-1"


class Moto:
    """moto's S3. python: one that has moto and Flask."""

    def __init__(self, folder, python=sys.executable):
        again(lambda: self._start(Path(folder), python))

    def _start(self, folder, python):
        self.port = free_port()
        command = [python, "-c", "from moto.server import main; main()", "-H", HOST, "-p", str(self.port)]
        self.process = start(command, self.port, folder / "moto.log")
        self.url = f"http://{HOST}:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process)

    def ask(self, method, path, body=b""):
        """An answer, without a signature, which moto does not need: status, headers in lower case, and body."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=30)
        headers = {"Authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/20260101/{REGION}/s3/aws4_request, "
                                    "SignedHeaders=host, Signature=0"}
        try:
            connection.request(method, path, body, headers)
            reply = connection.getresponse()
            return reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read()
        finally:
            connection.close()

    def make_bucket(self, name):
        status, _, body = self.ask("PUT", f"/{name}", f"<CreateBucketConfiguration><LocationConstraint>{REGION}"
                                   "</LocationConstraint></CreateBucketConfiguration>".encode())
        assert status == 200, body

    def put(self, path, body):
        status, _, text = self.ask("PUT", path, body)
        assert status == 200, text

    def get(self, path):
        """The bytes of an object; None without one."""
        status, _, body = self.ask("GET", path)
        return body if status == 200 else None

    def uploads(self, bucket):
        """How many uploads are not finished."""
        return self.ask("GET", f"/{bucket}?uploads")[2].count(b"<Upload>")


def check_signature(request):
    """What is wrong with the AWS signature 4 of a request; None: nothing. Written from AWS's description of it."""
    text = request.header("authorization")
    if not text or not text.startswith("AWS4-HMAC-SHA256 "):
        return "there is no signature"
    parts = dict(part.strip().split("=", 1) for part in text.split(" ", 1)[1].split(","))
    key, date, region, service, last = parts["Credential"].split("/")
    if (key, region, service, last) != (KEY, REGION, "s3", "aws4_request"):
        return f"the credential is {parts['Credential']}"
    path, _, query = request.path.partition("?")
    pairs = sorted((urllib.parse.unquote(name), urllib.parse.unquote(value)) for name, _, value in
                   (pair.partition("=") for pair in query.split("&") if pair))
    signed = parts["SignedHeaders"].split(";")
    if "host" not in signed or any(name.startswith("x-amz-") and name not in signed for name, _ in request.headers):
        return f"only {signed} are signed"
    if any(request.header(name) is None for name in signed):
        return f"a header of {signed} is not there"
    payload = request.header("x-amz-content-sha256")
    if payload not in ("UNSIGNED-PAYLOAD", hashlib.sha256(request.body).hexdigest()):
        return f"x-amz-content-sha256 is {payload}"
    quote = urllib.parse.quote
    canonical = "\n".join([
        request.method, quote(urllib.parse.unquote_to_bytes(path), safe="/-_.~"),
        "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in pairs),
        "".join(f"{name}:{' '.join(request.header(name).split())}\n" for name in signed), parts["SignedHeaders"], payload])
    scope = f"{date}/{region}/{service}/aws4_request"
    wanted = "\n".join(["AWS4-HMAC-SHA256", request.header("x-amz-date"), scope,
                        hashlib.sha256(canonical.encode()).hexdigest()])
    secret = f"AWS4{SECRET}".encode()
    for word in (date, region, service, "aws4_request", wanted):
        secret = hmac.new(secret, word.encode(), hashlib.sha256).digest()
    return None if secret.hex() == parts["Signature"] else "the signature is wrong"


# ---- the proxy ----


@dataclass
class Request:
    number: int  # from 0
    method: str
    path: str
    headers: list  # of (name in lower case, value)
    body: bytes
    connection: int

    def header(self, name):
        return next((value for key, value in self.headers if key == name), None)

    @property
    def range(self):
        """(first, last) of a request for a range; else None."""
        text = self.header("range")
        return tuple(map(int, text.removeprefix("bytes=").split("-"))) if text else None


@dataclass
class Reply:
    status: int = 200
    headers: list = field(default_factory=list)  # of (name, value)
    body: bytes = b""
    wait: float = 0  # seconds before the first byte
    cut: int | None = None  # bytes of the body after which the connection is closed
    reset: bool = False  # closed so that the client sees a reset
    stall: tuple | None = None  # (bytes of the body, seconds of silence behind them)
    raw: bytes | None = None  # what is sent instead of all that

    def set(self, name, value):
        """Replaces a header; None removes it."""
        self.headers = [pair for pair in self.headers if pair[0].lower() != name.lower()]
        if value is not None:
            self.headers.append((name, str(value)))

    def header(self, name):
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


class _Handler(socketserver.StreamRequestHandler):
    def handle(self):
        with self.server.proxy.lock:
            self.server.proxy.connections += 1
            connection = self.server.proxy.connections
        with contextlib.suppress(ConnectionError, ssl.SSLError, TimeoutError):
            while self.handle_one(connection):
                pass

    def handle_one(self, connection):
        line = self.rfile.readline(65536).decode("latin-1").split()
        if len(line) != 3:
            return False
        headers = []
        while (text := self.rfile.readline(65536).decode("latin-1").strip()):
            name, _, value = text.partition(":")
            headers.append((name.lower(), value.strip()))
        fields = dict(headers)
        if fields.get("expect", "").lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = self.rfile.read(int(fields.get("content-length", 0)))
        proxy = self.server.proxy
        with proxy.lock:
            request = Request(len(proxy.requests), line[0], line[1], headers, body, connection)
            proxy.requests.append(request)
            proxy.inflight += 1
            proxy.most_inflight = max(proxy.most_inflight, proxy.inflight)
        try:
            return self.answer(request, proxy.reply(request))
        finally:
            with proxy.lock:
                proxy.inflight -= 1

    def sleep(self, seconds):
        self.server.proxy.ended.wait(seconds)

    def answer(self, request, reply):
        self.sleep(reply.wait)
        if reply.raw is not None:
            self.wfile.write(reply.raw)
            return False
        if reply.header("content-length") is None and reply.header("transfer-encoding") is None:
            reply.set("Content-Length", len(reply.body))
        head = f"HTTP/1.1 {reply.status} Reply\r\n" + "".join(f"{name}: {value}\r\n" for name, value in reply.headers) + "\r\n"
        body = b"" if request.method == "HEAD" else reply.body
        self.wfile.write(head.encode("latin-1"))
        if reply.stall and body:
            self.wfile.write(body[:reply.stall[0]])
            self.wfile.flush()
            self.sleep(reply.stall[1])
            body = body[reply.stall[0]:]
        self.wfile.write(body if reply.cut is None else body[:reply.cut])
        self.wfile.flush()
        if reply.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        return reply.cut is None and not reply.reset


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        error = sys.exception() if hasattr(sys, "exception") else sys.exc_info()[1]
        if not isinstance(error, OSError):
            self.proxy.errors.append(error)


class Proxy:
    """A server that hands requests to another one, or answers for an object of its own, and changes the answers.

    target: the port of another server; or the bytes of an object, with an ETag. edit(request, reply): changes an answer in
    place; None: nothing. check(request): what is wrong with a request; it is then refused with status 403.
    certificate: a folder of make_certificate, for TLS.
    """

    def __init__(self, target, edit=None, check=None, certificate=None):
        self.target, self.edit, self.check = target, edit, check
        self.etag = '"one"'
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.requests, self.errors = [], []
        self.connections = self.inflight = self.most_inflight = 0
        self.server = _Server((HOST, 0), _Handler)
        self.server.proxy = self
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate / "server.pem", certificate / "server.key")
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        self.url = f"{'https' if certificate else 'http'}://{HOST}:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
        if kind is None and self.errors:
            raise self.errors[0]

    def reply(self, request):
        wrong = self.check(request) if self.check else None
        if wrong:
            text = f"<Error><Code>SignatureDoesNotMatch</Code><Message>{wrong}</Message></Error>"
            return Reply(403, [("Content-Type", "application/xml")], text.encode())
        reply = self.own(request) if isinstance(self.target, bytes) else self.forward(request)
        if self.edit:
            self.edit(request, reply)
        return reply

    def own(self, request):
        reply, size = Reply(200, [("ETag", self.etag), ("Accept-Ranges", "bytes")], self.target), len(self.target)
        if request.header("if-match") not in (None, self.etag):
            return Reply(412, [("ETag", self.etag)])
        if request.range and size:
            first, last = request.range
            if first >= size:
                return Reply(416, [("Content-Range", f"bytes */{size}")])
            last = min(last, size - 1)
            reply.status, reply.body = 206, self.target[first:last + 1]
            reply.set("Content-Range", f"bytes {first}-{last}/{size}")
        if request.method == "HEAD":
            reply.set("Content-Length", len(reply.body))
        return reply

    def forward(self, request):
        connection = http.client.HTTPConnection(HOST, self.target, timeout=60)
        try:
            connection.putrequest(request.method, request.path, skip_host=True, skip_accept_encoding=True)
            for name, value in request.headers:
                if name not in ("connection", "expect"):
                    connection.putheader(name, value)
            connection.endheaders(request.body)
            answer = connection.getresponse()
            headers = [pair for pair in answer.getheaders() if pair[0].lower() not in ("connection", "transfer-encoding")]
            return Reply(answer.status, headers, answer.read())
        finally:
            connection.close()
