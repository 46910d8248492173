"""The folder of a replay: the private rows that its container reads, and what a killed one left of them."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from docker import DockerClient

from executor.network import Network
from executor.sandbox.container import reap

LABEL = "attestree.replay"
"""The containers of a replay have this label, with its folder's name."""
PREFIX = "replay-"


@contextmanager
def private_folder(client: DockerClient, network: Network) -> Iterator[Path]:
    """Give a directory that nobody else can look into, where the engine finds what it mounts.

    As long as a replay lives it holds its folder, so one that nobody holds was left by a replay that was
    killed: its container and its rows are removed first.
    """
    network.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (network.state / f"{PREFIX[:-1]}.lock").open("a") as making:
        fcntl.flock(making, fcntl.LOCK_EX)
        for left in network.state.glob(f"{PREFIX}*"):
            _remove_if_left(client, network, left)
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=network.state))
        held = os.open(folder, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def labels_of(network: Network, folder: Path) -> dict[str, str]:
    """Return the labels by which the containers of a folder's replay are found."""
    return {"attestree.network": network.project, "attestree.role": "replay", LABEL: folder.name}


def _remove_if_left(client: DockerClient, network: Network, folder: Path) -> None:
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return  # its replay has just ended and removed it, or it is no replay's, or another user's
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        reap(client, labels_of(network, folder))
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return
    finally:
        os.close(held)
