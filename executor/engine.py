"""The container engine: found where Docker itself would look, old enough engines refused, failures named."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import requests
from docker import DockerClient
from docker.context import Context, ContextAPI
from docker.errors import APIError, DockerException
from docker.utils import version_lt

from executor.errors import EngineError

# The API of Docker 20.10. Podman answers with the API it imitates, whatever its own version is.
API_AT_LEAST = "1.41"
# The API of Docker 26, the first whose containerd store was tried.
CONTAINERD_STORE_AT_LEAST = "1.45"
SECONDS = 120
_SYSTEM = "/var/run/docker.sock"
_ROOTLESS = ("docker.sock", "podman/podman.sock")


def engine(seconds: int = SECONDS) -> DockerClient:
    """Connect to the engine; `seconds` is how long one answer may take."""
    context = _context()
    address = os.environ.get("DOCKER_HOST") or (context.Host if context else _default_address())
    try:
        if os.environ.get("DOCKER_HOST"):
            client = docker.from_env(timeout=seconds)
        else:
            tls = context.TLSConfig if context else None
            client = DockerClient(base_url=address, tls=tls or False, timeout=seconds)
    except (DockerException, requests.RequestException, OSError) as error:
        denied = "Permission denied" in str(error)
        raise EngineError(
            "ENGINE_UNREACHABLE",
            f"the engine at {address} {'may not be used by you' if denied else f'does not answer: {error}'}",
            case="denied" if denied else "",
        ) from error
    if version_lt(client.api.api_version, API_AT_LEAST):
        spoken = client.api.api_version
        client.close()
        raise EngineError(
            "ENGINE_VERSION",
            f"the engine speaks API {spoken}, and {API_AT_LEAST} is the least that will do",
        )
    if str(address).startswith("unix:"):
        client.api.trust_env = (
            False  # no proxy leads to a socket; looking for one costs more than many a call
        )
    return client


def _context() -> Context | None:
    """Return the context that the docker command would use, or None for its default."""
    name = os.environ.get("DOCKER_CONTEXT")
    found = ContextAPI.get_context(name)
    if found is None or not found.Host:
        raise EngineError(
            "ENGINE_UNREACHABLE",
            f"there is no Docker context {name or 'as config.json names it'!r}",
            case="context",
        )
    return None if found.Name == "default" else found


def _default_address() -> str:
    """Prefer the system's socket, then a rootless engine's of this user."""
    own = os.environ.get("XDG_RUNTIME_DIR")
    if own and not Path(_SYSTEM).exists():
        for name in _ROOTLESS:
            if Path(own, name).is_socket():
                return f"unix://{own}/{name}"
    return f"unix://{_SYSTEM}"


@contextmanager
def asking(what: str) -> Iterator[None]:
    """Turn the engine's own errors into EngineError; `what` is what it was asked to do."""
    try:
        yield
    except APIError as error:
        said = error.explanation or str(error)
        raise EngineError(
            "ENGINE_FAILED",
            f"the engine could not {what}: {said}",
        ) from error
    except (DockerException, requests.RequestException) as error:
        raise EngineError(
            "ENGINE_UNREACHABLE", f"the engine stopped answering while asked to {what}: {error}"
        ) from error


def describe(client: DockerClient) -> Mapping[str, Any]:
    """Return what the engine says of itself; it starts a process for each of its programs to answer this."""
    with asking("describe itself"):
        found: Mapping[str, Any] = client.info()
    return found


def keeps_manifests(client: DockerClient, described: Mapping[str, Any] | None = None) -> bool:
    """Say whether the engine uses containerd's image store, where an image's id is its manifest's digest.

    One that is too old for what is known of that store is refused, before it builds, pushes or pulls.
    `described` is what the engine said of itself for what is under way; without, it is asked.
    """
    status = (describe(client) if described is None else described).get("DriverStatus") or []
    kept = any("io.containerd.snapshotter" in str(value) for _, value in status)
    if kept and version_lt(client.api.api_version, CONTAINERD_STORE_AT_LEAST):
        raise EngineError(
            "ENGINE_IMAGE_STORE",
            f"the engine keeps images in containerd's store and speaks API {client.api.api_version}",
        )
    return kept
