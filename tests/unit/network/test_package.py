"""Chaincode packages: bytes that depend on their content alone."""

import gzip
import hashlib
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def make(folder: Path, output: str, address: str = "chaincode.org1:9001") -> tuple[str, bytes]:
    for name, text in (("root.pem", "root"), ("server.crt", "certificate"), ("server.key", "key")):
        (folder / name).write_text(text)
    arguments = ["--label", "probe_abc", "--address", address, "--root", str(folder / "root.pem")]
    arguments += ["--client", str(folder), "--output", str(folder / output)]
    script = ROOT / "network/lib/package.py"
    ran = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=True)
    return ran.stdout.strip(), (folder / output).read_bytes()


def test_two_packages_of_one_content_are_the_same_bytes(tmp_path: Path) -> None:
    assert make(tmp_path, "first.tar.gz") == make(tmp_path, "second.tar.gz")


def test_package_id_is_label_and_hash_of_the_bytes(tmp_path: Path) -> None:
    identifier, package = make(tmp_path, "package.tar.gz")
    assert identifier == f"probe_abc:{hashlib.sha256(package).hexdigest()}"


def test_another_address_is_another_package(tmp_path: Path) -> None:
    assert make(tmp_path, "one.tar.gz")[0] != make(tmp_path, "two.tar.gz", "chaincode.org2:9001")[0]


def test_connection_demands_tls_on_both_sides(tmp_path: Path) -> None:
    _, package = make(tmp_path, "package.tar.gz")
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(package))) as outer:
        assert json.load(outer.extractfile("metadata.json"))["type"] == "ccaas"
        code = outer.extractfile("code.tar.gz").read()
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(code))) as inner:
        connection = json.load(inner.extractfile("connection.json"))
    assert connection["tls_required"] is True
    assert connection["client_auth_required"] is True
    assert connection["root_cert"] == "root"


def test_package_with_a_key_is_for_its_owner_alone(tmp_path: Path) -> None:
    make(tmp_path, "package.tar.gz")
    assert (tmp_path / "package.tar.gz").stat().st_mode & 0o077 == 0


def test_packages_made_together_are_those_made_one_by_one(tmp_path: Path) -> None:
    alone = make(tmp_path, "alone.tar.gz")
    words = ["--root", str(tmp_path / "root.pem"), "--client", str(tmp_path)]
    for label, address in (("other_abc", "chaincode.org1:9002"), ("probe_abc", "chaincode.org1:9001")):
        words += ["--label", label, "--address", address, "--output", str(tmp_path / f"{label}.tar.gz")]
    script = ROOT / "network/lib/package.py"
    ran = subprocess.run([sys.executable, script, *words], capture_output=True, text=True, check=True)
    other, probe = ran.stdout.split()
    assert other.startswith("other_abc:")
    assert (probe, (tmp_path / "probe_abc.tar.gz").read_bytes()) == alone
