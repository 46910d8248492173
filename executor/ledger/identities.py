"""With whose certificate and key the ledger is asked, and through whose peers, as the network has them."""

from executor.errors import UsageError
from executor.ledger.gateway import Identity, IdentityError, Peer, Trust, TrustError
from executor.network import Network


def check_organisation(network: Network, organisation: str) -> None:
    """Refuse an organisation that the network does not have."""
    if organisation not in network.organisations:
        known = ", ".join(network.organisations)
        raise UsageError(
            "ORGANISATION_UNKNOWN",
            f"{organisation!r} is no organisation of {network.project}",
            known=known,
        )


def load_identity(network: Network, organisation: str, name: str) -> Identity:
    """Read a user's certificate and key; one that is not there is named with those that are."""
    folder, msp_id = network.msp_folder(organisation, name), network.msp_id(organisation)
    try:
        return Identity.load(folder, msp_id)
    except IdentityError as error:
        if error.code != "IDENTITY_UNKNOWN":
            raise UsageError("IDENTITY_UNUSABLE", error.cause) from error
        users = folder.parent.parent
        known = sorted(path.name for path in users.iterdir()) if users.is_dir() else []
        cause = f"{msp_id} has no identity {name!r} here"
        if not known:
            raise UsageError("IDENTITY_UNKNOWN", cause, case="none") from error
        raise UsageError("IDENTITY_UNKNOWN", cause, known=", ".join(known)) from error


def check_trust(network: Network, trust: Trust) -> None:
    """Refuse an agreement that the network's organisations cannot reach."""
    try:
        trust.needed(len(network.organisations))
    except TrustError as error:
        raise UsageError("AGREEMENT_RANGE", error.cause, most=len(network.organisations)) from error


def peers_of(network: Network, organisation: str) -> list[Peer]:
    """Every organisation's peer, the organisation's own first, each under its own TLS authority.

    The others follow in a circle, so that not all organisations turn to the same one.
    """
    own = network.organisations.index(organisation)
    return [
        Peer(network.peer_address(name), network.msp_id(name), _read(network, name, "tlsca.pem"))
        for name in [*network.organisations[own:], *network.organisations[:own]]
    ]


def authorities_of(network: Network) -> dict[str, bytes]:
    """The authority that issues each organisation's signing certificates, as this host keeps it."""
    return {network.msp_id(name): _read(network, name, "ca.pem") for name in network.organisations}


def _read(network: Network, organisation: str, name: str) -> bytes:
    path = network.folder(organisation) / name
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError("NETWORK_INCOMPLETE", f"{path} cannot be read: {error.strerror}") from error
