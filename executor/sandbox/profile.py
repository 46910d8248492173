"""What the container of a task is, field by field, before there is one (docs/sandbox.md gives the reasons).

The digest of the record goes into the task's opening, so it is on the ledger before anything runs. The record
therefore holds nothing that another host, user or minute would change: no path, no name, no time.
"""

import posixpath
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, Self

from docker import DockerClient

from executor.errors import SandboxError
from executor.image.local import LocalImage
from executor.sandbox import support
from executor.sandbox.calls import calling
from protocol import canonical
from protocol.digest import Digest
from protocol.errors import EncodingError
from protocol.values import dataclass

VERSION = 1
ENTRY_POINT = ("/opt/venv/bin/python", "-I", "-B", "-m", "learner")
USER = "10001:10001"
HOSTNAME = "learner"
ROWS, STATE, SOCKET = "/attestree/rows", "/attestree/state", "/attestree/broker.sock"
SHM_BYTES = 1 << 20
MASK_BYTES = 4096
OPEN_FILES = 256
MOST_VOLUMES = 64


@dataclass(frozen=True, slots=True)
class Limits:
    """What a container may use; the time it may take is the caller's, in `Container.wait`."""

    memory_bytes: int = 1 << 30
    cpus: float = 1.0
    pids: int = 64
    tmp_bytes: int = 16 << 20
    log_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        for name in ("memory_bytes", "pids", "tmp_bytes", "log_bytes"):
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= canonical.MAX_INTEGER:
                raise _limit(name, value, "a whole number from 1 on")
        if type(self.cpus) not in {int, float} or not 0.01 <= self.cpus <= 4096:
            raise _limit("cpus", self.cpus, "a number from 0.01 to 4096")

    @property
    def nano_cpus(self) -> int:
        """The share of processors in the engine's unit, which is whole."""
        return round(self.cpus * 1_000_000_000)

    @property
    def ulimits(self) -> dict[str, int]:
        """Limits of each process; soft and hard alike, so that none can be raised."""
        return {"core": 0, "fsize": self.tmp_bytes, "nofile": OPEN_FILES}


@dataclass(frozen=True)
class Profile:
    """Everything the container of a task will be, the host's own paths excluded."""

    image_id: Digest
    limits: Limits = field(default_factory=Limits)
    volumes: tuple[str, ...] = ()
    """Where the image declares volumes; each is covered by an empty read-only file system."""
    has_state: bool = False
    environment: tuple[str, ...] = ()
    """The image's own environment, which the container gets unchanged and to which nothing is added."""
    runtime: str = ""
    """The engine's runtime that was asked for, such as runsc; empty for the one that the engine prefers."""
    called: Digest | None = None
    """What this engine calls the checked image, where that is not its id; no part of the record."""

    @classmethod
    def for_image(
        cls,
        client: DockerClient,
        local: LocalImage,
        limits: Limits | None = None,
        has_state: bool = False,
        runtime: str = "",
        *,
        described: Mapping[str, Any] | None = None,
    ) -> Self:
        """Take what the compared image declares; refuse an engine that cannot keep the profile.

        `described` is what the engine said of itself for what is under way; without, it is asked.
        """
        support.check_engine(client, runtime, described)
        declared = local.configured
        if declared is None:
            with calling("describe the image"):
                api: Any = client.api
                declared = api.inspect_image(str(local.called)).get("Config") or {}
        profile = cls(
            local.image_id,
            limits or Limits(),
            masked_volumes(declared.get("Volumes") or {}),
            has_state,
            tuple(declared.get("Env") or ()),
            runtime,
            local.called,
        )
        try:
            canonical.encode(profile.to_record())
        except EncodingError as error:
            raise SandboxError(
                "SANDBOX_IMAGE",
                f"the environment or a volume of image {local.image_id} is no plain text: {error.cause}",
            ) from error
        return profile

    def to_record(self) -> dict[str, canonical.Record]:
        """Return the record that is hashed, and that the created container must have."""
        limits = self.limits
        return {
            "version": VERSION,
            "image_id": str(self.image_id),
            "entry_point": list(ENTRY_POINT),
            "user": USER,
            "groups": [],
            "working_directory": "/",
            "hostname": HOSTNAME,
            "environment": list(self.environment),
            "stdin": "once",
            "terminal": False,
            "health_check": False,
            "stop_signal": "SIGKILL",
            "network": "none",
            "namespaces": {"ipc": "private", "pid": "private", "cgroup": "private", "uts": "private"},
            "read_only_root": True,
            "privileged": False,
            "capabilities": {"add": [], "drop": ["ALL"]},
            "security_options": ["no-new-privileges"],
            "system_paths": "masked",
            "devices": [],
            "mounts": [
                {"destination": path, "kind": kind, "read_only": True} for path, kind in self.mounts.items()
            ],
            "tmpfs": {"/tmp": self.tmp_options},  # noqa: S108 - inside the container
            "memory_bytes": limits.memory_bytes,
            "memory_and_swap_bytes": limits.memory_bytes,
            "nano_cpus": limits.nano_cpus,
            "pids": limits.pids,
            "shm_bytes": SHM_BYTES,
            "ulimits": {**limits.ulimits},
            "log": {"driver": "json-file", "options": self.log_options},
            "restart": "no",
            "auto_remove": False,
            "init": False,
            "others": [],
            # Only if one was asked for: without, the record is the same whatever the engine prefers.
            **({"runtime": self.runtime} if self.runtime else {}),
        }

    @property
    def image(self) -> str:
        """What the container is created by."""
        return str(self.called or self.image_id)

    @cached_property
    def digest(self) -> Digest:
        """The `sandbox` of the task's opening."""
        return canonical.digest(self.to_record())

    @property
    def mounts(self) -> dict[str, str]:
        """What is mounted where, by destination: binds of single files, and the masks of volumes."""
        binds = [ROWS, SOCKET, *([STATE] if self.has_state else [])]
        covered = {path: "tmpfs" for path in self.volumes if path not in {*binds, "/tmp"}}  # noqa: S108
        return dict(sorted({**covered, **dict.fromkeys(binds, "bind")}.items()))

    @property
    def tmp_options(self) -> str:
        """The mount options of /tmp, the one place where the container can write."""
        return f"rw,noexec,nosuid,nodev,size={self.limits.tmp_bytes},mode=1777"

    @property
    def log_options(self) -> dict[str, canonical.Record]:
        """One log file of limited size; it is overwritten when full."""
        return {"max-file": "1", "max-size": str(self.limits.log_bytes)}


def masked_volumes(declared: dict[str, Any]) -> tuple[str, ...]:
    """Return the paths of an image's volumes as the engine understands them."""
    if len(declared) > MOST_VOLUMES:
        raise SandboxError(
            "SANDBOX_IMAGE",
            f"the image declares {len(declared)} volumes, more than {MOST_VOLUMES}",
            case="volumes",
        )
    return tuple(sorted({posixpath.normpath("/" + path.lstrip("/")) for path in declared}))


def _limit(name: str, value: object, wanted: str) -> SandboxError:
    return SandboxError("SANDBOX_LIMITS", f"{name} {str(value)[:40]} is not {wanted}")
