"""Whether an engine can keep a profile: asked first, since engines drop limits with a mere warning."""

from collections.abc import Mapping
from typing import Any

from docker import DockerClient

from executor.engine import describe
from executor.errors import SandboxError

LIMITS = {
    "MemoryLimit": "limit memory",
    "SwapLimit": "limit memory and swap together",
    "PidsLimit": "limit the number of processes",
    "CpuCfsQuota": "limit processors",
}
# Docker says `default` up to 20.10 and `builtin` since 23.0 for the profile it ships.
SECCOMP = ("name=seccomp,profile=default", "name=seccomp,profile=builtin")


# Engines that no setting makes fit: scripts/bootstrap --check has the same sentences.
PODMAN = "is Podman, which shares IPC, adds writable places and does not limit the log"
DESKTOP = "is Docker Desktop's, in a virtual machine where this host's rows and sockets cannot be mounted"


def check_engine(client: DockerClient, runtime: str = "", described: Mapping[str, Any] | None = None) -> None:
    """Return if the engine enforces every limit and has the runtime; otherwise name what it cannot do.

    `described` is what the engine said of itself for what is under way; without, it is asked.
    """
    information = describe(client) if described is None else described
    kind = unfit_kind(information)
    if kind:
        raise SandboxError("SANDBOX_UNSUPPORTED", f"the container engine {kind}", case="engine")
    lacking = missing(information)
    if runtime and runtime not in (information.get("Runtimes") or {}):
        known = ", ".join(sorted(information.get("Runtimes") or {})) or "none"
        lacking.append(f"run containers by {runtime!r}: its runtimes are {known}")
    if lacking:
        raise SandboxError(
            "SANDBOX_UNSUPPORTED",
            f"the container engine cannot {', nor '.join(lacking)}",
        )


def unfit_kind(information: Mapping[str, Any]) -> str:
    """Say what an engine is that imitates Docker or is out of reach; nothing of Docker in this system."""
    if "BuildahVersion" in information:  # Podman's alone
        return PODMAN
    return DESKTOP if information.get("OperatingSystem") == "Docker Desktop" else ""


def missing(information: Mapping[str, Any]) -> list[str]:
    """List what the engine cannot do, from its own description."""
    lacking = [] if information.get("OSType") == "linux" else ["run Linux containers"]
    lacking += [what for name, what in LIMITS.items() if information.get(name) is not True]
    options = information.get("SecurityOptions") or []
    if not any(option in SECCOMP for option in options):
        lacking.append("filter system calls by its default seccomp profile")
    return lacking
