"""The running service: every configured chaincode in one process, each on its own port, until a signal."""

import gc
import logging
import os
import signal
import threading

from chaincode.registry import contract
from chaincode.settings import Entry, ServiceSettings, SettingsError
from chaincode.shim import ChaincodeServer, MisuseError, Tls

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
STOP_SECONDS = 20.0
EXIT_STOPPED, EXIT_ABANDONED = 0, 1

log = logging.getLogger("serve")


def serve(settings: ServiceSettings) -> int:
    """Serve until SIGTERM or SIGINT, then let running transactions finish; returns the exit code."""
    logging.basicConfig(level=settings.log.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s")
    # Held back, here and in the threads that start, until this one asks: a handler that set an event could
    # come while this thread holds the event's lock, and wait for it for ever.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    servers = [_start(entry) for entry in settings.chaincodes]
    freeze()
    signal.sigwait(STOP_SIGNALS)
    log.info("stopping")
    return _stop(servers)


def freeze() -> None:
    """Keep what the service is made of out of garbage collections: fifty thousand objects, ten milliseconds.

    None of it is ever garbage, and a collection comes in the middle of somebody's transaction.
    """
    gc.collect()
    gc.freeze()


def _start(entry: Entry) -> ChaincodeServer:
    tls = Tls(entry.tls.key, entry.tls.certificate, entry.tls.client_roots) if entry.tls else None
    server = ChaincodeServer(contract(entry.name), entry.id, entry.listen, tls)
    try:
        server.start()
    except MisuseError as error:
        raise SettingsError(f"{entry.name}: {error}") from error
    log.info("serving %s as %s on %s%s", entry.name, entry.id, entry.listen, "" if tls else " without TLS")
    return server


def _stop(servers: list[ChaincodeServer]) -> int:
    """Stop all servers side by side, so that one deadline holds for the lot."""
    finished: list[bool] = []

    def stop_one(server: ChaincodeServer) -> None:
        finished.append(server.stop(STOP_SECONDS))

    threads = [threading.Thread(target=stop_one, args=(server,)) for server in servers]
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
