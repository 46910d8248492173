"""What a created container is, read back from the engine into the same record as the profile's.

Every setting of the host configuration is either read into a field or must be empty: a setting that a later
engine adds, or a daemon's default puts in, shows up under `others` and does not pass unseen.
"""

from collections.abc import Mapping
from typing import Any

from executor.errors import SandboxError
from executor.sandbox.profile import VERSION, Profile

# What an engine must hide of /proc and /sys, and must not let be written; later engines hide more.
HIDDEN = {"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/scsi", "/sys/firmware"}
PROTECTED = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}

READ = {
    "AutoRemove", "Binds", "CapAdd", "CapDrop", "CgroupnsMode", "DeviceCgroupRules", "DeviceRequests",
    "Devices", "GroupAdd", "Init", "IpcMode", "LogConfig", "MaskedPaths", "Memory", "MemorySwap", "Mounts",
    "NanoCpus", "NetworkMode", "PidMode", "PidsLimit", "Privileged", "ReadonlyPaths", "ReadonlyRootfs",
    "RestartPolicy", "SecurityOpt", "ShmSize", "Tmpfs", "UTSMode", "Ulimits",
}  # fmt: skip
# The daemon's own choice, unless one was asked for; then it is compared.
DAEMONS_CHOICE = {"Runtime"}


def check_effective(profile: Profile, inspected: Mapping[str, Any]) -> None:
    """Return if the created container is what the profile says, or name every field that is not."""
    # By this engine's name for the image that was checked, and by no other.
    expected, found = {**profile.to_record(), "image_id": profile.image}, effective(inspected)
    if profile.runtime:
        found["runtime"] = inspected["HostConfig"].get("Runtime")
    differing = differences(expected, found)
    if differing:
        raise SandboxError(
            "SANDBOX_MISMATCH",
            f"the created container differs from the profile in {'; '.join(differing)}",
        )


def effective(inspected: Mapping[str, Any]) -> dict[str, Any]:
    """Read the answer of the engine's `inspect` into the profile's record."""
    config, host = inspected["Config"], inspected["HostConfig"]
    return {
        "version": VERSION,
        "image_id": inspected["Image"],
        "entry_point": [inspected.get("Path"), *(inspected.get("Args") or [])],
        "user": config.get("User"),
        "groups": host.get("GroupAdd") or [],
        "working_directory": config.get("WorkingDir"),
        "hostname": config.get("Hostname"),
        "environment": config.get("Env") or [],
        "stdin": "once" if config.get("OpenStdin") and config.get("StdinOnce") else "other",
        "terminal": bool(config.get("Tty")),
        "health_check": (config.get("Healthcheck") or {}).get("Test") != ["NONE"],
        "stop_signal": config.get("StopSignal"),
        "network": _network(host, inspected.get("NetworkSettings") or {}),
        "namespaces": {
            "ipc": host.get("IpcMode"),
            "pid": host.get("PidMode") or "private",
            "cgroup": host.get("CgroupnsMode"),
            "uts": host.get("UTSMode") or "private",
        },
        "read_only_root": host.get("ReadonlyRootfs"),
        "privileged": host.get("Privileged"),
        "capabilities": {"add": host.get("CapAdd") or [], "drop": host.get("CapDrop") or []},
        "security_options": sorted(_security_option(option) for option in host.get("SecurityOpt") or []),
        "system_paths": _system_paths(host),
        "devices": [
            device
            for name in ("Devices", "DeviceRequests", "DeviceCgroupRules")
            for device in host.get(name) or []
        ],
        "mounts": sorted(
            (_mount(mount) for mount in inspected.get("Mounts") or []), key=lambda mount: mount["destination"]
        ),
        "tmpfs": host.get("Tmpfs") or {},
        "memory_bytes": host.get("Memory"),
        "memory_and_swap_bytes": host.get("MemorySwap"),
        "nano_cpus": host.get("NanoCpus"),
        "pids": host.get("PidsLimit"),
        "shm_bytes": host.get("ShmSize"),
        "ulimits": {limit["Name"]: _ulimit(limit) for limit in host.get("Ulimits") or []},
        "log": {
            "driver": host.get("LogConfig", {}).get("Type"),
            "options": host.get("LogConfig", {}).get("Config") or {},
        },
        "restart": (host.get("RestartPolicy") or {}).get("Name") or "no",
        "auto_remove": bool(host.get("AutoRemove")),
        "init": bool(host.get("Init")),
        "others": sorted(name for name in host.keys() - READ - DAEMONS_CHOICE if not _is_empty(host[name])),
    }


def differences(expected: Any, got: Any, path: str = "") -> list[str]:
    """List the fields in which two records differ, each with both values."""
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        return [
            line
            for name in sorted({*expected, *got})
            for line in differences(expected.get(name), got.get(name), f"{path}.{name}" if path else name)
        ]
    if expected == got:
        return []
    return [f"{path} ({_short(got)} instead of {_short(expected)})"]


def _network(host: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    attached = sorted({host.get("NetworkMode") or "default", *(settings.get("Networks") or {})})
    return " and ".join(attached)


def _security_option(option: str) -> str:
    return "no-new-privileges" if option in {"no-new-privileges:true", "no-new-privileges=true"} else option


def _system_paths(host: Mapping[str, Any]) -> str:
    hidden, protected = set(host.get("MaskedPaths") or ()), set(host.get("ReadonlyPaths") or ())
    return "masked" if hidden >= HIDDEN and protected >= PROTECTED else "open"


def _mount(mount: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "destination": mount.get("Destination"),
        "kind": mount.get("Type"),
        "read_only": mount.get("RW") is False,
    }


def _ulimit(limit: Mapping[str, Any]) -> Any:
    return limit["Soft"] if limit["Soft"] == limit["Hard"] else [limit["Soft"], limit["Hard"]]


def _is_empty(setting: Any) -> bool:
    return not any(setting) if isinstance(setting, list) else not setting


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else text[:117] + "..."
