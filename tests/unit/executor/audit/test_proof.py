"""The proof that travels with a model: who signed what, and what becomes of it when anything is altered."""

import base64
import json
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given
from hypothesis import strategies as st
from support.memory.audited import PROCESS, audited, small_tree
from support.memory.blocks import Authority, authority

from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.errors import AuditError, BundleError
from executor.audit.proof.channel import read_channel
from executor.audit.proof.claims import Pin
from executor.audit.proof.envelope import SignedStatement, Statement
from executor.audit.proof.folder import read_model
from executor.audit.proof.sign import Signer, make_proof
from executor.cli import main
from executor.ledger.gateway.identity import Identity
from executor.model.content import Model, terms_of
from executor.model.files import Exported, to_json
from learning.ensemble import Ensemble
from protocol.ledger.models import ModelRecord
from protocol.ledger.processes import ProcessRecord
from protocol.ledger.tasks import Standing, TaskEvidence

NOW = datetime(2026, 11, 17, tzinfo=UTC)
NODE = "node01"


def node_identity(name=NODE, msp_id="Org1MSP"):
    return authority(msp_id).issue(name, "client", node=name, role="node")


@pytest.fixture(scope="session")
def model_json():
    """The model that the first node of the recorded federation published, as it is exported."""
    ask = audited().scientist1.evaluate
    record = ModelRecord.from_dict(ask("model", "Get", PROCESS, NODE))
    process = ProcessRecord.from_dict(ask("orchestration", "Get", PROCESS))
    task = TaskEvidence.from_dict(ask("execution-record", "GetTask", PROCESS, NODE, record.iteration))
    standing = Standing.from_dict(ask("execution-record", "Standing", PROCESS, NODE))
    trees = [small_tree(member.id) for member in record.estimators]
    return to_json(Exported(Model(terms_of(record, process, task, standing), Ensemble.of(trees))))


@pytest.fixture(scope="session")
def channel(tmp_path_factory, raw_export):
    file = tmp_path_factory.mktemp("channel") / "channel.tar"
    file.write_bytes(raw_export)
    return file


@pytest.fixture(scope="session")
def sign(tmp_path_factory, model_json, channel, recorder):
    """Make the proof as somebody of the organisation."""
    pin = Pin(PROCESS, NODE, "Org1MSP")
    known = read_channel(channel, Anchor(parse_anchor(recorder.genesis)), pin)
    folder = tmp_path_factory.mktemp("model")
    (folder / "model.json").write_bytes(model_json)

    def made(identity):
        signer = Signer(identity.certificate, identity.sign)
        proof = make_proof(folder, read_model(folder), pin, signer, known, NOW)
        return proof.claims, proof.signature

    return made


@pytest.fixture(scope="session")
def signed(sign):
    return sign(node_identity())


@pytest.fixture
def folder(tmp_path, model_json, signed):
    made = tmp_path / "proved"
    made.mkdir()
    for name, raw in zip(("model.json", "claims.jsonl", "model.sig"), (model_json, *signed), strict=True):
        (made / name).write_bytes(raw)
    return made


@pytest.fixture
def check(folder, channel, recorder, tmp_path):
    """Run `audit proof` against the channel, or against the owner's root alone."""
    root = tmp_path / "ca.pem"
    root.write_bytes(authority("Org1MSP").pem)

    def run(*, model=f"{PROCESS}/{NODE}", owner="Org1MSP", roots=True):
        anchor = ["--roots", str(root)] if roots else ["--file", str(channel), "--genesis", recorder.genesis]
        words = ["audit", "proof", str(folder), "--model", model, "--owner", owner, *anchor, "--json"]
        ran = CliRunner().invoke(main, words)
        return ran.exit_code, json.loads(ran.stdout)

    return run


def test_a_proof_holds_by_the_channel_and_by_the_owners_root_alone(check):
    code, found = check(roots=False)
    assert (code, found["verified"], found["failures"]) == (0, True, [])
    assert {claim["claim"] for claim in found["claims"]} == {
        "signer", "files", "provenance", "channel", "summary", "model",
    }  # fmt: skip
    code, found = check()
    assert (code, found["verified"]) == (0, True)
    assert any("it is the node's word" in sentence for sentence in found["not_proven"])


def test_the_provenance_names_tasks_trees_image_and_parameters(signed, model_json):
    said = [json.loads(SignedStatement.from_bytes(line, "a line").payload) for line in signed[0].splitlines()]
    assert [item["predicateType"] for item in said] == [
        "https://slsa.dev/provenance/v1", "https://slsa.dev/verification_summary/v1",
    ]  # fmt: skip
    named = [item["name"] for item in said[0]["predicate"]["buildDefinition"]["resolvedDependencies"]]
    trees = [entry["id"] for entry in json.loads(model_json)["estimators"]]
    assert [name.removeprefix("estimator ") for name in named if name.startswith("estimator ")] == trees
    for name in (f"specification {PROCESS}", "image attestree/learner:1.0.0", f"task {PROCESS}/{NODE}/1",
                 f"parameters of task {PROCESS}/{NODE}/0"):  # fmt: skip
        assert name in named
    assert said[1]["predicate"]["verificationResult"] == "PASSED"


@pytest.mark.parametrize("name", ["model.json", "claims.jsonl", "model.sig"])
def test_h20_one_altered_byte_of_a_proof_is_found(folder, check, name):
    raw = bytearray((folder / name).read_bytes())
    raw[raw.index(b'"threshold": ' if name == "model.json" else b'"payload":"') + 14] ^= 1
    (folder / name).write_bytes(raw)
    code, _ = check()
    assert code in (11, 14)


@pytest.mark.parametrize("number", [1, 2])
def test_h20_a_line_of_claims_that_holds_no_statement_is_named(folder, check, number):
    lines = (folder / "claims.jsonl").read_bytes().split(b"\n")
    bundle = json.loads(lines[number - 1])
    bundle["dsseEnvelope"]["payload"] = base64.b64encode(b"{}").decode()
    lines[number - 1] = json.dumps(bundle, separators=(",", ":"), sort_keys=True).encode()
    (folder / "claims.jsonl").write_bytes(b"\n".join(lines))
    code, found = check()
    assert (code, found["error"]["code"]) == (14, "PROOF_FORMAT")
    assert found["error"]["cause"].startswith(f"claims.jsonl:{number}: ")


def test_h20_a_file_added_or_linked_to_elsewhere_is_refused(folder, check):
    (folder / "extra").write_bytes(b"")
    code, found = check()
    assert (code, found["error"]["code"]) == (14, "PROOF_FILES")
    (folder / "extra").unlink()
    (folder / "model.npz").symlink_to(folder / "model.json")
    code, found = check()
    assert (code, found["error"]["code"]) == (14, "PROOF_FILES")


def test_h20_a_file_that_was_not_signed_is_named(folder, check):
    (folder / "model.npz").write_bytes(b"other trees")
    code, found = check()
    assert code == 11
    assert {"claim": "files", "what": "it was not signed", "where": "model.npz"} in found["failures"]


def test_a_model_of_another_node_or_owner_than_pinned_is_refused(check):
    code, found = check(model=f"{PROCESS}/node02")
    assert code == 11
    assert any(item["what"] == "it is signed by node01, who is not node02" for item in found["failures"])
    code, found = check(owner="Org2MSP")
    assert code == 11
    assert any(item["what"] == "it is about another model" for item in found["failures"])


def test_another_member_with_a_certificate_of_the_same_chain_is_refused(sign):
    for identity in (node_identity("node99"), authority("Org1MSP").issue("admin", "admin", role="admin")):
        with pytest.raises(AuditError) as refused:
            sign(identity)
        assert refused.value.code == "PROOF_REFUSED"
        assert "who is not node01" in refused.value.cause


def test_another_organisations_node_of_the_same_name_is_refused(sign):
    with pytest.raises(AuditError) as refused:
        sign(node_identity(NODE, "Org2MSP"))
    assert "0 chains lead from it to a root of Org1MSP" in refused.value.cause


def test_a_tls_certificate_of_the_node_is_refused(folder, check, signed):
    """Whoever runs one authority for both purposes has servers' keys that lead to the same root."""
    issuer = authority("Org1MSP")
    plain = node_identity()
    known = x509.load_pem_x509_certificate(plain.certificate)
    attributes = known.extensions.get_extension_for_oid(x509.ObjectIdentifier("1.2.3.4.5.6.7.8.1")).value
    purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    made = Authority._sign(
        issuer, known.subject, known.public_key(), 77, [(attributes, False), (purposes, False)]
    )
    tls = Identity(plain.msp_id, made.public_bytes(serialization.Encoding.PEM), plain.key)
    der = made.public_bytes(serialization.Encoding.DER)
    raw = SignedStatement.from_bytes(signed[1], "model.sig")
    again = SignedStatement(raw.payload, tls.sign(raw.signed), (der,))
    (folder / "model.sig").write_bytes(again.to_bytes())
    code, found = check()
    assert code == 11
    assert [(item["where"], "for TLS" in item["what"]) for item in found["failures"]] == [("model.sig", True)]


def test_h20_a_node_that_says_more_than_the_channel_is_found(folder, check, signed, model_json):
    """The node's own key can sign any provenance; the channel contradicts it."""
    identity = node_identity()
    certificate = x509.load_pem_x509_certificate(identity.certificate)
    der = certificate.public_bytes(serialization.Encoding.DER)
    first, second = signed[0].splitlines()
    said = Statement.from_bytes(SignedStatement.from_bytes(first, "1").payload, "1")
    said.predicate["buildDefinition"]["resolvedDependencies"][0]["digest"]["sha256"] = "0" * 64
    forged = SignedStatement.sign(said, identity.sign, [der])
    (folder / "claims.jsonl").write_bytes(forged.to_bytes() + b"\n" + second + b"\n")
    code, found = check(roots=False)
    assert code == 11
    assert {"channel", "files", "summary"} == {item["claim"] for item in found["failures"]}


def test_without_an_anchor_nothing_is_verified(folder):
    ran = CliRunner().invoke(
        main, ["audit", "proof", str(folder), "--model", f"{PROCESS}/{NODE}", "--owner", "Org1MSP"]
    )
    assert ran.exit_code == 2
    assert "AUDIT_ANCHOR" in ran.stderr


@given(st.data())
def test_h20_whatever_the_bytes_of_a_bundle_it_is_read_or_refused(signed, data):
    raw = bytearray(signed[1])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place : place + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    try:
        found = SignedStatement.from_bytes(bytes(raw), "model.sig")
        Statement.from_bytes(found.payload, "model.sig")
    except BundleError:
        return
    assert found.certificates
