"""Credentials of buckets: where they come from, and that nothing shows them."""
import os
import subprocess
import sys
import urllib.parse

import pytest
import servers
from servers import KEY, SECRET, TOKEN
from test_s3 import read

import umem


@pytest.fixture
def no_keys(s3, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    return s3


def write_file(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path


KEYS_OF_FILE = f"aws_access_key_id = {KEY}\naws_secret_access_key={SECRET}\n"

FILES = [
    ("credentials", f"[default]\n{KEYS_OF_FILE}", None),
    ("credentials", f"# comment\n; another\n\n[other]\naws_access_key_id=x\n[default]\r\n{KEYS_OF_FILE}", None),
    ("credentials", f"[mine]\n{KEYS_OF_FILE}[default]\naws_access_key_id=x\naws_secret_access_key=y", "mine"),
    ("config", f"[default]\n{KEYS_OF_FILE}", None),
    ("config", f"[profile mine]\ns3 =\n  addressing_style = path\n{KEYS_OF_FILE}", "mine"),
    ("config", f"[ profile   mine ]\n  \n{KEYS_OF_FILE.upper().split('=')[0]}={KEY}\n{KEYS_OF_FILE.split(chr(10))[1]}\n", "mine")]


@pytest.mark.parametrize("name, text, profile", FILES, ids=range(len(FILES)))
@pytest.mark.parametrize("how", ["variable", "option"])
def test_keys_of_files(no_keys, moto, tmp_path, monkeypatch, name, text, profile, how):
    moto.put("/bucket/file", b"file")
    write_file(tmp_path / ".aws" / name, text)
    options = ""
    if profile and how == "variable":
        monkeypatch.setenv("AWS_PROFILE", profile)
    elif profile:
        options = f"#profile={profile}"
    assert bytes(read("s3://bucket/file", 4, options)) == b"file"


def test_places_of_files(no_keys, moto, tmp_path, monkeypatch):
    moto.put("/bucket/file", b"file")
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(write_file(tmp_path / "keys", f"[default]\n{KEYS_OF_FILE}")))
    monkeypatch.setenv("AWS_CONFIG_FILE", "~/settings")
    write_file(tmp_path / "settings", f"[default]\nregion = {servers.REGION}\nendpoint_url = {no_keys.url}\n")
    assert bytes(read("s3://bucket/file", 4)) == b"file"


def test_a_profile_of_the_options_counts_more_than_variables(s3, moto, tmp_path, monkeypatch):
    moto.put("/bucket/file", b"file")
    write_file(tmp_path / ".aws" / "credentials", f"[mine]\n{KEYS_OF_FILE}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "wrong")
    assert bytes(read("s3://bucket/file", 4, "#profile=mine")) == b"file"
    monkeypatch.setenv("AWS_PROFILE", "mine")
    with pytest.raises(umem.OSError, match="403"):
        umem.open("s3://bucket/file")


def test_a_session_token_is_sent_and_signed(s3, moto, monkeypatch):
    moto.put("/bucket/token", b"token")
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    assert bytes(read("s3://bucket/token", 5)) == b"token"
    assert {request.header("x-amz-security-token") for request in s3.requests} == {TOKEN}


def test_anonymous_requests_have_no_signature(no_keys, moto):
    moto.put("/bucket/public", b"public")
    no_keys.check = lambda request: "signed" if request.header("authorization") else None
    no_keys.target = b"public"
    assert bytes(read("s3://bucket/public", 6, "#anonymous=yes")) == b"public"


BAD = "this is no secret"

MALFORMED = [
    (f"[default]\naws_access_key_id={KEY}\n", "only one of"),
    (f"{KEYS_OF_FILE}", "before the first"),
    (f"[default]\n{KEYS_OF_FILE}\n{BAD}\n", "line 5: this is neither"),
    (f"[default\n{KEYS_OF_FILE}", "line 1: this section does not end"),
    (f"[default] {BAD}\n{KEYS_OF_FILE}", "does not end"),
    (f"[]\n{KEYS_OF_FILE}", "no name"),
    (f"[default]\n={BAD}\n", "no name"),
    (f"[default]\n{KEYS_OF_FILE}{KEYS_OF_FILE}", "twice"),
    (f"[default]\n{KEYS_OF_FILE}[default]\n", "section is there twice"),
    (f"[other]\n{KEYS_OF_FILE}", "no credentials"),
    ("[default]\nregion=x\n", "no access key"),
    ("[default]\ncredential_process = /bin/false\n", "credential_process"),
    ("[default]\nsso_session = x\n", "sso_session"),
    ("[default]\nrole_arn = x\nsource_profile = y\n", "role_arn"),
    (f"[default]\naws_access_key_id={KEY} {BAD}\naws_secret_access_key={SECRET}\n", "too long, or"),
    (f"[default]\naws_access_key_id={KEY}\naws_secret_access_key={300 * 'x'}\n", "too long, or"),
    (f"[default]\naws_access_key_id={KEY}\naws_secret_access_key=\x7f{SECRET}\n", "too long, or"),
    (f"[default]\n{KEYS_OF_FILE}\0", "value 0"),
    (f"[default]\n{KEYS_OF_FILE}" + 70000 * "# comment comment\n", "1 MiB")]


@pytest.mark.parametrize("text, why", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_files_are_refused_without_showing_them(no_keys, tmp_path, text, why):
    write_file(tmp_path / ".aws" / "credentials", text)
    with pytest.raises(umem.Error, match=why) as found:
        umem.open("s3://bucket/k")
    for secret in (KEY, SECRET, BAD):
        assert secret not in str(found.value)


def test_files_that_others_may_write_are_refused(no_keys, tmp_path):
    path = write_file(tmp_path / ".aws" / "credentials", f"[default]\n{KEYS_OF_FILE}")
    path.chmod(0o666)
    with pytest.raises(umem.OSError, match="every user may write"):
        umem.open("s3://bucket/k")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(umem.OSError, match="no regular file"):
        umem.open("s3://bucket/k")
    path.unlink()
    path.mkdir()
    with pytest.raises(umem.OSError, match="credentials"):
        umem.open("s3://bucket/k")


def test_without_credentials_the_message_says_what_to_do(no_keys):
    with pytest.raises(umem.OSError, match=r"AWS_ACCESS_KEY_ID .* anonymous"):
        umem.open("s3://bucket/k")


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_half_of_the_keys_is_an_error(s3, monkeypatch, name):
    monkeypatch.delenv(name)
    with pytest.raises(umem.OSError, match="only one of"):
        umem.open("s3://bucket/k")


LEAKS = f"""
import os, sys
import umem
umem.ledger.start()
shown = []
def show(function):
    try:
        shown.append(repr(function()))
    except Exception as error:
        shown.append(repr(error) + str(error))
        while error.__context__ is not None:
            error = error.__context__
            shown.append(repr(error))
for name in ("s3://bucket/k", "s3://bucket/missing", "s3://bucket/k#region=other", "s3://nowhere/k",
             "s3://bucket/k#endpoint=http://127.0.0.1:1&retries=0"):
    def read():
        place = umem.open("log+" + name + ("&" if "#" in name else "#") + "file=" + sys.argv[1])
        show(lambda: place)
        show(lambda: place.info)
        show(lambda: place.upstream)
        array = umem.empty(4, "uint8", place)
        show(lambda: array)
        show(lambda: array.to("host:"))
        show(lambda: umem.at(place, 1 << 40, 1, "uint8").to("host:"))
        place.close()
    show(read)
    def write():
        with umem.open(name + ("&" if "#" in name else "#") + "mode=w") as place:
            show(lambda: place)
            array = umem.empty(4, "uint8", place)
            array[:] = 1
            show(lambda: place.flush())
    show(write)
moved = umem.ledger.read()
assert moved
shown += [repr(moved), str(moved)]
print("\\n".join(shown))
"""


def test_no_credential_is_in_messages_logs_ledger_or_reprs(s3, moto, tmp_path, monkeypatch):
    moto.put("/bucket/k", b"1234")
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    done = subprocess.run([sys.executable, "-c", LEAKS, tmp_path / "log"], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert b"s3://bucket/missing" in done.stdout and b"404" in done.stdout
    texts = [done.stdout, done.stderr] + [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(texts) > 2  # the log, too
    for secret in (KEY, SECRET, TOKEN):
        for text in texts:
            assert secret.encode() not in text and urllib.parse.quote(secret).encode() not in text
