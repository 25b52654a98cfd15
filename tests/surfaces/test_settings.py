"""How a server is configured, and that it does not listen in clear beyond this machine."""

from __future__ import annotations

import asyncio
import datetime
import os
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from blockpty.errors import BadRequest, Busy, NotFound
from blockpty.surfaces import launching
from blockpty.surfaces.client import Client
from blockpty.surfaces.http.server import serve
from blockpty.surfaces.private_files import owner_token
from blockpty.surfaces.settings import Settings, load
from tests.support.async_tests import async_test
from tests.support.http_server import read_answer, serving


def write(home: Path, text: str) -> None:
    (home / "config.toml").write_text(text, "utf-8")


def test_flags_before_variables_before_the_file(home: Path) -> None:
    assert load(home, {}, {}) == Settings()
    write(
        home,
        '[server]\nport = 1\nsession_limit = 2\nallowed_hosts = ["a", "b"]\nhost = "::1"\nbehind_proxy = true\n'
        "[elsewhere]\nport = 9\n",
    )
    assert load(home, {}, {}) == Settings("::1", 1, ("a", "b"), session_limit=2, behind_proxy=True)
    variables = {"BLOCKPTY_PORT": "3", "BLOCKPTY_ALLOWED_HOSTS": "c, d,", "BLOCKPTY_BEHIND_PROXY": "no", "PORT": "9"}
    variables |= {"BLOCKPTY_SESSION_LIMIT": "", "BLOCKPTY_HOME": "/x", "BLOCKPTY_SHELLS": "/y"}
    found = load(home, {}, variables)
    assert found == Settings("::1", 3, ("c", "d"), session_limit=2, behind_proxy=False)
    flags: dict[str, Any] = {"port": 0, "host": None, "allowed_hosts": (), "session_limit": 5, "behind_proxy": None}
    assert load(home, flags, variables) == Settings("::1", 0, ("c", "d"), session_limit=5, behind_proxy=False)


@pytest.mark.parametrize(
    "line",
    [
        "port = -1", "port = true", "port = 77.9", "port = inf", 'port = "http"', "port = [1]",
        'prot = 1', "host = 5", "allowed_hosts = 5", "allowed_hosts = [5]", "allowed_hosts = {a = 1}",
        'behind_proxy = "perhaps"', "behind_proxy = 2", "session_limit = 1e3", "session_limit = 99999999999",
        'tls_certificate = "x"', 'tls_key = "x"', "port = ", "port == 1", "port = 1\nport = 2",
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_used_is_refused_with_its_place(home: Path, line: str) -> None:
    write(home, f"[server]\n{line}\n")
    with pytest.raises(BadRequest, match=r"config\.toml|tls_"):
        load(home, {}, {})


def test_a_file_that_cannot_be_read_is_refused(home: Path) -> None:
    for make in (
        lambda path: path.write_bytes(b"\xff\xfe"), lambda path: path.write_text("server = 5", "utf-8"), Path.mkdir,
    ):  # fmt: skip
        path = home / "config.toml"
        path.unlink(missing_ok=True)
        make(path)
        with pytest.raises(BadRequest, match=r"config\.toml"):
            load(home, {}, {})


@pytest.mark.parametrize(
    ("name", "value"), [("PORT", "x"), ("PORT", "1.5"), ("BEHIND_PROXY", "maybe"), ("PORT", "65536")]
)
def test_variables_are_checked_too(home: Path, name: str, value: str) -> None:
    with pytest.raises(BadRequest):
        load(home, {}, {f"BLOCKPTY_{name}": value})


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "192.168.1.1", "example.org", "", "127.0.0.1.evil.test", "127.0.0.1 ", "LOCALHOST.", "0"],
)
def test_nothing_but_loopback_without_tls_or_a_stated_proxy(home: Path, host: str) -> None:
    with pytest.raises(BadRequest, match="in clear"):
        load(home, {"host": host}, {})
    with pytest.raises(BadRequest, match="in clear"):
        load(home, {"host": host, "allowed_hosts": ("x",), "allowed_origins": ("https://x",)}, {})
    assert load(home, {"host": host, "behind_proxy": True}, {}).host == host
    assert load(home, {"host": host, "tls_certificate": "c", "tls_key": "k"}, {}).host == host
    write(home, f'[server]\nhost = "{host}"\n')
    with pytest.raises(BadRequest, match="in clear"):
        load(home, {}, {})


def certificate(directory: Path) -> tuple[Path, Path]:
    """Make a certificate for 127.0.0.1 and localhost, and its key."""
    import ipaddress

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "blockpty test")])
    begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=30))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = directory / "certificate.pem", directory / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return paths


@async_test
async def test_tls_is_tls(home: Path, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    async with serving(home, tls_certificate=str(cert), tls_key=str(key)) as server:
        assert server.state["url"].startswith("https://127.0.0.1:")
        async with Client(home, url=server.state["url"], token=server.token, certificates=str(cert)) as client:
            conversation = await client.open("c1", shell="bash")
            assert (await conversation.run("echo $((6*7))")).output.strip() == "42"
            events = [event async for event in conversation.events(follow=False)]
            assert len(events) > 3
        async with Client(home, url=server.state["url"], token=server.token) as stranger:
            with pytest.raises(NotFound, match="ConnectError"):  # the system does not know this certificate
                await stranger.list()
        async with server.connected() as (reader, writer):
            writer.write(f"GET /healthz HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
            assert b"HTTP" not in await reader.read(), "nothing in clear"
        context = ssl.create_default_context(cafile=str(cert))
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
        version = writer.get_extra_info("ssl_object").version()
        assert version in ("TLSv1.2", "TLSv1.3")
        writer.write(f"GET /healthz HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
        assert (await read_answer(reader)).content == {"ok": True}
        writer.close()
        await writer.wait_closed()
        async with Client(home, start=False) as local:
            assert (await local.list()).conversations[0].conversation_id == "c1", "the unix socket needs none"


@async_test
async def test_tls_files_that_cannot_be_used_are_said_before_anything_listens(home: Path, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    (tmp_path / "other").mkdir()
    _, other_key = certificate(tmp_path / "other")
    (tmp_path / "nonsense").write_text("nonsense", "utf-8")
    ready: list[object] = []
    none, nonsense = tmp_path / "none", tmp_path / "nonsense"
    for one, other in ((none, key), (cert, none), (cert, other_key), (nonsense, key), (cert, nonsense)):
        with pytest.raises(BadRequest, match=r"tls|TLS"):
            await serve(home, Settings(port=0, tls_certificate=str(one), tls_key=str(other)), ready.append)
    assert not ready
    assert launching.state(home) is None
    assert not (home / "server" / "server.json").exists()


@async_test
async def test_one_server_a_home_and_a_taken_port_is_said(home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    async with serving(home) as server:
        with pytest.raises(Busy, match="already"):
            await serve(home, Settings(port=0), lambda state: None)
        other = tmp_path_factory.mktemp("o")
        with pytest.raises(BadRequest, match=f"port {server.port}"):
            await serve(other, Settings(port=server.port), lambda state: None)
        assert (await server.ask("GET", "/healthz")).status == 200
    for host in ("no.such.host.invalid", "203.0.113.1"):
        with pytest.raises(BadRequest, match="cannot listen"):
            await serve(home, Settings(host=host, port=0, behind_proxy=True), lambda state: None)


@async_test
async def test_a_server_in_the_background_reports_what_it_cannot_use(home: Path) -> None:
    with pytest.raises(BadRequest, match="tls_certificate"):
        await asyncio.to_thread(launching.start, home, ("--tls-certificate", "/none", "--tls-key", "/none"))
    write(home, "[server]\nport = 70000\n")
    async with Client(home) as client:  # which starts a server
        with pytest.raises(BadRequest, match="port"):
            await client.list()
    assert not launching.is_running(home)


def test_no_setting_holds_a_secret(home: Path) -> None:
    """What can be set appears in arguments and variables, where others see it."""
    assert not [name for name in Settings.__slots__ if "token" in name or "password" in name or "secret" in name]
    assert owner_token(home) not in " ".join([*os.environ.values(), *sys.argv])
