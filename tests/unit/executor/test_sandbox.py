"""The profile of a container: one digest wherever it runs, and no setting that passes unseen."""

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from executor.errors import SandboxError
from executor.exits import SANDBOX_REFUSED, exit_code
from executor.sandbox.effective import check_effective, differences, effective
from executor.sandbox.profile import ENTRY_POINT, Limits, Profile, masked_volumes
from executor.sandbox.request import Mounts, body
from executor.sandbox.support import DESKTOP, PODMAN, check_engine, missing, unfit_kind
from protocol import canonical
from protocol.digest import Digest

IMAGE = Digest(b"\xab" * 32)


def recorded(name: str) -> Any:
    """What a real engine once answered."""
    return json.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))


RECORDED = recorded("inspected-docker-20.10.json")
PROFILE = Profile(
    IMAGE,
    Limits(memory_bytes=96 << 20),
    ("/attestree", "/data", "/tmp", "/var/lib/made/up"),
    has_state=True,
    environment=tuple(RECORDED["Config"]["Env"]),
)
SOURCES = dict.fromkeys(PROFILE.mounts, "/run/attestree/x")
CAPABLE = {
    "OSType": "linux",
    "MemoryLimit": True,
    "SwapLimit": True,
    "PidsLimit": True,
    "CpuCfsQuota": True,
    "SecurityOptions": ["name=apparmor", "name=seccomp,profile=builtin", "name=cgroupns"],
}


def test_recorded_container_is_the_profile() -> None:
    assert differences(PROFILE.to_record(), effective(RECORDED)) == []
    check_effective(PROFILE, RECORDED)


def test_digest_of_a_profile_never_changes() -> None:
    assert str(Profile(IMAGE).digest) == (
        "sha256:671a26b92a3b6141c72e293455e2d97566acec657ee5deba713920a073e784c0"
    )


def test_record_holds_no_path_name_or_time_of_the_host() -> None:
    text = canonical.encode(PROFILE.to_record()).decode()
    request = body(PROFILE, SOURCES, {"attestree.process": "secret-process"})
    assert "/run/attestree" in json.dumps(request)
    assert "/run/attestree" not in text
    assert "secret-process" not in text


@pytest.mark.parametrize(
    "other",
    [
        Profile(Digest(b"\xac" * 32)),
        Profile(IMAGE, Limits(memory_bytes=1)),
        Profile(IMAGE, Limits(cpus=0.5)),
        Profile(IMAGE, Limits(pids=65)),
        Profile(IMAGE, Limits(tmp_bytes=1)),
        Profile(IMAGE, Limits(log_bytes=1)),
        Profile(IMAGE, volumes=("/data",)),
        Profile(IMAGE, has_state=True),
        Profile(IMAGE, environment=("A=1",)),
        Profile(IMAGE, runtime="runsc"),
    ],
)
def test_everything_in_a_profile_moves_its_digest(other: Profile) -> None:
    assert other.digest != Profile(IMAGE).digest


def test_request_asks_for_no_command_environment_or_device_of_the_operator() -> None:
    request = body(PROFILE, SOURCES, {})
    assert (request["Entrypoint"], request["Cmd"], request["Env"]) == (list(ENTRY_POINT), None, [])
    host = request["HostConfig"]
    assert (host["Devices"], host["CapAdd"], host["CapDrop"]) == ([], [], ["ALL"])
    assert all(mount["ReadOnly"] for mount in host["Mounts"])
    assert "unconfined" not in json.dumps(request)


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("Image",), "sha256:" + "ac" * 32, "image_id"),
        (("Config", "User"), "root", "user"),
        (("Config", "Env"), [*PROFILE.environment, "HTTP_PROXY=x"], "environment"),
        (("HostConfig", "Privileged"), True, "privileged"),
        (("HostConfig", "AFieldOfALaterEngine"), {"on": True}, "others"),
        (("HostConfig", "VolumesFrom"), ["other"], "others"),
        (("HostConfig", "UsernsMode"), "host", "others"),
        (("HostConfig", "OomScoreAdj"), -1000, "others"),
        (("HostConfig", "Ulimits", 0, "Hard"), 1, "ulimits.core"),
        (("HostConfig", "MaskedPaths"), ["/proc/kcore"], "system_paths"),
        (("HostConfig", "ReadonlyPaths"), None, "system_paths"),
        (("NetworkSettings", "Networks"), {"bridge": {}}, "network"),
        (("Mounts", 0, "RW"), True, "mounts"),
        (("Mounts", 0, "Type"), "volume", "mounts"),
    ],
)
def test_altered_setting_is_named(path: tuple[Any, ...], value: Any, named: str) -> None:
    altered = copy.deepcopy(RECORDED)
    inner = altered
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    with pytest.raises(SandboxError, match=rf"SANDBOX_MISMATCH.* {named} \(") as caught:
        check_effective(PROFILE, altered)
    assert exit_code(caught.value) == SANDBOX_REFUSED


def test_later_engine_may_hide_more_and_leave_new_settings_empty() -> None:
    altered = copy.deepcopy(RECORDED)
    altered["HostConfig"]["MaskedPaths"].append("/sys/devices/virtual/powercap")
    altered["HostConfig"] |= {
        "Annotations": None,
        "SomethingNew": "",
        "SecurityOpt": ["no-new-privileges:true"],
    }
    altered["HostConfig"]["Runtime"] = "crun"
    check_effective(PROFILE, altered)


def test_what_an_engine_calls_the_image_is_no_part_of_the_record() -> None:
    by_manifest = replace(PROFILE, called=Digest(b"\xcd" * 32))
    assert by_manifest.digest == PROFILE.digest
    assert body(by_manifest, SOURCES, {})["Image"] == str(by_manifest.called)


def test_a1_a_container_must_be_of_the_checked_manifest_and_of_no_other_name() -> None:
    """Where an engine calls images by manifest, not even the ledger's id is another name for it."""
    by_manifest = replace(PROFILE, called=Digest(b"\xcd" * 32))
    check_effective(by_manifest, RECORDED | {"Image": str(by_manifest.called)})
    for other in (str(PROFILE.image_id), "sha256:" + "ef" * 32):
        with pytest.raises(SandboxError, match=r"SANDBOX_MISMATCH.* image_id \("):
            check_effective(by_manifest, RECORDED | {"Image": other})


def test_a_runtime_that_is_asked_for_is_recorded_and_must_be_given() -> None:
    asked = replace(PROFILE, runtime="runsc")
    assert (asked.to_record()["runtime"], "runtime" in PROFILE.to_record()) == ("runsc", False)
    assert body(asked, SOURCES, {})["HostConfig"]["Runtime"] == "runsc"
    assert "Runtime" not in body(PROFILE, SOURCES, {})["HostConfig"]
    given = copy.deepcopy(RECORDED)
    for runtime in ("runc", None):
        given["HostConfig"]["Runtime"] = runtime
        with pytest.raises(SandboxError, match=r"SANDBOX_MISMATCH.* runtime \("):
            check_effective(asked, given)
    given["HostConfig"]["Runtime"] = "runsc"
    check_effective(asked, given)


def test_a_runtime_that_the_engine_does_not_have_is_refused_with_those_it_has() -> None:
    class Client:
        def info(self) -> dict[str, Any]:
            return CAPABLE | {"Runtimes": {"runc": {}, "crun": {}}}

    check_engine(Client(), "crun")  # type: ignore[arg-type]
    with pytest.raises(SandboxError, match=r"SANDBOX_UNSUPPORTED.*'runsc': its runtimes are crun, runc"):
        check_engine(Client(), "runsc")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("memory_bytes", 0),
        ("memory_bytes", -1),
        ("memory_bytes", 1.5),
        ("memory_bytes", 2**60),
        ("pids", 0),
        ("pids", True),
        ("cpus", 0),
        ("cpus", float("nan")),
        ("cpus", float("inf")),
        ("cpus", "1"),
        ("tmp_bytes", -1),
        ("log_bytes", 0),
    ],
)
def test_limit_that_means_no_limit_is_refused(limit: str, value: Any) -> None:
    with pytest.raises(SandboxError, match="SANDBOX_LIMITS"):
        Limits(**{limit: value})


def test_engine_that_can_everything_lacks_nothing() -> None:
    assert missing(CAPABLE) == []
    assert missing(CAPABLE | {"SecurityOptions": ["name=seccomp,profile=default"]}) == []


@pytest.mark.parametrize(
    "lacking",
    [
        {"OSType": "windows"},
        {"MemoryLimit": False},
        {"SwapLimit": False},
        {"PidsLimit": None},
        {"CpuCfsQuota": False},
        {"SecurityOptions": None},
        {"SecurityOptions": ["name=apparmor"]},
        {"SecurityOptions": ["name=seccomp,profile=unconfined"]},
        {"SecurityOptions": ["name=seccomp,profile=/etc/docker/own.json"]},
    ],
)
def test_engine_that_cannot_enforce_a_limit_is_refused(lacking: dict[str, Any]) -> None:
    class Client:
        def info(self) -> dict[str, Any]:
            return CAPABLE | lacking

    assert len(missing(CAPABLE | lacking)) == 1
    with pytest.raises(SandboxError, match="SANDBOX_UNSUPPORTED") as caught:
        check_engine(Client())  # type: ignore[arg-type]
    assert exit_code(caught.value) == SANDBOX_REFUSED


def test_rootless_engine_without_cgroups_is_refused() -> None:
    # It takes every limit without a warning, reports it back, and enforces none.
    assert len(missing(recorded("info-docker-20.10-rootless.json"))) == 4


def test_engines_that_imitate_docker_or_are_in_a_virtual_machine_are_told_by_what_they_say() -> None:
    assert unfit_kind(recorded("info-podman-4.3.json")) == PODMAN
    # It claims every limit and the default profile, so nothing else would tell it apart.
    assert missing(recorded("info-podman-4.3.json")) == []
    assert unfit_kind({"OperatingSystem": "Docker Desktop"}) == DESKTOP
    assert unfit_kind(recorded("info-docker-20.10-rootless.json")) == ""


def test_podman_of_debian_12_is_refused_for_what_it_does_differently() -> None:
    profile = Profile(IMAGE, Limits(memory_bytes=96 << 20), has_state=True)
    with pytest.raises(SandboxError, match="SANDBOX_MISMATCH") as caught:
        check_effective(profile, recorded("inspected-podman-4.3.json"))
    for field in ("namespaces.ipc", "stdin", "log.options.max-size", "tmpfs./run", "system_paths"):
        assert f" {field} (" in caught.value.cause


def test_a10_volumes_are_masked_where_the_engine_would_put_them() -> None:
    declared = {"/data/": {}, "relative": {}, "/a/../b": {}, "//twice": {}, "/data": {}}
    assert masked_volumes(declared) == ("/b", "/data", "/relative", "/twice")
    with pytest.raises(SandboxError, match="SANDBOX_IMAGE"):
        masked_volumes({f"/v{number}": {} for number in range(65)})


def test_a10_volume_over_a_mount_of_ours_does_not_replace_it() -> None:
    profile = Profile(IMAGE, volumes=("/attestree/rows", "/tmp", "/data"))
    assert profile.mounts == {"/attestree/broker.sock": "bind", "/attestree/rows": "bind", "/data": "tmpfs"}


def test_mounts_name_the_path_that_cannot_be_mounted(tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    rows.write_text("x")
    rows.chmod(0o400)
    with pytest.raises(SandboxError, match=r"SANDBOX_MOUNT.*rows has mode -r--------"):
        Mounts(rows, None, rows).sources()
