"""Places behind a URL: objects of web servers and of buckets."""
from __future__ import annotations

from . import _core
from ._options import fail
from .places import Path, Place, Size

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Literal


class Url(Place):
    """The bytes of an object behind a URL of http or https, which are only read: `umem.at(place, ...)` makes arrays of them.

    Copies ask the server for many ranges of bytes at a time. The object must remain the one that was opened: if it changes,
    copies fail. Neither errors nor ``repr`` show the query of the URL, users, passwords, tokens and headers.

    Parameters
    ----------
    url : str
        "https://host/path", also with a user, a port and a query.
    connections : int, optional
        Requests in flight. Default: 16.
    retries : int, optional
        Of one request, after errors that may pass. Default: 5.
    piece, gap : int or str, optional
        Bytes of one request, and bytes between two that are read along. Default: "8M" and "64K".
    connect_ms, stall_ms, total_ms : int, optional
        Milliseconds until a connection stands, without a byte, and for a copy; 0: no limit. Default: 10000, 30000, 0.
    version : {"auto", "1.1", "2"}, optional
        Of HTTP.
    redirects : {"auto", "same", "none"}, optional
        Which are followed. None from https to http is, and none takes user, password, token and headers to another host.
    unpinned : bool
        Open an object for which the server gives neither ETag nor date, too.
    ca_file : str or os.PathLike, optional
        Certificates of the authorities.
    user, password, bearer : str, optional
        Credentials.
    headers : dict, optional
        More headers.

    Raises
    ------
    umem.OSError
        The server cannot be reached, or has no such object.
    umem.NotSupportedError
        There is no libcurl, or the server sends no ranges.
    """

    def __init__(self, url: str, *, connections: int | None = None, retries: int | None = None, piece: Size | None = None,
                 gap: Size | None = None, connect_ms: int | None = None, stall_ms: int | None = None,
                 total_ms: int | None = None, version: str | None = None, redirects: str | None = None,
                 unpinned: bool = False, ca_file: Path | None = None, user: str | None = None,
                 password: str | None = None, bearer: str | None = None, headers: dict[str, str] | None = None) -> None:
        self._kind, _, rest = url.partition(":")
        if self._kind not in ("http", "https"):
            fail("the URL begins with neither http: nor https:")
        lines = "\n".join(f"{name}: {value}" for name, value in headers.items()) if headers else None
        if headers and any(end in f"{name}{value}" for name, value in headers.items() for end in "\r\n"):
            fail("a header of Url has one line")  # it may be a secret: no text shows it
        super().__init__(None, rest, connections=connections, retries=retries, piece=piece, gap=gap,
                         connect_ms=connect_ms, stall_ms=stall_ms, total_ms=total_ms, version=version,
                         redirects=redirects, unpinned="yes" if unpinned else None, ca_file=ca_file, user=user,
                         password=password, bearer=bearer, headers=lines)


class S3(Place):
    """The bytes of one object in a bucket of S3, or of a server that speaks its protocol.

    With mode "r" it is as `umem.Url`. With mode "w" arrays follow one another as in a new File, and their bytes are sent part
    by part while they are written, with bounded memory: write in ascending order. The object appears when `flush` or `close`
    completes it; without an array it is empty. `close` makes no object if something has failed, or if not all bytes were
    written; nor does a `with` block that an exception leaves. An older object then remains as it was.

    Parameters
    ----------
    url : str
        "s3://bucket/key"; in the key "%3F" is "?", "%23" is "#" and "%25" is "%".
    mode : {"r", "w"}, optional
    region, endpoint : str, optional
        Default: AWS_REGION, or "us-east-1"; AWS_ENDPOINT_URL, or AWS.
    profile : str, optional
        Of the files ~/.aws/credentials and ~/.aws/config. Default: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or else the
        profile AWS_PROFILE.
    style : {"auto", "path", "host"}, optional
        Where the bucket is in requests.
    anonymous : bool
        Without credentials.
    length : int or str, optional
        Mode "w": the most bytes that the object will have, by which parts are long enough. Needed beyond 78 GiB, unless the
        arrays exist before the first byte is written.
    part : int or str, optional
        Mode "w": bytes of a part, 5 MiB to 5 GiB.
    connections, retries, piece, gap, connect_ms, stall_ms, total_ms, ca_file
        As of Url.

    Raises
    ------
    umem.OSError
        There are no credentials, the server cannot be reached, it refuses, or it has no such object.
    umem.NotSupportedError
        There is no libcurl, or one that cannot sign requests.
    """

    _kind = "s3"

    def __init__(self, url: str, mode: Literal["r", "w"] = "r", *, region: str | None = None, endpoint: str | None = None,
                 profile: str | None = None, style: Literal["auto", "path", "host"] | None = None, anonymous: bool = False,
                 length: Size | None = None, part: Size | None = None, connections: int | None = None,
                 retries: int | None = None, piece: Size | None = None, gap: Size | None = None,
                 connect_ms: int | None = None, stall_ms: int | None = None, total_ms: int | None = None,
                 ca_file: Path | None = None) -> None:
        kind, _, rest = url.partition(":")
        if kind != "s3":
            fail("the name does not begin with s3:")
        super().__init__(None, rest, mode=mode, region=region, endpoint=endpoint, profile=profile, style=style,
                         anonymous="yes" if anonymous else None, length=length, part=part, connections=connections,
                         retries=retries, piece=piece, gap=gap, connect_ms=connect_ms, stall_ms=stall_ms,
                         total_ms=total_ms, ca_file=ca_file)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if kind is not None and not self.closed:
            self.abandon()
        self.close()

    def abandon(self) -> None:
        """Gives up an object of mode "w": later writes fail, and `close` makes no object."""
        _core._s3_abandon(self)
