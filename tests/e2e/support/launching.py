"""Launches on the live network: published images, small private data, running processes, what came of it."""

import functools
import io
import json
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from docker import DockerClient
from support.channel import unique
from support.images import push
from support.network import run

from executor.caller import Caller
from executor.cli import main
from executor.data import load as load_rows
from executor.experiment.files import write_files
from executor.experiment.synthetic import synthetic
from executor.image.build import build
from executor.image.publish import Publication, publish
from executor.image.reference import Reference
from executor.image.registry import Registry
from executor.launch.rounds import labels_of
from executor.launch.store import NodeStore
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.follow import wait_until
from executor.network import Network
from executor.process.federation import load
from learning.ensemble import Ensemble
from learning.parameters import Parameters
from learning.rows import Rows
from learning.simulator import Member, Simulation, simulate
from learning.topology import ring
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.task.opening import TaskId
from protocol.task.result import ensemble_digest

NODES = ("node01", "node02", "node03", "node04", "node05", "node06")
"""Five of org1, the last one of org2."""
SMALL = {"n_new": 3, "n_share": 2, "n_max": 8, "seed": 7}
EXECUTOR = str(Path(sys.executable).with_name("executor"))


@dataclass(frozen=True)
class Launched:
    """What a launch did."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> Any:
        """The one JSON object on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """Why the first node that failed did."""
        if "error" in self.answer:
            return self.answer["error"]
        return next(node["error"] for node in self.answer["nodes"] if node["error"])


def launch(process: str, *arguments: str, organisation: str = "org1", **environment: str) -> Launched:
    """Run `executor launch --json` in this process, which costs a launch less and lets a test step in."""
    words = ["launch", "--process", process, "--organisation", organisation, "--json", *arguments]
    ran = CliRunner().invoke(main, words, env={"ATTESTREE_IDENTITY": None, **environment})
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return Launched(ran.exit_code, ran.stdout, ran.stderr)


def launched(process: str, *arguments: str, **more: str) -> list[Any]:
    """Launch what must succeed; returns the nodes' reports."""
    ran = launch(process, *arguments, **more)
    assert ran.code == 0, ran.out + ran.err
    return list(ran.answer["nodes"])


def executor(*arguments: str, seconds: float = 300, **environment: str) -> Launched:
    """Run the command as its users do, in a process of its own."""
    ran = run(EXECUTOR, *arguments, seconds=seconds, **environment)
    return Launched(ran.returncode, ran.stdout, ran.stderr)


def opened(organisation: str = "org1", identity: str = "auditor") -> Ledger:
    """The ledger as one identity sees it."""
    return Caller(Network.load(), organisation, identity).ledger()


@functools.cache
def _speaker(organisation: str, identity: str) -> Ledger:
    return opened(organisation, identity)


def ledger(organisation: str = "org1", identity: str = "auditor") -> Ledger:
    """The same, kept open until the tests end."""
    return _speaker(organisation, identity)


def task_of(process: str, node: str, iteration: int = 0) -> dict[str, Any]:
    """A task with what it offered and came to."""
    return ledger().execution.get_task(TaskId(process, node, iteration))


def height() -> int:
    """The number of the next block."""
    return ledger().transport.chain_info().height


def blocks_since(first: int) -> list[bytes]:
    """The blocks from one on, as they are stored."""
    return [ledger().transport.block(number) for number in range(first, height())]


def blocks_about(process: str, first: int) -> list[int]:
    """The sizes of those blocks that name a process: others may write at the same time."""
    return [len(block) for block in blocks_since(first) if process.encode() in block]


def store_of(process: str, node: str, organisation: str = "org1") -> NodeStore:
    """What the node keeps on this host."""
    return NodeStore(Network.load().state, organisation, process, node)


def containers_of(client: DockerClient, process: str, node: str, organisation: str = "org1") -> list[str]:
    """The containers of a node that are there, running or not."""
    labels = labels_of(Caller(Network.load(), organisation, node), process, node)
    filters = {"label": [f"{name}={value}" for name, value in labels.items()]}
    return [found["Id"] for found in client.api.containers(all=True, filters=filters)]


def nothing_is_left(client: DockerClient, process: str, node: str, organisation: str = "org1") -> None:
    """Fail if a round left a container, a run directory or a journal."""
    store = store_of(process, node, organisation)
    assert containers_of(client, process, node, organisation) == []
    assert not (store.directory / "run").exists()
    assert store.begun() is None


def write_rows(folder: Path) -> Path:
    """Write a few hundred rows of five features for each node; returns the pattern for --data."""
    write_files(synthetic(rows=900, features=5, anomalous=0.06), NODES, 1, folder)
    return folder / "{node}.csv"


def simulated(rows: Path, nodes: Sequence[str], rounds: int) -> Simulation:
    """The same federation on a ring in memory, where nothing can be in the way."""
    options = {name: SMALL[name] for name in ("n_new", "n_share", "n_max")}
    members = {}
    for node in nodes:
        table = load_rows(Path(str(rows).format(node=node)), "Class").table
        members[node] = Member(Rows.of(table.X, table.y), Parameters(**options))
    return simulate(members, ring(sorted(nodes)), rounds=rounds, seed=SMALL["seed"])


def digest_of(ensemble: Ensemble) -> Digest:
    """The digest under which results and models name an ensemble."""
    return ensemble_digest([(estimator.id, estimator.tree.digest) for estimator in ensemble])


def running(image: str, rows: Path, nodes: Mapping[str, str], **fields: Any) -> str:
    """Propose a process by a federation file, have every organisation accept it, and start it."""
    process = unique("launch")
    file = {"process": process, "nodes": dict(nodes), "image": image, "label": "Class", **SMALL, **fields}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "federation.json")
        path.write_text(json.dumps({"schema_from": str(rows.parent / "node01.csv"), "rounds": 1, **file}))
        specification = load(path).specification
    ledger("org1", "data-scientist").orchestration.create(specification.to_dict())
    organisations = sorted(set(nodes.values()))
    for organisation in organisations:
        reached(process, "proposed", organisation)
        ledger(organisation, "data-scientist").orchestration.accept(process, specification.digest)
    wait_until(ledger(), process, lambda: not ledger().orchestration.status(process)["missing"] or None, 30)
    ledger("org1", "data-scientist").orchestration.start(process)
    for organisation in organisations:
        reached(process, "running", organisation)
    return process


def reached(process: str, status: str, organisation: str = "org1") -> None:
    """The organisation's peer, which may be a block behind another's, has the process in this status."""
    here = ledger(organisation)

    def check() -> bool | None:
        try:
            return here.orchestration.status(process)["status"] == status or None
        except StateError:
            return None

    wait_until(here, process, check, 30)


def published(client: DockerClient, name: str, image: Digest) -> str:
    """Publish an image under the version that its id gives it; returns NAME:VERSION."""
    wanted = Publication.of(Reference.parse(name), image, Registry.of_network(Network.load()))
    publish(client, ledger("org1", "data-scientist").images, wanted, lambda _: None)
    return f"{wanted.name}:{wanted.version}"


def learner_image(client: DockerClient) -> Digest:
    """The learner image of these sources."""
    return build(client, lambda _: None).image_id


@contextmanager
def derived(
    client: DockerClient, image: Digest, files: Mapping[str, bytes], changes: list[str] | None = None
) -> Iterator[Digest]:
    """An image with other files and settings on top; it is gone from the engine afterwards."""
    base = client.api.create_container(str(image))
    try:
        client.api.put_archive(base["Id"], "/", _packed(files))
        made = client.api.commit(base["Id"], changes=changes or [])["Id"]
    finally:
        client.api.remove_container(base["Id"], v=True)
    try:
        yield Digest.parse(made)
    finally:
        client.api.remove_image(made, force=True)


def _packed(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def registered(client: DockerClient, name: str, served: Digest, claimed: Digest) -> str:
    """Push one image and register it under the id of another, as a liar would; returns NAME:VERSION."""
    version, host = unique("1"), Registry.of_network(Network.load()).host
    manifest = push(client, served, f"{host}/{name}", version)
    ledger("org1", "data-scientist").images.register(name, version, manifest, claimed, f"{host}/{name}")
    return f"{name}:{version}"
