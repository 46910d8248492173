"""The service as its container runs it: configuration, health check, signals."""

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading

import grpc
import pytest

from chaincode import health
from chaincode.registry import CONTRACTS, contract
from chaincode.serve import main
from chaincode.service import freeze
from chaincode.settings import ServiceSettings, SettingsError

WAIT = 150


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Let a health check wait as long as a busy machine needs."""
    monkeypatch.setattr(health, "SECONDS", WAIT)


@pytest.fixture
def settings(tmp_path, authority):
    """Write a configuration with TLS; `change` edits it before it is written."""
    key, certificate = authority.issue("server")
    for name, content in (("server.key", key), ("server.crt", certificate), ("ca.crt", authority.pem)):
        (tmp_path / name).write_bytes(content)

    def write(change=lambda entry, whole: None):
        entry = {
            "name": "probe",
            "id": "probe_1:abc",
            "listen": own_address(),
            "tls": {"key": "server.key", "cert": "server.crt", "client_ca": "ca.crt"},
        }
        whole = {"chaincodes": [entry]}
        change(entry, whole)
        path = tmp_path / "chaincodes.json"
        path.write_text(json.dumps(whole))
        return path

    return write


def test_settings_are_read_whole(settings):
    found = ServiceSettings.from_file(settings())
    assert (found.log, found.chaincodes[0].name, found.chaincodes[0].id) == ("info", "probe", "probe_1:abc")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda e, w: e.update(name="other"), "name must be one of"),
        (lambda e, w: e.update(id=""), "id must be text"),
        (lambda e, w: e.update(listen="9999"), "listen must be HOST:PORT"),
        (lambda e, w: e.update(listen="0.0.0.0:99999"), "listen must be HOST:PORT"),
        (lambda e, w: e.update(listen="0.0.0.0:9000", tls=None), "tls may be null only"),
        (lambda e, w: e.pop("tls"), "lacks tls"),
        (lambda e, w: e["tls"].pop("client_ca"), "lacks client_ca"),
        (lambda e, w: e["tls"].update(key="absent.key"), "cannot read"),
        (lambda e, w: e["tls"].update(key="chaincodes.json"), "cannot read|not PEM"),
        (lambda e, w: e.update(port=1), "unknown port"),
        (lambda e, w: w.update(log="loud"), "log must be one of"),
        (lambda e, w: w.update(chaincodes=[]), "at least one"),
        (lambda e, w: w.update(chaincodes=[e, e]), "same name"),
        (lambda e, w: w.update(chaincodes=[3]), "must be a JSON object"),
    ],
)
def test_bad_settings_are_refused_with_their_place(settings, capsys, change, sentence):
    path = settings(change)
    with pytest.raises(SettingsError, match=sentence):
        ServiceSettings.from_file(path)
    assert main(["--config", str(path)]) == 2
    assert str(path) in capsys.readouterr().err


def test_missing_or_broken_settings_file_is_refused(tmp_path, capsys):
    assert main(["--config", str(tmp_path / "absent.json")]) == 2
    (tmp_path / "broken.json").write_text("{")
    assert main(["--config", str(tmp_path / "broken.json")]) == 2
    assert "is not JSON" in capsys.readouterr().err


def test_check_fails_while_nothing_listens(settings, capsys):
    assert main(["--config", str(settings()), "--check"]) == 1
    assert "probe" in capsys.readouterr().err


def test_service_answers_its_check_serves_a_peer_and_stops_on_sigterm(settings, serve, authority):
    path = settings()
    with service(path) as running:
        assert main(["--config", str(path), "--check"]) == 0
        address = json.loads(path.read_text(encoding="utf-8"))["chaincodes"][0]["listen"]
        credentials = grpc.ssl_channel_credentials(authority.pem, *authority.issue("peer"))
        peer = serve.connect(address, credentials)
        assert peer.ready.wait(WAIT)
        assert peer.submit("put", "a", "1").status == 200
        running.send_signal(signal.SIGTERM)
        assert running.wait(WAIT) == 0
        assert peer.ended.wait(WAIT)


def test_a_service_that_hears_several_signals_at_once_stops(settings):
    with service(settings()) as running:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            running.send_signal(number)
        assert running.wait(WAIT) == 0


def test_check_notices_another_certificate(settings, tmp_path, authority, capsys):
    path = settings()
    with service(path):
        (tmp_path / "server.crt").write_bytes(authority.issue("server")[1])
        assert main(["--config", str(path), "--check"]) == 1
        assert "another certificate" in capsys.readouterr().err


def test_every_registered_contract_can_be_made():
    assert [contract(name).name for name in CONTRACTS] == list(CONTRACTS)


class service:  # noqa: N801
    """The service in its own process, as soon as it has said that it listens."""

    def __init__(self, path):
        self.command = [sys.executable, "-m", "chaincode.serve", "--config", str(path)]

    def __enter__(self):
        # Nothing but the interpreter's own needs: the service reads no environment.
        self.process = subprocess.Popen(
            self.command, stderr=subprocess.PIPE, env={"PATH": os.environ["PATH"]}
        )
        said = b""
        while b" serving " not in said:
            line = self.process.stderr.readline()
            assert line, f"the service ended: {said.decode()}"
            said += line
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        return self.process

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def own_address():
    """A loopback address of this process alone, and a port that is free there until the service takes it."""
    number = os.getpid()
    host = f"127.{64 + (number >> 16) % 64}.{(number >> 8) % 256}.{number % 256}"
    with socket.socket() as probe:
        probe.bind((host, 0))
        return f"{host}:{probe.getsockname()[1]}"


def test_what_the_service_is_made_of_is_walked_through_by_no_garbage_collection():
    freeze()
    try:
        assert gc.get_freeze_count() > 10_000
        assert len(gc.get_objects()) < 1_000
    finally:
        gc.unfreeze()
