"""What the network's commands refuse: each with its code, a cause and a remedy, and nothing changed."""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import uuid
from pathlib import Path

import pytest
from support.network import PROJECT, ROOT, containers, done, free_ports, peer, probing, run

from executor.network import Network

USAGE, WRONG_STATE, DOCKER_UNREACHABLE = 2, 13, 30


@pytest.fixture(scope="module")
def running(network: None) -> dict[str, str]:
    """The network's containers, none of which any test replaces."""
    return containers()


@pytest.mark.parametrize(
    "command",
    [
        ("network/up.sh", "--frsh"),
        ("network/up.sh", "--orgs", "9"),
        ("network/up.sh", "--orgs", "many"),
        ("network/up.sh", "--orgs"),
        ("network/up.sh", "--orderers", "2"),
        ("network/up.sh", "--nodes", "201"),
        ("network/up.sh", "--orderers", "4"),
        ("network/up.sh", "--consensus", "bft", "--orderers", "3"),
        ("network/up.sh", "--consensus", "solo"),
        ("network/up.sh", "--images", "newest"),
        ("network/down.sh", "--purg"),
        ("network/peer.sh", "org9", "--", "version"),
        ("network/peer.sh", "org1", "nobody", "--", "version"),
        ("network/peer.sh", "org1", "../org2/users/admin", "--", "version"),
        ("network/peer.sh", "org1"),
        ("network/enroll.sh", "org1", "node99"),
        ("network/enroll.sh", "org1", "node99", "king"),
        ("network/enroll.sh", "org1", "../node99", "node"),
        ("network/enroll.sh", "orderer", "node99", "node"),
        ("network/enroll.sh", "org1", "orderer1", "node"),
        ("network/enroll.sh", "org1", "admin", "auditor"),
        ("network/revoke.sh", "org1", "nobody"),
        ("network/revoke.sh", "org1", "admin"),
        ("scripts/bootstrap", "--chek"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_refused(running: dict[str, str], command: tuple[str, ...]) -> None:
    ran = run(*command)
    assert ran.returncode == USAGE
    assert "cause:" in ran.stderr
    assert "remedy:" in ran.stderr
    assert containers() == running


def test_another_size_is_refused() -> None:
    ran = run("network/up.sh", "--orgs", "3", "--nodes", "200")
    assert ran.returncode == WRONG_STATE
    assert "--fresh" in ran.stderr


def test_existing_identity_is_not_made_twice() -> None:
    ran = run("network/enroll.sh", "org1", "node01", "node")
    assert ran.returncode == WRONG_STATE
    ran = run("network/enroll.sh", "org2", "node01", "node")
    assert ran.returncode == WRONG_STATE
    assert "org1" in ran.stderr


def test_engine_that_does_not_run_is_named(tmp_path: Path) -> None:
    ran = run("network/up.sh", DOCKER_HOST=f"unix://{tmp_path}/none.sock")
    assert ran.returncode == DOCKER_UNREACHABLE
    assert "scripts/bootstrap" in ran.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user without permission on the socket")
def test_missing_permission_on_the_socket_is_named(tmp_path: Path) -> None:
    locked = tmp_path / "docker.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(locked))
        locked.chmod(0o600)
        scripts = Path(
            shutil.copytree(ROOT / "network", tmp_path / "network", ignore=shutil.ignore_patterns("state"))
        )
        for folder in (tmp_path, *tmp_path.parents):
            if not folder.stat().st_mode & stat.S_IXOTH:
                folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
        ran = run(
            "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", str(scripts / "down.sh"),
            DOCKER_HOST=f"unix://{locked}", HOME=str(tmp_path),
        )  # fmt: skip
    assert ran.returncode == DOCKER_UNREACHABLE
    assert "docker group" in ran.stderr


def test_taken_port_is_named_with_its_process() -> None:
    name = f"{PROJECT}-other"
    with free_ports() as ports, socket.socket() as taken:
        # As up.sh asks: connections that another network's test closed a moment ago are not in the way.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", int(f"{ports}151")))
        taken.listen()
        ran = run("network/up.sh", ATTESTREE_PROJECT=name, ATTESTREE_PORTS=ports)
    assert ran.returncode == 1
    assert f"port {ports}151 is taken" in ran.stderr
    assert str(os.getpid()) in ran.stderr
    assert containers(name) == {}
    assert not (ROOT / "network/state" / name).exists()


@pytest.mark.parametrize(("fabric", "cause"), [("2.5.9", "Fabric 2.5.9"), ("3.1.1", "another network")])
def test_volume_of_another_network_is_never_started_upon(fabric: str, cause: str) -> None:
    project = f"{PROJECT}-elsewhere"
    volume = f"{project}_peer.org1"
    labels = (f"attestree.network={project}", f"attestree.fabric={fabric}", "attestree.id=elsewhere")
    done("docker", "volume", "create", *(f"--label={label}" for label in labels), volume)
    try:
        ran = run("network/up.sh", ATTESTREE_PROJECT=project)
        assert ran.returncode == WRONG_STATE
        assert cause in ran.stderr
        assert volume in done("docker", "volume", "ls", "-q")
    finally:
        done("docker", "volume", "rm", volume)


def test_c16_revoked_identity_is_denied() -> None:
    name = f"node-{uuid.uuid4().hex[:8]}"
    done("network/enroll.sh", "org3", name, "node")
    assert peer("org3", name, "channel", "getinfo", "-c", "attestree").returncode == 0
    done("network/revoke.sh", "org3", name)
    refused = peer(
        "org3", name, "chaincode", "query", "-C", "attestree", "-n", "probe", "-c", '{"Args":["whoami"]}'
    )
    assert refused.returncode != 0
    assert "access denied" in refused.stderr
    assert peer("org3", "node11", "channel", "getinfo", "-c", "attestree").returncode == 0
    assert "revoked" in run("network/revoke.sh", "org3", name).stderr


def test_c16_a_revocation_that_was_killed_after_the_authoritys_step_is_finished_by_the_next() -> None:
    name = f"node-{uuid.uuid4().hex[:8]}"
    done("network/enroll.sh", "org3", name, "node")
    state = Network.load().state
    with state.with_name(f"{state.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # It gets to the channel's part, where it waits for the lock.
        command = subprocess.Popen(
            [ROOT / "network/revoke.sh", "org3", name],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert command.stderr is not None
        said = iter(command.stderr.readline, "")
        assert any("the CA of org3 has revoked" in line for line in said)
        os.killpg(command.pid, signal.SIGKILL)
        command.communicate()
    assert peer("org3", name, "channel", "getinfo", "-c", "attestree").returncode == 0
    done("network/revoke.sh", "org3", name)
    assert "access denied" in peer("org3", name, *probing("whoami")).stderr


def test_c16_a_certificate_without_a_role_reads_no_block(tmp_path: Path) -> None:
    """Neither from a peer nor from an orderer; one with a role does."""
    name, state = f"guest-{uuid.uuid4().hex[:8]}", Network.load().state
    issued = state / "organisations/org3/users" / name
    parts = " ".join(f". network/lib/{part}.sh;" for part in ("common", "tools", "identities"))
    done("bash", "-euc", f"{parts} load_network; issue_identity org3 {name} client '{issued}'")
    for identity, allowed in ((name, False), ("auditor", True), ("data-scientist", True), ("node11", True)):
        for question in ("GetChainInfo", "GetBlockByNumber"):
            call = json.dumps({"Args": [question, "attestree", "0"]})
            words = ("chaincode", "query", "--hex", "-C", "attestree", "-n", "qscc", "-c", call)
            asked = peer("org3", identity, *words)
            assert (asked.returncode == 0) == allowed, f"{identity} {question}: {asked.stderr}"
        block = str(tmp_path / identity)
        fetched = peer("org3", identity, "channel", "fetch", "0", block, "-c", "attestree")
        assert (fetched.returncode == 0) == allowed, f"{identity} at an orderer: {fetched.stderr}"


def test_purge_removes_only_what_carries_the_label(running: dict[str, str]) -> None:
    bystander = f"bystander-{uuid.uuid4().hex[:8]}"
    done("docker", "volume", "create", bystander)
    try:
        done("network/down.sh", "--purge", ATTESTREE_PROJECT=f"{PROJECT}-none")
        assert bystander in done("docker", "volume", "ls", "-q")
        assert containers() == running
    finally:
        done("docker", "volume", "rm", bystander)


def test_private_keys_are_for_their_owner_alone() -> None:
    # Beside them the executor has its own part, in which other tests make and remove files meanwhile.
    organisations = Network.load().state / "organisations"
    modes = {}
    for folder, _, names in os.walk(organisations):
        for name in names:
            if Path(folder).name == "keystore" or name.endswith(".key"):
                # An identity that is being issued may be moved to its place just now.
                with contextlib.suppress(FileNotFoundError):
                    modes[Path(folder, name)] = stat.S_IMODE(Path(folder, name).stat().st_mode)
    assert len(modes) > 60
    assert [path for path, mode in modes.items() if mode & 0o077] == []


def test_services_run_without_root_and_publish_on_loopback_alone(running: dict[str, str]) -> None:
    described = json.loads(done("docker", "inspect", *running.values()))
    assert len(described) == len(running) > 10
    for container in described:
        assert container["Config"]["User"] not in ("", "0", "root", "0:0"), container["Name"]
        published = container["NetworkSettings"]["Ports"].values()
        addresses = {binding["HostIp"] for bindings in published for binding in bindings or []}
        assert addresses <= {"127.0.0.1"}, container["Name"]
