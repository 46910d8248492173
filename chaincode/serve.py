"""Serve chaincodes to a peer: `python -m chaincode.serve --config chaincodes.json`.

The configuration is one JSON file; nothing is read from the environment:

    {"log": "info",
     "chaincodes": [{
        "name": "probe", "id": "probe_1:5f0c...", "listen": "0.0.0.0:9001",
        "tls": {"key": "tls/server.key", "cert": "tls/server.crt", "client_ca": "tls/peer-ca.crt"}}]}

`name` picks the contract, `id` is the package id under which the peer installed it, and relative paths start
at the configuration file. `"tls": null` serves without TLS, on loopback addresses only.
"""

import argparse
import sys
from pathlib import Path

from chaincode.health import check
from chaincode.settings import ServiceSettings, SettingsError

EXIT_SETTINGS = 2


def main(argv: list[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT, or with --check tell whether the ports of a running service answer."""
    parser = argparse.ArgumentParser(
        prog="python -m chaincode.serve", description="Serve chaincodes to a peer."
    )
    parser.add_argument("--config", type=Path, required=True, help="the JSON file that lists the chaincodes")
    parser.add_argument(
        "--check", action="store_true", help="exit 0 if every configured port answers, 1 if not"
    )
    options = parser.parse_args(argv)
    try:
        settings = ServiceSettings.from_file(options.config)
        if options.check:
            return check(settings)
        # A health check runs every minute and must not pay for loading gRPC.
        from chaincode.service import serve  # noqa: PLC0415

        return serve(settings)
    except SettingsError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return EXIT_SETTINGS


if __name__ == "__main__":
    sys.exit(main())
