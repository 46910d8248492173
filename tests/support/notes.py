"""The chaincode of the shim's README on the live network: its certificates, its package, its definition."""

import datetime
import ipaddress
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from executor.network import CHANNEL, Network
from support.network import done, peer, until


def host_address(network: Network) -> str:
    """Where the containers of the network reach this host."""
    found = json.loads(done("docker", "network", "inspect", f"{network.project}_default"))
    return str(found[0]["IPAM"]["Config"][0]["Gateway"])


def make_certificates(folder: Path, address: str) -> None:
    """Make ca.crt, and for the chaincode's server and the peers' client a key and a certificate of it."""
    authority = ec.generate_private_key(ec.SECP256R1())
    _write(folder / "ca.crt", "authority", authority, authority, None)
    for name in ("server", "client"):
        key = ec.generate_private_key(ec.SECP256R1())
        # Both are called server.crt where network/lib/package.py looks for them.
        home = folder if name == "server" else folder / "client"
        _write(home / "server.crt", name, key, authority, address.rpartition(":")[0])
        (home / "server.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )


def _write(
    path: Path,
    name: str,
    key: ec.EllipticCurvePrivateKey,
    authority: ec.EllipticCurvePrivateKey,
    address: str | None,
) -> None:
    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder(
            named("authority"), named(name), key.public_key(), x509.random_serial_number()
        )
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=6))
        .add_extension(x509.BasicConstraints(ca=address is None, path_length=None), critical=True)
    )
    if address is not None:
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        builder = builder.add_extension(names, critical=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(builder.sign(authority, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))


def package(folder: Path, name: str, image_id: str, address: str) -> tuple[Path, str]:
    """Make the package that says where the server is; returns it, and its id."""
    output = folder / f"{name}.tar.gz"
    made = done(
        ".venv/bin/python", "network/lib/package.py", "--label", f"{name}_{image_id}", "--address", address,
        "--root", str(folder / "ca.crt"), "--client", str(folder / "client"), "--output", str(output),
    )  # fmt: skip
    return output, made.strip()


def deploy(network: Network, name: str, version: str, package_path: Path, package_id: str) -> None:
    """Install and approve in every organisation, then commit the definition."""
    definition = ("-C", CHANNEL, "-n", name, "--version", version, "--sequence", "1")

    def agree(organisation: str) -> None:
        lifecycle = ("network/peer.sh", organisation, "--", "lifecycle", "chaincode")
        done(*lifecycle, "install", str(package_path))
        done(*lifecycle, "approveformyorg", *definition, "--package-id", package_id)

    names = network.organisations
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(agree, names))
    endorsers = [
        flag
        for organisation in names
        for flag in (
            "--peerAddresses", network.peer_address(organisation),
            "--tlsRootCertFiles", str(network.folder(organisation) / "tlsca.pem"),
        )
    ]  # fmt: skip

    def committed() -> bool:
        # A peer that has not seen the last approval yet answers otherwise than the rest.
        commit = peer("org1", "admin", "lifecycle", "chaincode", "commit", *definition, *endorsers)
        return commit.returncode == 0

    until(60, f"the definition of {name} is committed", committed)
