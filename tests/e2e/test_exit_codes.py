"""Every exit code of docs/exit-codes.md is reached through the command line."""

import json
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
import test_launch_integrity as altered
from click.testing import CliRunner
from docker import DockerClient
from support.launching import launch, launched, ledger, nothing_is_left, running, store_of, task_of
from support.lying_engine import lying_engine
from support.network import free_ports
from support.printed import Ran
from support.scripted_peers import (
    CONFLICT,
    TLS,
    ScriptedPeer,
    committed,
    gateway_service,
    members,
    msp_folder,
)
from test_launch_misbehaving import CASES as MISBEHAVIOURS

from executor import exits
from executor.cli import main
from executor.launch.relay import TaskRelay
from executor.network import Network

NODE = {"node01": "org1"}


@dataclass(frozen=True)
class Scene:
    """What the cases share: a running process that none of them advances, and a directory."""

    process: str
    image: str
    rows: Path
    folder: Path

    def launch(self, *arguments: str, **environment: str) -> Ran:
        return launch(self.process, "--node", "node01", *arguments, **environment)


@pytest.fixture(scope="module")
def process(learner: str, rows: Path) -> str:
    return running(learner, rows, NODE, topology="disconnected")


@pytest.fixture
def scene(process: str, learner: str, rows: Path, tmp_path: Path) -> Scene:
    return Scene(process, learner, rows, tmp_path)


def command(*arguments: str, **environment: str) -> Ran:
    """Run a command in this process."""
    ran = CliRunner().invoke(main, [*arguments, "--json"], env=environment)
    assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
    return Ran(ran.exit_code, ran.stdout, ran.stderr)


@contextmanager
def conflicting_network(folder: Path) -> Iterator[dict[str, str]]:
    """A network of one peer that takes every transaction and finds it overtaken by others."""
    peer = ScriptedPeer("Org1MSP").always("CommitStatus", committed(CONFLICT))
    server = grpc.server(futures.ThreadPoolExecutor(4))
    gateway_service.add_GatewayServicer_to_server(peer, server)
    with free_ports() as prefix:
        credentials = grpc.ssl_server_credentials([(TLS[1], TLS[0])])
        server.add_secure_port(f"127.0.0.1:{prefix}151", credentials)
        server.start()
        try:
            yield environment_of(folder, prefix)
        finally:
            server.stop(None).wait()
            peer.server.stop(None)


def environment_of(folder: Path, prefix: str) -> dict[str, str]:
    """Write down a network of one organisation whose ports begin with a prefix."""
    sizes = {"ORGS": 1, "ORDERERS": 1, "NODES": 1}
    names = {**sizes, "CONSENSUS": "raft", "CHAINCODE_IMAGE": "none", "PORTS": prefix}
    (folder / "network.env").write_text("".join(f"{name}={value}\n" for name, value in names.items()))
    organisation = folder / "organisations/org1"
    msp_folder(organisation / "users/data-scientist/msp")
    (organisation / "tlsca.pem").write_bytes(TLS[0])
    (organisation / "ca.pem").write_bytes(members("Org1MSP")["Org1MSP"])
    return {"ATTESTREE_STATE": str(folder)}


def overtaken(scene: Scene) -> Ran:
    with conflicting_network(scene.folder) as environment:
        return command("process", "abort", "any", "--reason", "overtaken", **environment)


def absent(scene: Scene) -> Ran:
    with free_ports() as prefix:
        return command("process", "list", **environment_of(scene.folder, prefix))


def weak_engine(scene: Scene) -> Ran:
    """The engine says that it cannot limit processes: nothing is opened."""

    def alter(path: str, answer: Any) -> Any:
        return {**answer, "PidsLimit": False} if path.endswith("/info") else answer

    socket = scene.folder / "engine.sock"
    with lying_engine(socket, alter):
        return scene.launch("--data", str(scene.rows), DOCKER_HOST=f"unix://{socket}")


def malformed_file(scene: Scene) -> Ran:
    path = scene.folder / "federation.yaml"
    path.write_text("process: 12\nnodes: []\n")
    return command("process", "create", "--spec", str(path))


def malformed_rows(scene: Scene) -> Ran:
    path = scene.folder / "rows.csv"
    path.write_text("x0,x1,x2,x3,x4,Class\n1,2,inf,4,5,0\n")
    return scene.launch("--data", str(path))


REACHED_HERE: dict[int, tuple[str | None, Callable[[Scene], Ran]]] = {
    exits.OK: (None, lambda scene: command("process", "status", scene.process)),
    exits.USAGE: ("LAUNCH_OPTIONS", lambda scene: scene.launch("--iterations", "1", "--until-complete")),
    exits.NOT_AUTHORISED: (
        "ACCESS_ROLE",
        lambda scene: command("image", "retire", scene.image, "--identity", "auditor"),
    ),
    exits.WRONG_STATE: ("LIFECYCLE_TRANSITION", lambda scene: command("process", "start", scene.process)),
    exits.INVALID_PAYLOAD: ("FEDERATION_SCHEMA", malformed_file),
    exits.LEDGER_UNREACHABLE: ("LEDGER_UNREACHABLE", absent),
    exits.CONFLICT: ("LEDGER_CONFLICT", overtaken),
    exits.ENGINE_UNREACHABLE: (
        "ENGINE_UNREACHABLE",
        lambda scene: scene.launch(
            "--data", str(scene.rows), DOCKER_HOST=f"unix://{scene.folder}/nobody.sock"
        ),
    ),
    exits.SANDBOX_REFUSED: ("SANDBOX_UNSUPPORTED", weak_engine),
    exits.DATA_UNUSABLE: ("DATA_VALUE", malformed_rows),
}
REACHED_BY_MISBEHAVING_LEARNERS = {
    exits.FAILED: "f11",
    exits.TIME_OUT: "f7-endless-loop",
    exits.SIGNATURE: "b3",
}
REACHED_BY_ALTERED_IMAGES = {exits.IMAGE_INTEGRITY: altered.refused}


def test_every_exit_code_has_a_case() -> None:
    numbers = {value for name, value in vars(exits).items() if name.isupper() and type(value) is int}
    assert numbers == {*REACHED_HERE, *REACHED_BY_MISBEHAVING_LEARNERS, *REACHED_BY_ALTERED_IMAGES}
    for number, case in REACHED_BY_MISBEHAVING_LEARNERS.items():
        assert MISBEHAVIOURS[case][2] == number


@pytest.mark.parametrize("number", REACHED_HERE)
def test_exit_code(number: int, scene: Scene) -> None:
    code, case = REACHED_HERE[number]
    ran = case(scene)
    assert ran.code == number, ran.out + ran.err
    if code is not None:
        assert ran.error["code"] == code
        assert ran.error["cause"]
        assert ran.error["remedy"]
    assert "Traceback" not in ran.err
    assert list(ledger().execution.list_tasks(scene.process)) == []


@pytest.mark.parametrize("name", ["../../elsewhere", "a/b", "$(id)", "; id", "", "x" * 300])
def test_14_f18_names_that_are_none_reach_neither_shell_nor_disk(scene: Scene, name: str) -> None:
    # A state of the test's own, because other tests launch meanwhile; all but the executor's part is linked.
    state = scene.folder / "network/state"
    (state / "executor/org1").mkdir(parents=True)
    for path in Network.load().state.iterdir():
        if path.name != "executor":
            (state / path.name).symlink_to(path)
    here, before = {"ATTESTREE_STATE": str(state)}, sorted(scene.folder.rglob("*"))
    ran = launch(name, "--node", "node01", "--data", str(scene.rows), **here)
    assert ran.error["exit_code"] == 14
    if name:
        assert scene.launch("--node", name, **here).error["exit_code"] == 14
    assert sorted(scene.folder.rglob("*")) == before


def test_2_a_node_that_another_executor_works_for_is_busy(scene: Scene) -> None:
    with store_of(scene.process, "node01").locked():
        ran = scene.launch("--data", str(scene.rows))
    assert (ran.code, ran.error["code"]) == (exits.USAGE, "NODE_BUSY")


def test_31_a_container_that_is_not_its_profile_is_removed_and_never_started(
    learner: str, rows: Path, tmp_path: Path, docker_client: DockerClient
) -> None:
    """The engine made something else than was asked for: the task is closed with the cause."""
    process = running(learner, rows, NODE, topology="disconnected")

    def alter(path: str, answer: Any) -> Any:
        if "/containers/" in path and path.endswith("/json") and "HostConfig" in answer:
            answer["HostConfig"]["NetworkMode"] = "host"
        return answer

    socket = tmp_path / "engine.sock"
    with lying_engine(socket, alter) as asked:
        ran = launch(process, "--node", "node01", "--data", str(rows), DOCKER_HOST=f"unix://{socket}")
    assert (ran.code, ran.error["code"]) == (exits.SANDBOX_REFUSED, "SANDBOX_MISMATCH")
    assert "network" in ran.error["cause"]
    assert any("/containers/create" in request for request in asked)
    assert not any("/start" in request for request in asked)
    task = task_of(process, "node01")
    assert (task.state, task.closed.code) == ("failed", "SANDBOX_MISMATCH")
    nothing_is_left(docker_client, process, "node01")


def test_40_data_that_changes_during_the_round_ends_it(
    learner: str, rows: Path, tmp_path: Path, docker_client: DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the same task runs with the file left alone; other columns than agreed are the wrong state."""
    process = running(learner, rows, NODE, topology="disconnected")
    original = (rows.parent / "node01.csv").read_text()
    path = tmp_path / "rows.csv"
    path.write_text(original)
    honest = TaskRelay.task

    def change_then_answer(desk: TaskRelay) -> Any:
        path.write_text(original + original.splitlines()[-1] + "\n")
        return honest(desk)

    with monkeypatch.context() as patched:
        patched.setattr(TaskRelay, "task", change_then_answer)
        ran = launch(process, "--node", "node01", "--data", str(path))
    assert (ran.code, ran.error["code"]) == (exits.DATA_UNUSABLE, "DATA_CHANGED")
    task = task_of(process, "node01")
    assert (task.state, task.closed.code) == ("failed", "DATA_CHANGED")
    nothing_is_left(docker_client, process, "node01")

    path.write_text(original.replace("x0", "renamed", 1))
    ran = launch(process, "--node", "node01", "--data", str(path))
    assert (ran.code, ran.error["code"]) == (exits.WRONG_STATE, "SCHEMA_MISMATCH")
    assert task_of(process, "node01").attempt == 1

    path.write_text(original)
    launched(process, "--node", "node01", "--data", str(path))
    assert task_of(process, "node01").attempt == 2


def test_without_json_a_refusal_says_cause_and_remedy_on_standard_error(scene: Scene) -> None:
    words = ["launch", "--process", scene.process, "--node", "node99", "--organisation", "org1"]
    ran = CliRunner().invoke(main, words)
    assert ran.exit_code == exits.USAGE
    assert ran.stdout == ""
    assert "LAUNCH_NODE" in ran.stderr
    assert "network/enroll.sh org1 node99 node" in ran.stderr
    assert json.loads(launch(scene.process, "--node", "node99").out)["error"]["exit_code"] == exits.USAGE
