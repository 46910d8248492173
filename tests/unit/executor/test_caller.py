"""Who calls, from options, program and environment; and how a command ends that was refused."""

import json

import click
import pytest
from click.testing import CliRunner

from executor.caller import Caller, caller_options, group_options
from executor.cli import main as executor
from executor.errors import DeadlineError, IntegrityError
from executor.exits import exit_code, json_option, reported
from executor.ledger.errors import PhaseError
from executor.ledger.gateway import PeerDetail
from executor.network import Network
from protocol.errors import AccessError, SignatureError, StateError

ENVIRONMENT = "ORGS=2\nORDERERS=1\nCONSENSUS=raft\nNODES=4\nPORTS=17\nCHAINCODE_IMAGE=image\n"


@pytest.fixture(autouse=True)
def network(tmp_path, monkeypatch):
    (tmp_path / "network.env").write_text(ENVIRONMENT)
    monkeypatch.setenv("ATTESTREE_STATE", str(tmp_path))
    for name in ("ORGANISATION", "IDENTITY", "TRANSPORT", "TRUST_OWN_PEER", "TRUST_PEERS", "AGREEMENT"):
        monkeypatch.delenv(f"ATTESTREE_{name}", raising=False)
    return Network.load()


@click.group()
@group_options
def program(**_):
    pass


@program.command()
@caller_options("data-scientist")
@json_option
@reported
def show(caller, as_json):
    click.echo(f"{caller.organisation} {caller.identity} {caller.transport}")


def run(*arguments, command=program, **environment):
    return CliRunner().invoke(command, arguments, env=environment)


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        (("show",), {}, "org1 data-scientist gateway"),
        (("show",), {"ATTESTREE_ORGANISATION": "org2", "ATTESTREE_IDENTITY": "bob"}, "org2 bob gateway"),
        (("show",), {"ATTESTREE_TRANSPORT": "hfc"}, "org1 data-scientist hfc"),
        (
            ("--organisation", "org3", "show"),
            {"ATTESTREE_ORGANISATION": "org2"},
            "org3 data-scientist gateway",
        ),
        (("--identity", "eve", "show", "--identity", "bob"), {}, "org1 bob gateway"),
        (("--transport", "hfc", "show", "--organisation", "org4"), {}, "org4 data-scientist hfc"),
    ],
)
def test_the_nearest_choice_counts(arguments, environment, expected):
    ran = run(*arguments, **environment)
    assert (ran.exit_code, ran.output) == (0, f"{expected}\n")


def test_a_command_works_without_its_program():
    ran = run("--identity", "bob", command=show, ATTESTREE_ORGANISATION="org2", ATTESTREE_TRANSPORT="hfc")
    assert ran.output == "org2 bob hfc\n"


@program.command()
@caller_options("data-scientist")
def trusted(caller):
    trust = caller.trust
    click.echo(f"{trust.own_peer} {trust.peers} {trust.agreement}")


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        (("trusted",), {}, "False False None"),
        (("--trust-own-peer", "trusted"), {}, "True False None"),
        (("--trust-peers", "--agreement", "3", "trusted"), {}, "False True 3"),
        (("trusted",), {"ATTESTREE_TRUST_OWN_PEER": "1", "ATTESTREE_AGREEMENT": "2"}, "True False 2"),
        (("trusted",), {"ATTESTREE_TRUST_PEERS": "yes", "ATTESTREE_TRUST_OWN_PEER": "no"}, "False True None"),
        (("--agreement", "4", "trusted"), {"ATTESTREE_AGREEMENT": "2"}, "False False 4"),
    ],
)
def test_whom_to_trust_is_chosen_for_the_whole_program(arguments, environment, expected):
    assert run(*arguments, **environment).output == f"{expected}\n"


def test_a_command_without_its_program_trusts_as_the_environment_says():
    ran = run(command=trusted, ATTESTREE_TRUST_OWN_PEER="true", ATTESTREE_AGREEMENT="2")
    assert ran.output == "True False 2\n"
    assert run(command=trusted).output == "False False None\n"


@pytest.mark.parametrize("agreement", ["0", "-1", "many"])
def test_an_agreement_that_is_no_number_of_organisations_is_wrong_usage(agreement):
    assert run("--agreement", agreement, "trusted").exit_code == 2


def test_an_unknown_transport_is_wrong_usage():
    assert run("--transport", "pigeon", "show").exit_code == 2


def test_without_a_network_the_ledger_is_unreachable(tmp_path):
    ran = run("show", ATTESTREE_STATE=str(tmp_path / "none"))
    assert ran.exit_code == 20
    assert "NETWORK_MISSING" in ran.stderr
    assert "network/up.sh" in ran.stderr
    found = json.loads(run("show", "--json", ATTESTREE_STATE=str(tmp_path / "none")).stdout)
    assert found["error"]["exit_code"] == 20


@pytest.mark.parametrize(
    ("organisation", "code"), [("org9", "ORGANISATION_UNKNOWN"), ("org1", "NETWORK_INCOMPLETE")]
)
def test_a_ledger_that_cannot_be_opened_says_why(network, organisation, code):
    @click.command()
    @reported
    def command():
        Caller(network, organisation, "nobody").ledger()

    ran = run(command=command)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert code in ran.stderr


def test_addresses_and_folders_come_from_the_network(network, tmp_path):
    assert network.peer_address("org2") == "127.0.0.1:17251"
    assert network.msp_id("org2") == "Org2MSP"
    assert network.msp_folder("org2", "bob") == tmp_path / "organisations/org2/users/bob/msp"


def failing(error, cause=None):
    @click.command()
    @json_option
    @reported
    def command(as_json):
        raise error from cause

    return command


DETAIL = PeerDetail("peer.org1:7051", "Org1MSP", "it says no")
ERRORS = [
    (DeadlineError("WAIT_TIMEOUT", "waited"), 3),
    (IntegrityError("IMAGE_MANIFEST", "no manifest"), 10),
    (StateError("IMAGE_MISMATCH", "another image"), 10),
    (SignatureError("SIGNATURE_INVALID", "by another key"), 11),
    (AccessError("ACCESS_ROLE", "an auditor"), 12),
    (StateError("PROCESS_UNKNOWN", "no such process"), 13),
    (PhaseError("ENDORSE_FAILED", "no", "endorse", "ab" * 32, [DETAIL]), 20),
    (PhaseError("LEDGER_CONFLICT", "invalid in block 7", "commit", "ab" * 32), 21),
]


@pytest.mark.parametrize(("error", "number"), ERRORS, ids=[error.code for error, _ in ERRORS])
def test_an_error_ends_with_its_message_and_number(error, number):
    ran = run(command=failing(error))
    assert (ran.exit_code, ran.stdout) == (number, "")
    assert error.code in ran.stderr
    assert error.cause in ran.stderr
    assert error.remedy in ran.stderr
    found = json.loads(run("--json", command=failing(error)).stdout)["error"]
    assert found["exit_code"] == number == exit_code(error)
    assert (found["code"], found["cause"], found["remedy"]) == (error.code, error.cause, error.remedy)


def test_transaction_and_peers_are_told():
    error = PhaseError("ENDORSE_FAILED", "no", "endorse", "ab" * 32, [DETAIL])
    assert "peer.org1:7051 (Org1MSP): it says no" in run(command=failing(error)).stderr
    refusal = StateError("PROCESS_UNKNOWN", "no such process")
    ran = run(command=failing(refusal, error))
    assert "ab" * 32 in ran.stderr
    found = json.loads(run("--json", command=failing(refusal, error)).stdout)["error"]
    assert (found["transaction"], found["peers"][0]["msp"]) == ("ab" * 32, "Org1MSP")


def test_a_refused_read_names_no_transaction():
    error = PhaseError("EVALUATE_FAILED", "no", "evaluate", "ab" * 32, [DETAIL])
    assert "transaction" not in run(command=failing(error)).stderr


def test_a_bug_is_not_dressed_up_as_a_refusal():
    assert isinstance(run(command=failing(KeyError("bug"))).exception, KeyError)


def test_the_program_has_the_options():
    ran = run("--help", command=executor)
    assert all(option in ran.output for option in ("--transport", "--organisation", "--identity"))
