"""Checks of the identities on this host: certificates that expire, keys that others can read."""

import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from cryptography import x509

from executor.doctor.finding import Finding
from executor.network import Network

SOON = timedelta(days=30)


def check_certificates(network: Network) -> Iterator[Finding]:
    """Check every certificate and key below the network's state."""
    yield _expiry(network, datetime.now(UTC))
    yield _permissions(network)


def _expiry(network: Network, now: datetime) -> Finding:
    files = [*network.state.rglob("signcerts/cert.pem"), *network.state.rglob("tls/server.crt")]
    ends = sorted(
        (x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc, path) for path in files
    )
    if not ends:
        return Finding("certificates", False, "none found", "run network/up.sh")
    first, path = ends[0]
    name = path.relative_to(network.state / "organisations").parent
    ok = first - now > SOON
    detail = f"{len(ends)} certificates, the first ends on {first:%Y-%m-%d} ({name})"
    return Finding(
        "certificates", ok, detail, "" if ok else "issue it anew: remove its folder and run network/up.sh"
    )


def _permissions(network: Network) -> Finding:
    keys = [*network.state.rglob("keystore/*"), *network.state.rglob("*.key")]
    loose = [path for path in keys if stat.S_IMODE(path.stat().st_mode) & 0o077]
    detail = (
        f"{len(loose)} readable by others, first {loose[0]}"
        if loose
        else f"{len(keys)} keys, none readable by others"
    )
    return Finding("private keys", not loose, detail, f"chmod 600 {loose[0]}" if loose else "")
