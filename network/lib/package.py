"""Write chaincode packages whose bytes depend on their content alone; prints their ids, one a line."""

import argparse
import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path


def main() -> None:
    """Package one organisation's connections to its chaincode service."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--label",
        action="append",
        required=True,
        help="name of the chaincode and id of the image that serves it; as often as there are packages",
    )
    parser.add_argument(
        "--address", action="append", required=True, help="HOST:PORT of the service, as the peer reaches it"
    )
    parser.add_argument(
        "--root", type=Path, required=True, help="PEM file: who signs the service's certificate"
    )
    parser.add_argument(
        "--client", type=Path, required=True, help="folder with server.crt and server.key of the peer"
    )
    parser.add_argument("--output", action="append", type=Path, required=True)
    options = parser.parse_args()
    if not len(options.label) == len(options.address) == len(options.output):
        parser.error("each package has a label, an address and an output")

    credentials = {
        "root_cert": options.root.read_text(),
        "client_cert": (options.client / "server.crt").read_text(),
        "client_key": (options.client / "server.key").read_text(),
    }
    for label, address, output in zip(options.label, options.address, options.output, strict=True):
        package = packaged(label, address, credentials)
        output.touch(mode=0o600)
        output.write_bytes(package)
        print(f"{label}:{hashlib.sha256(package).hexdigest()}")


def packaged(label: str, address: str, credentials: dict[str, str]) -> bytes:
    """Give the bytes of a package."""
    connection: dict[str, object] = {
        "address": address,
        "dial_timeout": "10s",
        "tls_required": True,
        "client_auth_required": True,
        **credentials,
    }
    metadata: dict[str, object] = {"type": "ccaas", "label": label, "path": ""}
    return archive(
        {"metadata.json": encode(metadata), "code.tar.gz": archive({"connection.json": encode(connection)})}
    )


def encode(content: dict[str, object]) -> bytes:
    """Give the JSON of a file in the package."""
    return json.dumps(content, sort_keys=True).encode()


def archive(files: dict[str, bytes]) -> bytes:
    """Pack files into a tar.gz without times, owners or names of the machine."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


if __name__ == "__main__":
    main()
