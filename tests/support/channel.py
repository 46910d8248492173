"""Callers of the channel's chaincodes, each one identity: at its peer's Gateway, or at the peer CLI."""

import base64
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from executor.network import Network
from support.gateway import CONFLICT, VALID, Gateway, GatewayError
from support.network import peer

DIGESTS = [f"sha256:{digit * 64}" for digit in "0123456789abcdef"]
REPOSITORY = "registry:5000/attestree/learner"
IMAGE = "attestree/learner"
CONFLICT_ATTEMPTS = 6
_OVERTAKEN = re.compile(r"MVCC_READ_CONFLICT|ProposalResponsePayloads do not match")
_CODE = re.compile(r'\\?"code\\?":\\?"([A-Z_]+)\\?"')


@dataclass(frozen=True)
class Member:
    """One identity of one organisation, at the Gateway service of the organisation's peer."""

    organisation: str
    identity: str

    @property
    def cli(self) -> "CliMember":
        """The same identity at the peer CLI, as auditors without this project's software have it."""
        return CliMember(self.organisation, self.identity)

    def evaluate(self, chaincode: str, *arguments: Any, transient: Mapping[str, bytes] | None = None) -> Any:
        """Read on the organisation's own peer; returns the parsed answer."""
        own = [Network.load().msp_id(self.organisation)]
        return json.loads(
            client_of(self).evaluate(chaincode, *as_text(arguments), transient=transient, orgs=own)
        )

    def submit(self, chaincode: str, *arguments: Any, transient: Mapping[str, bytes] | None = None) -> None:
        """Have every organisation's peer endorse, and wait for the commit on each; what differs fails."""
        client = client_of(self)
        tx_id, envelope, _ = client.endorse(
            chaincode, *as_text(arguments), transient=transient, orgs=all_msps()
        )
        client.order(tx_id, envelope)
        committed_everywhere(tx_id)

    def propose(self, specification: Mapping[str, Any]) -> None:
        """Create a process; again, as a client does, if its organisation proposed another one meanwhile.

        Both count against the organisation, now and then under one key.
        """
        client, call = client_of(self), as_text(("Create", specification))
        for _ in range(CONFLICT_ATTEMPTS):
            try:
                tx_id, envelope, _ = client.endorse("orchestration", *call, orgs=all_msps())
            except GatewayError as error:
                if error.code is not None:
                    raise
                continue  # peers that are not equally far have endorsed it differently
            client.order(tx_id, envelope)
            if client.committed(tx_id).code != CONFLICT:
                break
        committed_everywhere(tx_id)

    def code(self, chaincode: str, *arguments: Any, transient: Mapping[str, bytes] | None = None) -> str:
        """Have every organisation's peer refuse to endorse; returns the code."""
        with pytest.raises(GatewayError) as refusal:
            client_of(self).endorse(chaincode, *as_text(arguments), transient=transient, orgs=all_msps())
        assert refusal.value.code, refusal.value
        return str(refusal.value.code)


class CliMember(Member):
    """One identity at the peer CLI; each call is a process of its own and takes a second."""

    def evaluate(self, chaincode: str, *arguments: Any, transient: Mapping[str, bytes] | None = None) -> Any:
        """Read on the organisation's own peer; returns the parsed answer."""
        ran = self._run("query", chaincode, arguments, transient)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    def submit(self, chaincode: str, *arguments: Any, transient: Mapping[str, bytes] | None = None) -> None:
        """Have every organisation's peer endorse, and wait for the commit on each; what differs fails."""
        ran = self._run("invoke", chaincode, arguments, transient)
        assert ran.returncode == 0, ran.stderr

    def propose(self, specification: Mapping[str, Any]) -> None:
        """Create a process; again if its organisation proposed another one meanwhile."""
        for _ in range(CONFLICT_ATTEMPTS):
            ran = self._run("invoke", "orchestration", ("Create", specification))
            if not _OVERTAKEN.search(ran.stderr):
                break
        assert ran.returncode == 0, ran.stderr

    def code(self, chaincode: str, *arguments: Any, transient: Mapping[str, bytes] | None = None) -> str:
        """Submit what must be refused; returns the code."""
        ran = self._run("invoke", chaincode, arguments, transient)
        assert ran.returncode != 0, ran.stderr
        found = _CODE.search(ran.stderr)
        assert found, ran.stderr
        return found.group(1)

    def _run(
        self,
        verb: str,
        chaincode: str,
        arguments: tuple[Any, ...],
        transient: Mapping[str, bytes] | None = None,
    ) -> Any:
        call = json.dumps({"Args": as_text(arguments)})
        encoded = {name: base64.b64encode(raw).decode() for name, raw in (transient or {}).items()}
        more = ("--transient", json.dumps(encoded)) if encoded else ()
        words = ("chaincode", verb, "-C", "attestree", "-n", chaincode, "-c", call, *more)
        return peer(self.organisation, self.identity, *words)


scientist1, admin1, auditor1 = (Member("org1", name) for name in ("data-scientist", "admin", "auditor"))
scientist2, admin2, auditor2 = (Member("org2", name) for name in ("data-scientist", "admin", "auditor"))


def as_text(arguments: tuple[Any, ...]) -> list[str]:
    """Arguments as chaincode takes them: text as it is, all else as JSON."""
    return [part if isinstance(part, str) else json.dumps(part) for part in arguments]


def gateway(organisation: str, identity: str, kind: type[Gateway] = Gateway) -> Gateway:
    """A client of an organisation's Gateway, for what a member does not do; close it after use."""
    return kind(Network.load(), organisation, identity)


@cache
def client_of(member: Member) -> Gateway:
    """A member's own client, kept open until the tests end."""
    return gateway(member.organisation, member.identity)


def all_msps() -> list[str]:
    network = Network.load()
    return [network.msp_id(name) for name in network.organisations]


def committed_everywhere(tx_id: str) -> None:
    """Return when every organisation's peer has a valid transaction: any of them may be asked next."""
    for organisation in Network.load().organisations:
        found = client_of(Member(organisation, "auditor")).committed(tx_id)
        assert found.code == VALID, f"transaction {tx_id} has code {found.code} in block {found.block}"


def unique(word: str) -> str:
    """A name that no earlier run on this ledger has used."""
    return f"{word}-{uuid.uuid4().hex[:12]}"


def register(version: str) -> None:
    scientist1.submit("image", "Register", IMAGE, version, DIGESTS[1], DIGESTS[2], REPOSITORY, "for a test")


def agreement(process: str) -> tuple[Any, ...]:
    """What to call to agree to the one change of a process that is asked for."""
    (asked,) = auditor1.evaluate("orchestration", "Asks", process)["items"]
    return ("orchestration", "Agree", process, asked["asked"], asked["number"], asked["digest"])


def specification(process: str, version: str, nodes: dict[str, str], **step: Any) -> dict[str, Any]:
    """A process of one step on these nodes of org1 and org2."""
    return {
        "version": 2,
        "process": process,
        "organisations": sorted(set(nodes.values())),
        "nodes": nodes,
        "topology": {"kind": "ring"},
        "steps": [
            {
                "name": "train",
                "image": {
                    "name": IMAGE,
                    "version": version,
                    "image_id": DIGESTS[2],
                    "manifest_digest": DIGESTS[1],
                },
                "iterations": 4,
                "parameters": {
                    "n_new": 1,
                    "n_max": 5,
                    "n_share": 1,
                    "seed": 7,
                    "limits": {"n_features": 30},
                    "schema_digest": DIGESTS[5],
                },
            }
            | step
        ],
    }
