"""The servers of these tests. UMEM_TEST_MOTO names a Python that has moto; without it, this one must."""
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import servers  # noqa: E402

AWS = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "REGION", "DEFAULT_REGION", "PROFILE", "DEFAULT_PROFILE",
       "ENDPOINT_URL", "ENDPOINT_URL_S3", "SHARED_CREDENTIALS_FILE", "CONFIG_FILE", "IGNORE_CONFIGURED_ENDPOINT_URLS")
PROXIES = ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "CURL_CA_BUNDLE",
           "SSL_CERT_FILE", "SSL_CERT_DIR")


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    """No variable of this machine's user has an effect, and no file of theirs."""
    for name in AWS:
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture(scope="session")
def nginx(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nginx")
    (folder / "root").mkdir()
    with servers.Nginx(folder, folder / "root") as server:
        yield server


@pytest.fixture(scope="session")
def moto(tmp_path_factory):
    with servers.Moto(tmp_path_factory.mktemp("moto"), os.environ.get("UMEM_TEST_MOTO", sys.executable)) as server:
        server.make_bucket("bucket")
        server.make_bucket("with.dots")
        yield server


@pytest.fixture
def s3(moto, monkeypatch):
    """moto's S3 behind a proxy that checks signatures, and its credentials in the environment."""
    with servers.Proxy(moto.port, check=servers.check_signature) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", servers.KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", servers.SECRET)
        monkeypatch.setenv("AWS_REGION", servers.REGION)
        yield proxy
