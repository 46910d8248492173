"""The request that creates a container: written out in full, so that no client library adds to it."""

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from executor.errors import SandboxError
from executor.sandbox.profile import (
    ENTRY_POINT,
    HOSTNAME,
    MASK_BYTES,
    ROWS,
    SHM_BYTES,
    SOCKET,
    STATE,
    USER,
    Profile,
)
from protocol.values import dataclass

_READABLE, _WRITABLE = stat.S_IROTH, stat.S_IWOTH


@dataclass(frozen=True)
class Mounts:
    """The host's files that the container sees, all read-only; the socket takes connections all the same."""

    rows: Path
    state: Path | None
    socket: Path

    def sources(self) -> dict[str, str]:
        """Return the host's paths by their place in the container, once each is what it should be."""
        found = {ROWS: _file(self.rows), SOCKET: _socket(self.socket)}
        if self.state is not None:
            found[STATE] = _file(self.state)
        return found


def body(profile: Profile, sources: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the body of the engine's `create`."""
    limits = profile.limits
    return {
        "Image": profile.image,
        "Entrypoint": list(ENTRY_POINT),
        "Cmd": None,
        "User": USER,
        "WorkingDir": "/",
        "Hostname": HOSTNAME,
        "Env": [],
        "Labels": dict(labels),
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": False,
        "AttachStderr": False,
        "Tty": False,
        "Healthcheck": {"Test": ["NONE"]},
        "StopSignal": "SIGKILL",
        # Beside the mode below: the engine then writes neither the host's resolvers nor its search domains.
        "NetworkDisabled": True,
        "HostConfig": {
            "NetworkMode": "none",
            "IpcMode": "private",
            "PidMode": "",
            "UTSMode": "",
            "CgroupnsMode": "private",
            "ReadonlyRootfs": True,
            "Privileged": False,
            "CapAdd": [],
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "Devices": [],
            "Mounts": [_mount(path, kind, sources) for path, kind in profile.mounts.items()],
            "Tmpfs": {"/tmp": profile.tmp_options},  # noqa: S108 - inside the container
            "Memory": limits.memory_bytes,
            "MemorySwap": limits.memory_bytes,
            "NanoCpus": limits.nano_cpus,
            "PidsLimit": limits.pids,
            "ShmSize": SHM_BYTES,
            "Ulimits": [
                {"Name": name, "Soft": value, "Hard": value} for name, value in limits.ulimits.items()
            ],
            "LogConfig": {"Type": "json-file", "Config": profile.log_options},
            "RestartPolicy": {"Name": "no"},
            "AutoRemove": False,
            "Init": False,
            **({"Runtime": profile.runtime} if profile.runtime else {}),
        },
    }


def _mount(path: str, kind: str, sources: Mapping[str, str]) -> dict[str, Any]:
    if kind == "bind":
        options = {"Propagation": "rprivate"}
        return {
            "Type": kind,
            "Source": sources[path],
            "Target": path,
            "ReadOnly": True,
            "BindOptions": options,
        }
    size = {"SizeBytes": MASK_BYTES, "Mode": 0o555}
    return {"Type": kind, "Target": path, "ReadOnly": True, "TmpfsOptions": size}


def _file(path: Path) -> str:
    return _checked(path, stat.S_ISREG, _READABLE, "a file that others may read, in a directory of your own")


def _socket(path: Path) -> str:
    wanted = "a socket that others may connect to (mode 0666), in a directory of your own"
    return _checked(path, stat.S_ISSOCK, _READABLE | _WRITABLE, wanted)


def _checked(path: Path, is_kind: Any, permissions: int, wanted: str) -> str:
    """The container's user does not exist on the host, so what it opens must be open to others."""
    try:
        resolved = path.resolve(strict=True)
        mode = resolved.stat().st_mode
    except OSError as error:
        raise SandboxError("SANDBOX_MOUNT", f"{path}: {error.strerror}", wanted=wanted) from error
    if not is_kind(mode) or mode & permissions != permissions:
        raise SandboxError("SANDBOX_MOUNT", f"{path} has mode {stat.filemode(mode)}", wanted=wanted)
    return str(resolved)
