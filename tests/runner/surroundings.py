"""What a run has around it: names and ports, environment, signals, temporary folder, and no second run."""

import contextlib
import fcntl
import os
import random
import re
import shutil
import signal
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = os.environ.get("ATTESTREE_TEST_PROJECT", "attestree-test")
"""The test network's name. Networks that tests make for themselves are called PROJECT-SOMETHING."""
PORTS = os.environ.get("ATTESTREE_TEST_PORTS", "17")
CONSENSUS = os.environ.get("ATTESTREE_TEST_CONSENSUS", "raft")
"""How the orderers of the test network agree."""
MARK = "ATTESTREE_TEST_RUN"
"""A variable that every process of a run inherits, by which the next run finds those that were left over."""
HASH_SEED = "PYTHONHASHSEED"
TREE_LIVES = "8 1000"
"""For how many blocks a confidential process may keep its trees: a life that a test can see the end of."""
WAIT_SECONDS = 2 * 3600
HELD = ".held"

# What another network, another terminal or another way of running pytest would bring in.
FOREIGN = re.compile(
    r"ATTESTREE_(PROJECT|PORTS|STATE|LOCKED|CHAINCODE_IMAGE|RESULTS|HYPOTHESIS|NETWORK_IS_UP)|COMPOSE_.*|PYTEST_.*|"
    r"(CORE|FABRIC|ORDERER)_.*|COLUMNS|LINES|LANGUAGE|(NO|FORCE|CLICOLOR|PY)_?COLORS?(_FORCE)?|TTY_.*|PYTHON(PATH|HOME|STARTUP|UTF8|"
    r"IOENCODING|WARNINGS|OPTIMIZE|DONTWRITEBYTECODE|PYCACHEPREFIX)|GIT_(DIR|WORK_TREE|INDEX_FILE|PREFIX)|"
    r"PIP_REQUIRE_VIRTUALENV|GREP_OPTIONS|CDPATH|BASH_ENV|ENV"
)


class RefusedError(Exception):
    """The run cannot start."""


def check_names() -> None:
    """Refuse names that a user's own network may have: everything that begins with them is removed."""
    if not re.fullmatch(r"attestree-([a-z0-9]{1,20}-)?test", PROJECT):
        raise RefusedError(
            f"ATTESTREE_TEST_PROJECT is '{PROJECT}': a test network is called attestree-test or"
            " attestree-NAME-test, because the run removes everything of that name"
        )
    if not re.fullmatch(r"[1-9][0-9]?", PORTS) or int(PORTS) > 64:
        raise RefusedError(
            f"ATTESTREE_TEST_PORTS is '{PORTS}': it is a number from 1 to 64, the beginning of the ports"
        )
    if CONSENSUS not in ("raft", "bft"):
        raise RefusedError(f"ATTESTREE_TEST_CONSENSUS is '{CONSENSUS}': it is raft or bft")


def environment(temporary: Path) -> dict[str, str]:
    """Return the environment of everything that a run starts: the same from a terminal and from cron."""
    kept = {name: value for name, value in os.environ.items() if not FOREIGN.fullmatch(name)}
    return {
        **kept,
        "ATTESTREE_PROJECT": PROJECT,
        "ATTESTREE_PORTS": PORTS,
        "ATTESTREE_CONFIDENTIAL_BLOCKS": TREE_LIVES,
        # Tables of characters, which a fresh clone would have every process of unit tests make.
        "HYPOTHESIS_STORAGE_DIRECTORY": str(cache() / "hypothesis"),
        "LC_ALL": "C.UTF-8",
        "TMPDIR": str(temporary),
        # In which order sets come is another thing that a failure may depend on, so it can be repeated.
        HASH_SEED: hash_seed(os.environ.get(HASH_SEED, "")),
        # Its own: whoever holds the network, which other runs wait for, has the network's.
        MARK: temporary.name,
    }


def hash_seed(given: str) -> str:
    """Return the seed of Python's hashes that was asked for, or a new one."""
    return given if given.isdecimal() else str(random.SystemRandom().randrange(1 << 32))


def cache() -> Path:
    """Return the folder outside of the clone that keeps what takes long to make, as network/lib has it."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("ATTESTREE_CACHE") or Path(base, "attestree"))


def settle_signals() -> None:
    """Let children be interrupted even under nohup or cron, where ignored signals would be inherited.

    A signal with a handler is back to its default in a child; SIGTERM ends the run as SIGINT does.
    """

    def interrupt(number: int, _: object) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    hung_up = signal.getsignal(signal.SIGHUP)
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGHUP, (lambda _number, _frame: None) if hung_up is signal.SIG_IGN else interrupt)


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a folder for everything temporary; those of killed runs are removed first.

    Its name is short, because sockets below it may have paths of 107 bytes at most.
    """
    base, prefix = Path(tempfile.gettempdir()), f"{PROJECT}."
    for folder in base.glob(f"{prefix}*"):
        _remove_unless_held(folder)
    made = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
    made.chmod(0o711)
    with (made / ".new").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        # Not there before it is held: a run that begins meanwhile removes what nobody holds.
        (made / ".new").rename(made / HELD)
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _remove_unless_held(folder: Path) -> None:
    try:
        found = folder.lstat()  # it may go meanwhile: other runs remove the same ones
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            return
        with (folder / HELD).open("r+") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Hold the test network's name and ports on this machine, or wait for who has them in any clone."""
    with contextlib.ExitStack() as held:
        held.enter_context(_hold(f"\0attestree test run, {PROJECT}", PROJECT))
        held.enter_context(_hold(port_name(PORTS), f"the ports {PORTS}…"))
        yield


def port_name(prefix: str) -> str:
    """Return what a user of these ports binds: a name without a file, which goes with its process."""
    return f"\0attestree tests, ports {prefix}"


@contextlib.contextmanager
def _hold(bound: str, what: str) -> Iterator[None]:
    end, told = time.monotonic() + WAIT_SECONDS, False
    with socket.socket(socket.AF_UNIX) as name:
        while True:
            try:
                name.bind(bound)
                break
            except OSError as error:
                if time.monotonic() > end:
                    raise RefusedError(f"another run has held {what} for {WAIT_SECONDS} s") from error
            if not told:
                told = True
                print(f"waiting for another run of scripts/test that has {what}", flush=True)
            time.sleep(1)
        yield
