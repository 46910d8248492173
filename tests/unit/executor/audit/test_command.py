"""`executor audit verify` on a machine that has neither Docker nor gRPC."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner
from support.memory.blocks import authority
from support.tampering import find_block, flipped

from executor.cli import main

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        # All that `pip install attestree[audit]` does not bring, or brings and must not need.
        if name.split(".")[0] in (
            "docker", "grpc", "greenlet", "sklearn", "scipy", "joblib", "threadpoolctl", "jsonschema",
            "matplotlib", "onnx", "onnxruntime", "pyarrow", "yaml", "rich", "chaincode", "learner",
        ):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
from executor.cli import main
main()
"""


@pytest.fixture
def run(tmp_path):
    def verify(raw, *options):
        file = tmp_path / "export.tar"
        file.write_bytes(raw)
        return CliRunner().invoke(main, ["audit", "verify", str(file), *options])

    return verify


def test_an_export_is_verified_without_docker_and_without_grpc(tmp_path, raw_export, recorder):
    file = tmp_path / "export.tar"
    file.write_bytes(raw_export)
    command = [
        sys.executable,
        "-c",
        WITHOUT,
        "audit",
        "verify",
        str(file),
        "--genesis",
        recorder.genesis,
        "--json",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["verified"] is True
    assert found["failures"] == []
    assert found["claims"]
    assert found["not_proven"]


def test_without_an_anchor_from_outside_nothing_is_verified(run, raw_export):
    ran = run(raw_export)
    assert ran.exit_code == 2
    assert "AUDIT_ANCHOR" in ran.stderr
    shown = json.loads(run(raw_export, "--json").stdout)
    assert shown["verified"] is False
    assert "an export cannot vouch for itself" in shown["failures"][0]["what"]


def test_the_report_has_a_line_for_each_claim(run, raw_export, recorder):
    ran = run(raw_export, "--genesis", recorder.genesis.removeprefix("sha256:"))
    assert ran.exit_code == 0
    assert "✓ endorsements: " in ran.stdout
    assert ran.stdout.endswith("\nverified\n")


def test_h20_an_altered_export_exits_with_11_and_names_the_place(run, export, recorder):
    number = find_block(export.blocks, b"\0estimator\0")
    raw = export.with_block(number, flipped(export.blocks[number], b'"tree":"', 40)).write()
    ran = run(raw, "--genesis", recorder.genesis)
    assert ran.exit_code == 11
    assert f"✗ block {number}: hash chain: " in ran.stdout
    assert "NOT VERIFIED" in ran.stdout
    shown = json.loads(run(raw, "--genesis", recorder.genesis, "--json").stdout)
    assert shown["verified"] is False
    assert {"claim", "what", "where"} == set(shown["failures"][0])


def test_h20_a_truncated_export_exits_with_14(run, raw_export, recorder):
    ran = run(raw_export[:9999], "--genesis", recorder.genesis, "--json")
    assert ran.exit_code == 14
    shown = json.loads(ran.stdout)
    assert shown["verified"] is False
    assert shown["error"]["code"] == "BUNDLE_TRUNCATED"


@pytest.mark.parametrize("genesis", ["", "sha256:", "zz", "sha512:" + "0" * 64, "0" * 63])
def test_a_genesis_that_is_no_hash_is_refused(run, raw_export, genesis):
    ran = run(raw_export, "--genesis", genesis)
    assert ran.exit_code == 14
    assert "DIGEST" in ran.stderr


def test_roots_are_read_from_a_directory(run, raw_export, tmp_path):
    roots = tmp_path / "roots"
    roots.mkdir()
    assert run(raw_export, "--roots", str(roots)).exit_code == 2
    for name in ("Org1MSP", "Org2MSP", "Org3MSP", "OrdererMSP"):
        (roots / f"{name}-0.pem").write_bytes(authority(name).pem)
    assert run(raw_export, "--roots", str(roots)).exit_code == 0
    (roots / "Org2MSP-0.pem").unlink()
    ran = run(raw_export, "--roots", str(roots))
    assert ran.exit_code == 11
    assert "other roots than known for Org2MSP" in ran.stdout


def test_a_root_that_cannot_be_read_is_named(run, raw_export, tmp_path):
    (tmp_path / "Org1MSP-0.pem").symlink_to(tmp_path / "nowhere")
    for content in (None, b"no certificate"):
        if content is not None:
            (tmp_path / "nowhere").write_bytes(content)
        ran = run(raw_export, "--roots", str(tmp_path))
        assert ran.exit_code == 2
        assert "AUDIT_ROOTS" in ran.stderr
        assert "Org1MSP-0.pem cannot be read" in ran.stderr


def test_a_file_that_is_not_there_is_named(tmp_path):
    ran = CliRunner().invoke(main, ["audit", "verify", str(tmp_path / "none.tar"), "--genesis", "0" * 64])
    assert ran.exit_code == 2
    assert "none.tar" in ran.stderr


def test_a_root_whose_file_names_no_organisation_is_refused(run, raw_export, tmp_path):
    for name in ("Org1MSP", "Org2MSP", "Org3MSP", "OrdererMSP"):
        (tmp_path / f"{name}-0.pem").write_bytes(authority(name).pem)
    (tmp_path / "ca.pem").write_bytes(authority("Org3MSP").pem)
    ran = run(raw_export, "--roots", str(tmp_path))
    assert ran.exit_code == 2
    assert "does not say whose root it is" in ran.stderr
