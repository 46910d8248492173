"""Let a network namespace reach one port of the host's loopback: forward.py NAMESPACE PORT PIDFILE."""

import ctypes
import os
import socket
import sys
import threading
from pathlib import Path

BLOCK = 1 << 16
CLONE_NEWNET = 0x40000000


def main(namespace: str, port: int, pid_file: Path) -> None:
    """Listen within the namespace, connect outside of it: a socket belongs to where it was made."""
    with Path("/proc/self/ns/net").open() as outside, Path(namespace).open() as inside:
        enter(inside.fileno())
        listening = socket.create_server(("127.0.0.1", port))
        enter(outside.fileno())
    pid_file.write_text(f"{os.getpid()}\n")
    while True:
        taken, _ = listening.accept()
        try:
            asked = socket.create_connection(("127.0.0.1", port))
        except OSError:
            taken.close()
            continue
        for source, target in ((taken, asked), (asked, taken)):
            threading.Thread(target=carry, args=(source, target), daemon=True).start()


def enter(descriptor: int) -> None:
    """Move this thread into a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def carry(source: socket.socket, target: socket.socket) -> None:
    """Pass on what comes until it ends."""
    try:
        while block := source.recv(BLOCK):
            target.sendall(block)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        source.close()
        target.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
