"""The sandbox against the real engine: a hostile learner gets nothing, and every end has its own outcome."""

import base64
import hashlib
import json
import os
import re
import secrets
import socket
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from support.channel import unique
from support.network import containers
from support.sandboxes import SMALL, Sandboxes, broker

from executor.engine import engine
from executor.errors import EngineError, SandboxError
from executor.image.local import LocalImage
from executor.sandbox.profile import ENTRY_POINT, Profile
from protocol.digest import Digest

NO_CAPABILITY = "0000000000000000"


@pytest.fixture(scope="module")
def seen(client: DockerClient, hostile: LocalImage, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a well-behaved program finds inside, asked once."""
    folder = tmp_path_factory.mktemp("seen")
    return Sandboxes(client, hostile, folder).told("report", list=["/attestree", "/tmp"])


@pytest.fixture(scope="module")
def attempts(client: DockerClient, hostile: LocalImage, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What came of every way out that a hostile program tries, asked once."""
    name = unique("attestree")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0" + name)  # an abstract address belongs to a network namespace
        listener.listen()
        folder = tmp_path_factory.mktemp("attempts")
        return Sandboxes(client, hostile, folder).told("escape", abstract=name)


def refused(found: dict[str, Any]) -> None:
    """Every attempt came to nothing; the ones that did not are listed."""
    assert [what for what, outcome in found.items() if "refused" not in outcome] == []


# --- F1 to F3: the host


@pytest.mark.every_engine
def test_f1_docker_socket_is_out_of_reach(seen: Any, attempts: Any) -> None:
    sockets = [path for path in seen["sockets_and_devices"] if not path.startswith("/dev/")]
    assert sockets == ["/attestree/broker.sock"]
    refused({what: attempts[what] for what in ("docker socket", "docker socket under run")})


@pytest.mark.every_engine
def test_f2_no_namespace_is_the_hosts(seen: Any, attempts: Any) -> None:
    for name in ("cgroup", "ipc", "mnt", "net", "pid", "uts"):
        assert seen["namespaces"][name] != str(Path(f"/proc/self/ns/{name}").readlink())
    assert seen["interfaces"] == ["lo"]
    assert seen["processes"] == [1]
    refused({"abstract": attempts["abstract socket of the host"]})


@pytest.mark.every_engine
def test_f3_no_capability_no_device_no_mount(seen: Any, attempts: Any) -> None:
    status = seen["status"]
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {NO_CAPABILITY}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert seen["user_of_a_set_uid_program"] == "10001"
    assert {status["Uid"], status["Gid"]} == {"10001\t10001\t10001\t10001"}
    assert status["Groups"] == "10001"
    devices = {path for path in seen["sockets_and_devices"] if path.startswith("/dev/")}
    assert (
        devices
        == {f"/dev/{name}" for name in ("full", "null", "random", "tty", "urandom", "zero")}
        | {"/dev/pts/ptmx"} & devices
    )
    refused(attempts)


# --- F4 to F6: data, file system, network


@pytest.mark.every_engine
def test_f4_f5_f10_data_state_and_image_cannot_be_written(sandboxes: Sandboxes) -> None:
    found = sandboxes.told("write")
    for what in ("write", "truncate", "remove", "change mode"):
        refused(found[what])
    refused({"run": found["run from /tmp"]})
    assert "done" in found["write to /tmp"]
    assert (sandboxes.folder / "state").read_text() == "state"
    assert {path.name for path in sandboxes.folder.iterdir()} == {"rows", "state", "broker.sock"}
    assert (sandboxes.folder / "broker.sock").stat().st_mode & 0o777 == 0o666


def test_f6_neither_internet_nor_peers_nor_names_are_reached(
    sandboxes: Sandboxes, docker_client: DockerClient
) -> None:
    peer = docker_client.api.inspect_container(containers()["peer.org1"])
    (network,) = peer["NetworkSettings"]["Networks"].values()
    with socket.create_server(("0.0.0.0", 0)) as listener:
        port = listener.getsockname()[1]
        addresses = [
            ["1.1.1.1", 443],
            [network["IPAddress"], 7051],
            [network["Gateway"], port],
            ["172.17.0.1", port],
            ["127.0.0.1", port],
            ["169.254.169.254", 80],
        ]
        refused(sandboxes.told("egress", addresses=addresses))


# --- F7, F9: limits


@pytest.mark.every_engine
def test_f7_fork_bomb_stops_at_the_limit(sandboxes: Sandboxes) -> None:
    found = sandboxes.told("fork_bomb")
    assert found["refused"] == "Resource temporarily unavailable"
    assert 0 < found["made"] < SMALL.pids


def test_f7_disk_filler_stops_at_the_limit(sandboxes: Sandboxes) -> None:
    found = sandboxes.told("disk")
    assert 0 < found["/tmp"]["written"] <= SMALL.tmp_bytes
    assert 0 < found["/dev/shm"]["written"] <= 1 << 20
    assert "nothing" not in {folder["refused"] for folder in found.values()}


def test_f7_log_flood_stays_small_and_harmless(sandboxes: Sandboxes) -> None:
    ran = sandboxes.run("log", bytes=4 << 20)
    assert ran.outcome.exit_code == 0
    assert len(ran.log) <= 2 * SMALL.log_bytes
    tail = ran.outcome.log_tail
    assert tail.endswith("the end\ufffd \ufffd\n")
    assert len(tail) <= 4000
    assert "\033" not in tail


def test_f9_line_without_end_is_cut(sandboxes: Sandboxes) -> None:
    ran = sandboxes.run("long_line", bytes=4 << 20)
    assert len(ran.log) <= 2 * SMALL.log_bytes
    assert len(ran.outcome.log_tail) <= 4000


def test_f7_endless_loop_is_killed_in_time(sandboxes: Sandboxes) -> None:
    outcome = sandboxes.run("endless", seconds=2).outcome
    assert outcome.timed_out
    assert outcome.exit_code == 137
    assert not outcome.oom_killed


# --- F11 to F13: outcomes


def test_f11_exit_0_without_a_result(sandboxes: Sandboxes) -> None:
    ran = sandboxes.run("leave", code=0)
    assert (ran.outcome.exit_code, ran.outcome.oom_killed, ran.outcome.timed_out) == (0, False, False)
    assert ran.messages == []


@pytest.mark.parametrize("code", [1, 64, 67, 70])
def test_f12_exit_code_of_the_learner_arrives(sandboxes: Sandboxes, code: int) -> None:
    outcome = sandboxes.run("leave", code=code).outcome
    assert (outcome.exit_code, outcome.oom_killed, outcome.timed_out) == (code, False, False)


def test_f12_learner_that_never_reads_its_key_still_has_an_exit_code(sandboxes: Sandboxes) -> None:
    codes = {sandboxes.run("leave", code=71, early=True).outcome.exit_code for _ in range(3)}
    assert codes == {71}


def test_f12_crash_is_no_memory_kill(sandboxes: Sandboxes) -> None:
    outcome = sandboxes.run("die").outcome
    assert (outcome.exit_code, outcome.oom_killed, outcome.timed_out) == (139, False, False)


def test_f12_container_that_the_operator_kills_is_no_memory_kill(sandboxes: Sandboxes) -> None:
    with (
        broker(sandboxes.folder / "broker.sock") as listening,
        sandboxes.create(sandboxes.mounts("pause")) as made,
    ):
        made.start(bytearray(32))
        assert listening.arrived.wait(120)
        sandboxes.client.api.kill(made.id)
        outcome = made.wait(120)
    assert (outcome.exit_code, outcome.oom_killed, outcome.timed_out) == (137, False, False)


@pytest.mark.every_engine
def test_f7_f13_memory_hog_is_told_apart(sandboxes: Sandboxes) -> None:
    outcome = sandboxes.run("memory").outcome
    assert (outcome.exit_code, outcome.oom_killed, outcome.timed_out) == (137, True, False)


# --- A10: surprising images


def test_a10_what_an_image_declares_is_overridden(
    client: DockerClient, surprising: LocalImage, tmp_path: Path
) -> None:
    sandboxes = Sandboxes(client, surprising, tmp_path)
    profile = sandboxes.profile()
    assert profile.volumes == ("/attestree", "/data", "/tmp", "/var/lib/made/up")
    ran = sandboxes.run("report", list=["/data", "/tmp", "/attestree"])
    assert ran.outcome.exit_code == 0, ran.outcome
    (found,) = ran.messages
    assert found["arguments"] == list(ENTRY_POINT)
    assert found["directory"] == "/"
    assert found["status"]["Uid"].split() == ["10001"] * 4
    assert found["environment"]["FROM_IMAGE"] == "kept"
    assert found["listed"] == {"/data": [], "/tmp": [], "/attestree": ["broker.sock", "rows", "state"]}
    masks = [line for line in found["mounts"] if " /data " in line]
    assert len(masks) == 1
    assert " ro," in masks[0]
    assert "Health" not in ran.inspected["State"]
    assert ran.inspected["Config"]["Labels"]["attestree.sandbox"] == str(profile.digest)
    assert "volume" not in {mount["Type"] for mount in ran.inspected["Mounts"]}


def test_a10_image_without_the_learner_is_refused(
    client: DockerClient, without_learner: LocalImage, tmp_path: Path
) -> None:
    with pytest.raises(SandboxError, match=r"SANDBOX_REFUSED.*learner"):
        Sandboxes(client, without_learner, tmp_path).run("report")


def test_image_that_is_not_there_is_not_pulled(client: DockerClient) -> None:
    with pytest.raises(EngineError, match="IMAGE_UNAVAILABLE"):
        Profile.for_image(client, LocalImage(Digest(bytes(32)), Digest(bytes(32))))


# --- B8: the key


@pytest.mark.every_engine
def test_b8_key_arrives_whole_and_stays_nowhere(
    sandboxes: Sandboxes, second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandboxes.folder.joinpath("config.json").write_text(
        json.dumps({"proxies": {"default": {"httpProxy": "http://user:secret@proxy.example:1"}}})
    )
    monkeypatch.setenv("DOCKER_CONFIG", str(sandboxes.folder))
    if second:
        monkeypatch.setenv("DOCKER_HOST", second)
    with closing(engine()) as sandboxes.client:
        ran = sandboxes.run("report")
    (found,) = ran.messages
    assert found["key"] == hashlib.sha256(ran.key).hexdigest()
    assert found["stdin_left"] == ""
    assert sorted(found["environment"]) == ["HOME", "HOSTNAME", "LANG", "LC_CTYPE", "PATH"] or sorted(
        found["environment"]
    ) == ["HOME", "HOSTNAME", "LANG", "PATH"]
    assert found["arguments"] == list(ENTRY_POINT)
    assert found["resolver"] == ""
    told = json.dumps([found["environment"], found["arguments"], ran.inspected]) + ran.log.decode()
    assert spellings(ran.key) & {text for text in spellings(ran.key) if text in told.encode()} == set()


def test_b8_engine_keeps_no_copy_of_the_key(sandboxes: Sandboxes, second: str) -> None:
    key = bytearray(secrets.token_bytes(32))
    copy = bytes(key)
    with (
        broker(sandboxes.folder / "broker.sock") as listening,
        sandboxes.create(sandboxes.mounts("pause")) as container,
    ):
        container.start(key)
        assert listening.arrived.wait(120)
        root = Path(sandboxes.client.info()["DockerRootDir"])
        address = second or os.environ.get("DOCKER_HOST", "")
        folders = [sandboxes.folder, *kept_about(container.id, root, address)]
        assert len(folders) >= 3 or not os.access(root / "containers", os.R_OK)
        for spelling in spellings(copy):
            grep = subprocess.run(
                ["grep", "-rlaF", "--devices=skip", spelling.decode("latin-1"), *map(str, folders)],
                capture_output=True, text=True, check=False, env={"LC_ALL": "C"},
            )  # fmt: skip
            assert (grep.returncode, grep.stdout) == (1, ""), grep.stderr
        arguments = Path(f"/proc/{container.inspect()['State']['Pid']}/cmdline").read_bytes()
        assert not any(spelling in arguments for spelling in spellings(copy))


def kept_about(container: str, root: Path, address: str) -> list[Path]:
    """The directories in which the engine and its containerd keep what they know of a container."""
    places = [root / "containers", Path("/run/docker/containerd"), Path("/run/containerd")]
    # An engine of scripts/engine keeps all that it has beside its socket.
    places += [Path(found).parent for found in re.findall("^unix://(/run/.*-engine-.*)", address)]
    walked = (found for place in places for found in os.walk(place))
    return [Path(folder, container) for folder, folders, _ in walked if container in folders]


def spellings(key: bytes) -> set[bytes]:
    return {key.hex().encode(), key.hex().upper().encode(), base64.b64encode(key).rstrip(b"=")}


def test_b8_key_of_another_length_is_wiped_and_not_sent(sandboxes: Sandboxes) -> None:
    with broker(sandboxes.folder / "broker.sock"), sandboxes.create(sandboxes.mounts("report")) as made:
        key = bytearray(b"k" * 31)
        with pytest.raises(ValueError, match="32 bytes"):
            made.start(key)
        assert key == bytes(31)
        assert made.inspect()["State"]["Status"] == "created"
