"""What the engine made is compared with the profile, field by field; what an executor left is reaped."""

from typing import Any

import pytest
from docker import DockerClient
from support.channel import unique
from support.sandboxes import Sandboxes, broker

from executor.errors import EngineError, SandboxError
from executor.image.local import LocalImage
from executor.sandbox.container import Container, Mounts, reap
from executor.sandbox.effective import check_effective, effective
from executor.sandbox.profile import Limits
from executor.sandbox.request import body


def test_profile_is_what_the_engine_made_on_two_hosts_paths(
    sandboxes: Sandboxes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = Sandboxes(sandboxes.client, sandboxes.image, tmp_path_factory.mktemp("elsewhere"))
    digests = set()
    for place in (sandboxes, elsewhere):
        with broker(place.folder / "broker.sock"):
            profile = place.profile()
            with place.create(place.mounts("leave", code=0), profile) as made:
                assert effective(made.inspect()) == {**profile.to_record(), "image_id": profile.image}
                digests.add(profile.digest)
    assert len(digests) == 1


HOST_ALTERATIONS: dict[str, tuple[dict[str, Any], str]] = {
    "privileged": ({"Privileged": True}, "privileged"),
    "capability": ({"CapAdd": ["NET_RAW"]}, "capabilities.add"),
    "capabilities-kept": ({"CapDrop": []}, "capabilities.drop"),
    "network": ({"NetworkMode": "bridge"}, "network"),
    "host-network": ({"NetworkMode": "host", "_Hostname": ""}, "network"),
    "host-pid": ({"PidMode": "host"}, "namespaces.pid"),
    "host-ipc": ({"IpcMode": "host"}, "namespaces.ipc"),
    "shared-ipc": ({"IpcMode": "shareable"}, "namespaces.ipc"),
    "host-uts": ({"UTSMode": "host", "_Hostname": ""}, "namespaces.uts"),
    "host-cgroup": ({"CgroupnsMode": "host"}, "namespaces.cgroup"),
    "host-users": ({"UsernsMode": "host"}, "others"),
    "writable-root": ({"ReadonlyRootfs": False}, "read_only_root"),
    "docker-socket": ({"Binds": ["/var/run/docker.sock:/var/run/docker.sock"]}, "mounts"),
    "more-tmpfs": ({"Tmpfs": {"/tmp": "", "/run": ""}}, "tmpfs./run"),
    "device": ({"Devices": [{"PathOnHost": "/dev/null", "PathInContainer": "/dev/x"}]}, "devices"),
    "device-rule": ({"DeviceCgroupRules": ["a *:* rwm"]}, "devices"),
    "no-seccomp": ({"SecurityOpt": ["no-new-privileges", "seccomp=unconfined"]}, "security_options"),
    "no-apparmor": ({"SecurityOpt": ["no-new-privileges", "apparmor=unconfined"]}, "security_options"),
    "new-privileges": ({"SecurityOpt": []}, "security_options"),
    "open-proc": ({"MaskedPaths": []}, "system_paths"),
    "writable-proc": ({"ReadonlyPaths": []}, "system_paths"),
    "no-memory-limit": ({"Memory": 0, "MemorySwap": 0}, "memory_bytes"),
    "swap": ({"MemorySwap": -1}, "memory_and_swap_bytes"),
    "no-oom-kill": ({"OomKillDisable": True}, "others"),
    "no-pids-limit": ({"PidsLimit": 0}, "pids"),
    "no-cpu-limit": ({"NanoCpus": 0}, "nano_cpus"),
    "no-ulimits": ({"Ulimits": []}, "ulimits.core"),
    "big-shm": ({"ShmSize": 1 << 30}, "shm_bytes"),
    "log-without-limit": ({"LogConfig": {"Type": "json-file", "Config": {}}}, "log.options.max-size"),
    "no-log": ({"LogConfig": {"Type": "none"}}, "log.driver"),
    "restart": ({"RestartPolicy": {"Name": "always"}}, "restart"),
    "auto-remove": ({"AutoRemove": True}, "auto_remove"),
    "init": ({"Init": True}, "init"),
    "group": ({"GroupAdd": ["0"]}, "groups"),
    "port": ({"PublishAllPorts": True}, "others"),
    "extra-host": ({"ExtraHosts": ["peer:10.0.0.1"]}, "others"),
    "cgroup-parent": ({"CgroupParent": "/other"}, "others"),
    "resolver": ({"Dns": ["1.1.1.1"]}, "others"),
    "sysctl": ({"Sysctls": {"kernel.msgmax": "65536"}}, "others"),
}
CONFIG_ALTERATIONS: dict[str, tuple[dict[str, Any], str]] = {
    "root": ({"User": "0"}, "user"),
    "entry-point": ({"Entrypoint": ["/bin/sh"]}, "entry_point"),
    "argument": ({"Cmd": ["--debug"]}, "entry_point"),
    "directory": ({"WorkingDir": "/tmp"}, "working_directory"),
    "environment": ({"Env": ["LD_PRELOAD=/tmp/x.so"]}, "environment"),
    "terminal": ({"Tty": True}, "terminal"),
    "stdin-again": ({"StdinOnce": False}, "stdin"),
    "health-check": ({"Healthcheck": {"Test": ["CMD", "/bin/true"]}}, "health_check"),
    "volume": ({"Volumes": {"/anonymous": {}}}, "mounts"),
    "stop-signal": ({"StopSignal": "SIGTERM"}, "stop_signal"),
    "host-name": ({"Hostname": "other"}, "hostname"),
}


@pytest.mark.parametrize("case", [*HOST_ALTERATIONS, *CONFIG_ALTERATIONS])
def test_container_that_differs_from_the_profile_is_refused(sandboxes: Sandboxes, case: str) -> None:
    with broker(sandboxes.folder / "broker.sock"):
        profile, mounts = sandboxes.profile(), sandboxes.mounts("report")
    request = body(profile, mounts.sources(), sandboxes.labels)
    if case in HOST_ALTERATIONS:
        altered, named = HOST_ALTERATIONS[case]
        request["HostConfig"] |= {name: value for name, value in altered.items() if not name.startswith("_")}
        request |= {name[1:]: value for name, value in altered.items() if name.startswith("_")}
    else:
        altered, named = CONFIG_ALTERATIONS[case]
        request |= altered
    api: Any = sandboxes.client.api
    made = Container(sandboxes.client, api.create_container_from_config(request, unique("sandbox"))["Id"])
    with made, pytest.raises(SandboxError, match=rf"SANDBOX_MISMATCH.*\b{named} "):
        check_effective(profile, made.inspect())


def test_a3_container_of_another_image_is_refused(sandboxes: Sandboxes, surprising: LocalImage) -> None:
    with broker(sandboxes.folder / "broker.sock"):
        profile, mounts = sandboxes.profile(), sandboxes.mounts("report")
    request = body(profile, mounts.sources(), sandboxes.labels) | {"Image": str(surprising.called)}
    api: Any = sandboxes.client.api
    made = Container(sandboxes.client, api.create_container_from_config(request, unique("sandbox"))["Id"])
    with made, pytest.raises(SandboxError, match=r"SANDBOX_MISMATCH.*\bimage_id "):
        check_effective(profile, made.inspect())


def test_limits_that_the_host_cannot_give_are_refused(sandboxes: Sandboxes) -> None:
    with pytest.raises(SandboxError, match=r"SANDBOX_REFUSED.*CPU"):
        sandboxes.run("report", limits=Limits(cpus=4000))


@pytest.mark.parametrize("wrong", ["missing", "directory", "private", "no-socket", "no-state"])
def test_mount_that_cannot_work_is_refused_before_anything_exists(sandboxes: Sandboxes, wrong: str) -> None:
    with broker(sandboxes.folder / "broker.sock"):
        profile, mounts = sandboxes.profile(), sandboxes.mounts("report")
    if wrong == "missing":
        mounts.rows.unlink()
    elif wrong == "directory":
        mounts = Mounts(sandboxes.folder, mounts.state, mounts.socket)
    elif wrong == "private":
        mounts.rows.chmod(0o400)
    elif wrong == "no-socket":
        mounts = Mounts(mounts.rows, mounts.state, mounts.rows)
    else:
        mounts = Mounts(mounts.rows, None, mounts.socket)
    with pytest.raises(SandboxError, match="SANDBOX_MOUNT"):
        Container.create(sandboxes.client, profile, mounts, {}, unique("sandbox"))


# --- F15: what an executor left behind


def test_f15_left_containers_are_reaped_and_no_others(sandboxes: Sandboxes) -> None:
    ours, theirs = (sandboxes.labels | {"attestree.process": unique("p")} for _ in range(2))
    made = []
    with broker(sandboxes.folder / "broker.sock") as listening:
        mounts = sandboxes.mounts("pause")
        for labels in (ours, ours, theirs):
            profile = sandboxes.profile()
            made.append(Container.create(sandboxes.client, profile, mounts, labels, unique("sandbox")))
        made[0].start(bytearray(32))  # one runs, one was never started
        assert listening.arrived.wait(120)
        with made[2]:
            assert sorted(reap(sandboxes.client, ours)) == sorted(container.id for container in made[:2])
            assert reap(sandboxes.client, ours) == []
            assert made[2].inspect()["State"]["Status"] == "created"
    for container in made:
        with pytest.raises(EngineError, match="CONTAINER_GONE"):
            container.inspect()
        container.remove()  # a second time is no error


def test_reaping_without_labels_is_refused(client: DockerClient) -> None:
    with pytest.raises(ValueError, match="labels"):
        reap(client, {})
