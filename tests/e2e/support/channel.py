"""Callers of the channel's chaincodes, each one identity that speaks through the peer CLI."""

import base64
import json
import os
import re
import uuid
from dataclasses import dataclass
from typing import Any

from support.gateway import Gateway
from support.network import PROJECT, ROOT, peer

STATE = ROOT / "network/state" / PROJECT

DIGESTS = [f"sha256:{digit * 64}" for digit in "0123456789abcdef"]
REPOSITORY = "registry:5000/attestree/learner"
IMAGE = "attestree/learner"
_CODE = re.compile(r'\\?"code\\?":\\?"([A-Z_]+)\\?"')


@dataclass(frozen=True)
class Member:
    """One identity of one organisation."""

    organisation: str
    identity: str

    def evaluate(self, chaincode: str, *arguments: Any, transient: dict[str, bytes] | None = None) -> Any:
        """Read on the organisation's own peer; returns the parsed answer."""
        ran = self._run("query", chaincode, arguments, transient)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    def submit(self, chaincode: str, *arguments: Any, transient: dict[str, bytes] | None = None) -> None:
        """Have every organisation's peer endorse, and wait for the commit; answers that differ fail here."""
        ran = self._run("invoke", chaincode, arguments, transient)
        assert ran.returncode == 0, ran.stderr

    def code(self, chaincode: str, *arguments: Any, transient: dict[str, bytes] | None = None) -> str:
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
        transient: dict[str, bytes] | None = None,
    ) -> Any:
        texts = [part if isinstance(part, str) else json.dumps(part) for part in arguments]
        call = json.dumps({"Args": texts})
        encoded = {name: base64.b64encode(raw).decode() for name, raw in (transient or {}).items()}
        more = ("--transient", json.dumps(encoded)) if encoded else ()
        return peer(
            self.organisation,
            self.identity,
            "chaincode",
            verb,
            "-C",
            "attestree",
            "-n",
            chaincode,
            "-c",
            call,
            *more,
        )


scientist1, admin1, auditor1 = (Member("org1", name) for name in ("data-scientist", "admin", "auditor"))
scientist2, admin2, auditor2 = (Member("org2", name) for name in ("data-scientist", "admin", "auditor"))


def gateway(organisation: str, identity: str, kind: type[Gateway] = Gateway) -> Gateway:
    """A client of an organisation's Gateway, for what the CLI cannot do; close it after use."""
    port = int(f"{os.environ.get('ATTESTREE_PORTS', '7')}{organisation.removeprefix('org')}51")
    return kind(STATE, organisation, identity, port=port)


def unique(word: str) -> str:
    """A name that no earlier run on this ledger has used."""
    return f"{word}-{uuid.uuid4().hex[:12]}"


def register(version: str) -> None:
    scientist1.submit("image", "Register", IMAGE, version, DIGESTS[1], DIGESTS[2], REPOSITORY, "for a test")


def specification(process: str, version: str, nodes: dict[str, str], **step: Any) -> dict[str, Any]:
    """A process of one step on these nodes of org1 and org2."""
    return {
        "version": 1,
        "process": process,
        "organisations": sorted(set(nodes.values())),
        "nodes": nodes,
        "topology": {"kind": "ring"},
        "steps": [
            {
                "name": "train",
                "image": {"name": IMAGE, "version": version},
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
