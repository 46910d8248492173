"""The Fabric network on this host, as network/up.sh wrote it down."""

import os
import subprocess
from pathlib import Path

from protocol.values import dataclass

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "network"
CHANNEL = "attestree"
RAFT, BFT = "raft", "bft"
SECONDS = 30


class NetworkError(Exception):
    """The network is not there, or a command on it failed."""


@dataclass(frozen=True)
class Network:
    """One network: its name, its size and where its identities are."""

    project: str
    state: Path
    n_organisations: int
    n_orderers: int
    n_nodes: int
    chaincode_image: str
    ports: int = 7
    """What every port on this host begins with."""
    consensus: str = RAFT
    """How the orderers agree on blocks: by Raft, or by a quorum's signatures (BFT)."""

    @classmethod
    def load(cls) -> "Network":
        """Read what network/up.sh wrote, for the project that the environment names."""
        project = os.environ.get("ATTESTREE_PROJECT", "attestree")
        state = Path(os.environ.get("ATTESTREE_STATE", SCRIPTS / "state" / project))
        try:
            lines = (state / "network.env").read_text().splitlines()
            found = dict(line.split("=", 1) for line in lines)
            organisations, orderers, nodes = (int(found[name]) for name in ("ORGS", "ORDERERS", "NODES"))
            image, ports = found["CHAINCODE_IMAGE"], int(found["PORTS"])
            consensus = found["CONSENSUS"]
            if consensus not in (RAFT, BFT):
                raise ValueError(f"CONSENSUS={consensus}")
            return cls(project, state, organisations, orderers, nodes, image, ports, consensus)
        except FileNotFoundError as error:
            raise NetworkError(
                f"there is no network '{project}' here: {error.filename} does not exist"
            ) from error
        except (ValueError, KeyError) as error:
            raise NetworkError(f"{state / 'network.env'} is damaged: {error!r}") from error

    @property
    def organisations(self) -> list[str]:
        """The organisations that have a peer."""
        return [f"org{i}" for i in range(1, self.n_organisations + 1)]

    def folder(self, organisation: str) -> Path:
        """Where an organisation's certificates and users are."""
        return self.state / "organisations" / organisation

    def msp_folder(self, organisation: str, identity: str) -> Path:
        """The certificate and the key of one user of an organisation."""
        return self.folder(organisation) / "users" / identity / "msp"

    def msp_id(self, organisation: str) -> str:
        """How the channel names an organisation."""
        return f"Org{organisation.removeprefix('org')}MSP"

    def peer_address(self, organisation: str) -> str:
        """Where an organisation's peer listens on this host."""
        return f"127.0.0.1:{self.ports}{organisation.removeprefix('org')}51"

    @property
    def orderers(self) -> dict[str, str]:
        """The organisation that has each orderer: they are dealt out, one after the other."""
        owners = self.organisations
        return {f"orderer{i + 1}": owners[i % len(owners)] for i in range(self.n_orderers)}

    def orderer_folder(self, orderer: str) -> Path:
        """Where an orderer's certificate and key are, with its organisation's."""
        return self.folder(self.orderers[orderer]) / orderer

    def orderer_address(self, orderer: str) -> str:
        """Where an orderer listens on this host."""
        return f"127.0.0.1:{self.ports}0{orderer.removeprefix('orderer')}0"

    @property
    def registry_authority(self) -> Path:
        """Who certifies the registry: the organisation that runs it."""
        return self.folder("org1") / "tlsca.pem"

    @property
    def services(self) -> list[str]:
        """Every container the network consists of, by its service name."""
        return [
            "registry",
            *self.orderers,
            *(f"{kind}.{name}" for kind in ("ca", "peer", "chaincode") for name in self.organisations),
        ]

    def peer(self, organisation: str, *arguments: str) -> str:
        """Run the peer CLI as the organisation's administrator and return what it prints."""
        command = [str(SCRIPTS / "peer.sh"), organisation, "--", *arguments]
        environment = {**os.environ, "ATTESTREE_PROJECT": self.project, "ATTESTREE_STATE": str(self.state)}
        try:
            ran = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise NetworkError(f"peer {' '.join(arguments[:3])}: no answer within {SECONDS} s") from error
        if ran.returncode != 0:
            message = " ".join(ran.stderr.split()) or "no message"
            raise NetworkError(f"peer {' '.join(arguments[:3])}: {message}")
        return ran.stdout
