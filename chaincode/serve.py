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
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from chaincode.health import check
from chaincode.registry import contract
from chaincode.settings import Settings, SettingsError
from chaincode.shim import ChaincodeServer, ShimError

STOP_SECONDS = 20.0
EXIT_STOPPED, EXIT_ABANDONED, EXIT_SETTINGS = 0, 1, 2

log = logging.getLogger("serve")


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
        settings = Settings.from_file(options.config)
        return check(settings) if options.check else serve(settings)
    except (SettingsError, ShimError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return EXIT_SETTINGS


def serve(settings: Settings) -> int:
    """Run every configured chaincode in this process until a signal asks to stop."""
    logging.basicConfig(level=settings.log.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    servers = []
    for entry in settings.chaincodes:
        server = ChaincodeServer(contract(entry.name), entry.id, entry.listen, entry.tls)
        port = server.start()
        servers.append(server)
        log.info(
            "serving %s as %s on port %d%s", entry.name, entry.id, port, "" if entry.tls else " without TLS"
        )
    stop.wait()
    log.info("stopping")
    return _stop(servers)


def _stop(servers: list[ChaincodeServer]) -> int:
    """Stop all servers side by side, so that one deadline holds for the lot."""
    finished: list[bool] = []
    threads = [threading.Thread(target=lambda s=s: finished.append(s.stop(STOP_SECONDS))) for s in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if all(finished):
        log.info("stopped")
        return EXIT_STOPPED
    log.warning("stopped with transactions abandoned")
    logging.shutdown()
    # A contract that never returns would otherwise keep the interpreter waiting for its thread.
    os._exit(EXIT_ABANDONED)


if __name__ == "__main__":
    sys.exit(main())
