"""The launch command on the channel in memory: the real learner in a thread, and an engine with one image."""

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from click.testing import CliRunner, Result
from docker.errors import ImageNotFound

from executor.caller import Caller
from executor.cli import main
from executor.launch import command, task_run
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.transport import ChaincodeEvent, ChainInfo
from executor.network import RAFT
from executor.sandbox.container import Outcome
from learner import run as steps
from learner.outcome import StopError
from protocol.agreement.schema import FeatureSchema
from support.memory.federation import Federation
from support.memory.learners import N_FEATURES, specification, table_of
from support.memory.scenario import DIGESTS
from support.memory.story import MemberTransport

SCHEMA = FeatureSchema(tuple(f"x{number}" for number in range(N_FEATURES)), "Class")
IMAGE = "registry.example:5000/attestree/learner"
LIMITED = ("MemoryLimit", "SwapLimit", "PidsLimit", "CpuCfsQuota")


class LearnerContainer:
    """Runs the real learner in a thread, one at a time, where an engine would run each in a container."""

    turn = threading.Lock()

    def __init__(self, folder: Path) -> None:
        self.folder, self.code = folder, 0
        self.thread: threading.Thread | None = None

    @classmethod
    def create(cls, _client: object, _profile: object, mounts: Any, *_: object) -> Self:
        # What is mounted is there, and all of it: an engine would make a directory of what is not.
        laid_out = {path.name for path in mounts.rows.parent.iterdir()}
        mounted = {path for path in (mounts.rows, mounts.state, mounts.socket) if path is not None}
        assert {path.name for path in mounted} == laid_out
        return cls(mounts.rows.parent)

    def remove(self) -> None:
        if self.thread is not None:
            self.thread.join()

    def start(self, key: bytearray) -> None:
        self.thread = threading.Thread(target=self._run, args=(io.BytesIO(bytes(key)),))
        key[:] = bytes(len(key))
        self.thread.start()

    def wait_for_end(self, seconds: float) -> bool:
        assert self.thread is not None
        self.thread.join(seconds)
        return False

    def outcome(self, *, timed_out: bool) -> Outcome:
        return Outcome(self.code, False, timed_out, "")

    def _run(self, key: io.BytesIO) -> None:
        try:
            with self.turn:
                steps.run_task(self.folder, key, lambda _: None, lambda: None)
        except StopError as stop:
            self.code = stop.exit_code


class Engine:
    """An engine that has the registered image, unless a test takes it away or puts another in its place."""

    def __init__(self) -> None:
        self.images = {DIGESTS[2]: {"Id": DIGESTS[2], "RepoDigests": [f"{IMAGE}@{DIGESTS[1]}"], "Config": {}}}
        self.api = self

    def info(self) -> dict[str, Any]:
        known = dict.fromkeys(LIMITED, True)
        return {"OSType": "linux", "SecurityOptions": ["name=seccomp,profile=builtin"], **known}

    def inspect_image(self, reference: str) -> dict[str, Any]:
        for image in self.images.values():
            if reference in (image["Id"], *image["RepoDigests"]):
                return image
        raise ImageNotFound(reference)

    def containers(self, **_: object) -> list[dict[str, Any]]:
        return []

    def pull(self, *_: object, **__: object) -> list[dict[str, str]]:
        return [{"error": "no registry answers"}]


class OneByOne(MemberTransport):
    """The channel takes one transaction at a time, whichever node's thread it comes from."""

    lock = threading.RLock()

    def _endorse(self, *given: Any) -> Any:
        with self.lock:
            return super()._endorse(*given)  # type: ignore[no-untyped-call]

    def submit(self, *arguments: Any, **options: Any) -> Any:
        with self.lock:
            return super().submit(*arguments, **options)

    def chain_info(self) -> ChainInfo:
        return ChainInfo(self.member.ledger.blocks, b"")

    def events(self, chaincode: str, start: int, _: float) -> "Announced":
        return Announced(self.member.ledger, chaincode, start)


class Announced:
    """What a chaincode has announced on the channel in memory, and what it will, until it is closed."""

    def __init__(self, ledger: Any, chaincode: str, start: int) -> None:
        self.ledger, self.chaincode, self.start = ledger, chaincode, start
        self.seen, self.closed = 0, threading.Event()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ChaincodeEvent:
        while not self.closed.is_set():
            if self.seen == len(self.ledger.events):
                self.closed.wait(0.02)
                continue
            of, name, payload = self.ledger.events[self.seen]
            self.seen += 1
            if of == self.chaincode:
                return ChaincodeEvent(self.start + self.seen, f"tx{self.seen}", name, payload)
        raise StopIteration

    def close(self) -> None:
        self.closed.set()


@dataclass
class Host:
    """A host of the first organisation: its network's files, its engine, its nodes' rows."""

    folder: Path
    federation: Any
    engine: Engine = field(default_factory=Engine)

    def __post_init__(self) -> None:
        written = {
            "CONSENSUS": RAFT,
            "ORGS": 2,
            "ORDERERS": 4,
            "NODES": 4,
            "CHAINCODE_IMAGE": "none",
            "PORTS": 7,
        }
        self.state.mkdir(parents=True)
        (self.state / "network.env").write_text(
            "".join(f"{name}={value}\n" for name, value in written.items())
        )
        for organisation, node in (("org1", "node01"), ("org1", "node02"), ("org2", "node03")):
            (self.state / "organisations" / organisation / "users" / node / "msp").mkdir(parents=True)
        for number, node in enumerate(("node01", "node02")):
            self.rows(node).write_text(csv_of(table_of(number)))

    @property
    def state(self) -> Path:
        return self.folder / "s"

    @property
    def process(self) -> str:
        return str(self.federation.process)

    def rows(self, node: str) -> Path:
        return self.folder / f"{node}.csv"

    def directory(self, node: str = "node01") -> Path:
        """Where the executor keeps what is the node's."""
        return self.state / "executor" / "org1" / self.process / node

    def ledger(self, identity: str = "node01") -> Ledger:
        """The ledger as a node or an auditor of the organisation sees it."""
        if identity == "auditor":
            return Ledger(OneByOne(self.federation.auditor1))
        return Ledger(OneByOne(self.federation.nodes[identity]))

    def launch(self, *options: object) -> Result:
        """Type the command."""
        return CliRunner().invoke(main, ["launch", "--process", self.process, *map(str, options)])

    def start_from(self, model: Any) -> None:
        """Start a second process from a published model; from here on it is the host's."""
        initial = {"process": model.process, "node": model.node, "digest": str(model.digest)}
        second = {**specification_of(2), "process": "second", "initial_model": initial}
        self.federation.process = self.agree(second)

    def lay_out(self, *nodes: str) -> None:
        """Put the rows of nodes where a launch looks for them by itself."""
        usual = self.state / "executor" / "org1" / "data"
        usual.mkdir(parents=True, exist_ok=True)
        for node in nodes:
            (usual / f"{node}.csv").write_bytes(self.rows(node).read_bytes())

    def agree(self, specification: Any) -> str:
        """Propose another process, have both organisations accept it, and start it."""
        process = str(self.federation.create(specification)["process"])
        for caller in (self.federation.admin1, self.federation.admin2):
            caller.submit("orchestration", "Accept", process)
        self.federation.admin1.submit("orchestration", "Start", process)
        return process

    @property
    def data(self) -> tuple[str, str]:
        """The option that names the rows of every node."""
        return "--data", str(self.folder / "{node}.csv")


def csv_of(table: Any) -> str:
    """A table as its file: a column for each feature, then the label; nothing for a missing value."""
    lines = [",".join((*SCHEMA.features, SCHEMA.label))]
    for values, label in zip(table.X, table.y, strict=True):
        cells = ["" if np.isnan(value) else repr(float(value)) for value in values]
        lines.append(",".join((*cells, str(int(label)))))
    return "\n".join(lines) + "\n"


def specification_of(iterations: int) -> Any:
    """A process whose nodes wait for nobody and have the columns of these rows."""
    made = specification(synchronous=False, iterations=iterations)
    parameters = {**made["steps"][0]["parameters"], "schema_digest": str(SCHEMA.digest)}
    made["steps"][0] |= {"parameters": parameters}
    return made


def fresh(iterations: int = 2) -> Any:
    """The same federation as it was in the beginning."""
    return _kept(iterations)()


@cache
def _kept(iterations: int) -> Any:
    return Federation(specification_of(iterations)).snapshot()


@contextmanager
def at_host(host: Host, patch: pytest.MonkeyPatch) -> Iterator[Host]:
    """Let the command find this host, its engine and its ledger, and no others."""
    patch.setenv("ATTESTREE_STATE", str(host.state))
    patch.setenv("ATTESTREE_PROJECT", "net")
    for name in ("ATTESTREE_ORGANISATION", "ATTESTREE_IDENTITY"):
        patch.delenv(name, raising=False)
    patch.setattr(Caller, "ledger", lambda caller: host.ledger(caller.identity))
    patch.setattr(command, "engine", lambda: host.engine)
    patch.setattr(task_run, "Container", LearnerContainer)
    yield host
