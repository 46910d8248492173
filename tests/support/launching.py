"""Launches on the live network: published images, small private data, running processes, what came of it."""

import functools
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from docker import DockerClient

from executor.caller import Caller
from executor.cli import main
from executor.data import load as load_rows
from executor.experiment.files import write_files
from executor.image.build import build
from executor.image.local import LocalImages
from executor.image.publish import ImagePublication, publish
from executor.image.reference import Reference
from executor.image.registry import ImageRegistry
from executor.launch.session import labels_of
from executor.launch.store import NodeStore
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.follow import wait_until
from executor.network import Network
from executor.process.federation import load
from experiments.data import synthetic
from learning.ensemble import Ensemble
from learning.parameters import Parameters
from learning.rows import Rows
from learning.simulator import Member, Simulation, simulate
from protocol.agreement.topology import Kind, Schedule, Topology
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.ledger.tasks import TaskEvidence
from protocol.task.opening import TaskId
from protocol.task.result import ensemble_digest
from support.channel import unique
from support.images import one_at_a_time
from support.network import run, until
from support.printed import EXECUTOR, Ran

NODES = ("node01", "node02", "node03", "node04", "node05", "node06")
"""Five of org1, the last one of org2."""
SMALL = {"n_new": 3, "n_share": 2, "n_max": 8, "seed": 7}
PATIENCE = "180"
"""Seconds for a task, where a test does not say; the command itself waits for an hour."""


def launch(process: str, *arguments: str, organisation: str = "org1", **environment: str) -> Ran:
    """Run `executor launch --json` in this process, which costs a launch less and lets a test step in."""
    words = ["launch", "--process", process, "--organisation", organisation, "--timeout", PATIENCE, "--json"]
    ran = CliRunner().invoke(main, [*words, *arguments], env={"ATTESTREE_IDENTITY": None, **environment})
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return Ran(ran.exit_code, ran.stdout, ran.stderr)


def launched(process: str, *arguments: str, **more: str) -> list[Any]:
    """Launch what must succeed; returns the nodes' reports."""
    ran = launch(process, *arguments, **more)
    assert ran.code == 0, ran.out + ran.err
    return list(ran.answer["nodes"])


def executor(*arguments: str, seconds: float = 300, **environment: str) -> Ran:
    """Run the command as its users do, in a process of its own."""
    ran = run(EXECUTOR, *arguments, seconds=seconds, **environment)
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def opened(organisation: str = "org1", identity: str = "auditor") -> Ledger:
    """The ledger as one identity sees it."""
    return Caller(Network.load(), organisation, identity).ledger()


@functools.cache
def _speaker(organisation: str, identity: str) -> Ledger:
    return opened(organisation, identity)


def ledger(organisation: str = "org1", identity: str = "auditor") -> Ledger:
    """The same, kept open until the tests end."""
    return _speaker(organisation, identity)


def task_of(process: str, node: str, iteration: int = 0) -> TaskEvidence:
    """A task with what it offered and came to."""
    return ledger().execution.get_task(TaskId(process, node, iteration))


def height(organisation: str = "org1") -> int:
    """The number of the next block, as the organisation's peer has it."""
    return ledger(organisation).transport.chain_info().height


def caught_up() -> None:
    """Return when each organisation's peer has every block that any of them has now."""
    organisations = Network.load().organisations
    newest = max(height(name) for name in organisations)
    for name in organisations:
        until(150, f"{name} has {newest} blocks", lambda name=name: height(name) >= newest)


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


def simulated(rows: Path, nodes: Sequence[str], iterations: int) -> Simulation:
    """The same federation on a ring in memory, where nothing can be in the way."""
    options = {name: SMALL[name] for name in ("n_new", "n_share", "n_max")}
    members = {}
    for node in nodes:
        table = load_rows(Path(str(rows).format(node=node)), "Class").table
        members[node] = Member(Rows.of(table.X, table.y), Parameters(**options))
    return simulate(
        members,
        Schedule(Topology(Kind.RING)),
        iterations=iterations,
        seed=SMALL["seed"],
        organisations={node: "org2" if node == NODES[-1] else "org1" for node in nodes},
    )


def digest_of(ensemble: Ensemble) -> Digest:
    """The digest under which results and models name an ensemble."""
    return ensemble_digest([(estimator.id, estimator.tree.digest) for estimator in ensemble])


def running(image: str, rows: Path, nodes: Mapping[str, str], *, by: str = "org1", **fields: Any) -> str:
    """Propose a process by a federation file, have every organisation accept it, and start it."""
    scientist = ledger(by, "data-scientist")
    process = unique("launch")
    file = {"process": process, "nodes": dict(nodes), "image": image, "label": "Class", **SMALL, **fields}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "federation.json")
        path.write_text(json.dumps({"schema_from": str(rows.parent / "node01.csv"), "iterations": 1, **file}))
        drafted = load(path).specification
    specification = drafted.pinned(lambda name, version: ledger().images.get(name, version).image.pin)
    scientist.orchestration.create(specification.to_dict())
    organisations = sorted(set(nodes.values()))
    for organisation in organisations:
        reached(process, "proposed", organisation)
        ledger(organisation, "data-scientist").orchestration.accept(process, specification.digest)
    wait_until(ledger(), process, lambda: not ledger().orchestration.status(process).missing or None, 150)
    scientist.orchestration.start(process)
    for organisation in organisations:
        reached(process, "running", organisation)
    return process


def reached(process: str, status: str, organisation: str = "org1") -> None:
    """The organisation's peer, which may be a block behind another's, has the process in this status."""
    here = ledger(organisation)

    def check() -> bool | None:
        try:
            return here.orchestration.status(process).status == status or None
        except StateError:
            return None

    wait_until(here, process, check, 150)


def published(client: DockerClient, name: str, image: Digest) -> str:
    """Publish an image under the version that its id gives it; returns NAME:VERSION."""
    wanted = ImagePublication.of(Reference.parse(name), image, ImageRegistry.of_network(Network.load()))
    local = LocalImages(client).find(str(image))
    assert local is not None, image
    publish(client, ledger("org1", "data-scientist").images, wanted, local, lambda _: None)
    return f"{wanted.name}:{wanted.version}"


def learner_image(client: DockerClient) -> Digest:
    """The learner image of these sources, built by the first who asks."""
    with one_at_a_time("learner-image"):
        return build(client, lambda _: None).image_id
