"""The container of one task: created, compared with its profile, given its key, waited for, removed."""

import contextlib
import socket
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from docker import DockerClient
from docker.errors import APIError, NotFound

from executor.errors import EngineError, SandboxError
from executor.sandbox.calls import calling
from executor.sandbox.effective import check_effective
from executor.sandbox.profile import Profile
from executor.sandbox.request import Mounts, body
from protocol.values import dataclass

KEY_BYTES = 32
LABEL = "attestree.sandbox"
"""Every container made here has this label, with the digest of its profile."""

_TAIL_LINES = 50
_TAIL_CHARACTERS = 4000
_SECONDS_TO_DIE = 60
_KILLED = 128 + 9

__all__ = ["Container", "Mounts", "Outcome", "reap"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a container ended."""

    exit_code: int
    oom_killed: bool
    timed_out: bool
    log_tail: str
    """The end of what it wrote, for people; control characters are replaced."""


class Container:
    """One container; leaving its context removes it, whatever it was doing."""

    def __init__(self, client: DockerClient, identity: str) -> None:
        self._client = client
        self._api: Any = client.api  # its type stubs have gaps
        self.id = identity

    @classmethod
    def create(
        cls, client: DockerClient, profile: Profile, mounts: Mounts, labels: Mapping[str, str], name: str
    ) -> Self:
        """Create it by image id, and keep it only if the engine made exactly what the profile says."""
        if (mounts.state is not None) != profile.has_state:
            raise SandboxError(
                "SANDBOX_MOUNT",
                "the profile and the mounts disagree about the state file",
                case="profile",
            )
        request = body(profile, mounts.sources(), {**labels, LABEL: str(profile.digest)})
        with calling("create the container"):
            api: Any = client.api
            answer = api.create_container_from_config(request, name)
        container = cls(client, answer["Id"])
        try:
            _check_warnings(answer)
            inspected = container.inspect()
            check_effective(profile, inspected)
            _check_sources(request, inspected)
        except BaseException:
            container.remove()
            raise
        return container

    def start(self, key: bytearray) -> None:
        """Start it and hand over the task's private key on standard input, once; the bytearray is wiped."""
        try:
            if len(key) != KEY_BYTES:
                raise ValueError(f"a task's key is {KEY_BYTES} bytes, not {len(key)}")
            with calling("start the container"), self._attached() as stream:
                self._api.start(self.id)
                # One that ended without reading its key is no failure of the start: its exit code tells why.
                with contextlib.suppress(OSError):
                    stream.sendall(key)
                    stream.shutdown(socket.SHUT_WR)
        finally:
            key[:] = bytes(len(key))

    def wait(self, seconds: float) -> Outcome:
        """Wait until it ends, and say how it did."""
        return self.outcome(timed_out=self.wait_for_end(seconds))

    def wait_for_end(self, seconds: float) -> bool:
        """Wait until it ends; one that has not ended in time is killed. Returns whether that was so."""
        timed_out = not self._ended(seconds)
        if timed_out:
            # One that ended by itself at the last moment is not there to be killed.
            timed_out = self.kill()
            if not self._ended(_SECONDS_TO_DIE):
                raise EngineError(
                    "ENGINE_FAILED",
                    f"container {self.id[:12]} is still there {_SECONDS_TO_DIE} s after it was killed",
                    case="alive",
                )
        return timed_out

    def outcome(self, *, timed_out: bool) -> Outcome:
        """Say how it ended: three questions to the engine."""
        state = self.inspect()["State"]
        code = int(state["ExitCode"])
        out_of_memory = bool(state["OOMKilled"]) or (code == _KILLED and not self._asked_to_kill())
        return Outcome(code, out_of_memory, timed_out, self._log_tail())

    def kill(self) -> bool:
        """Kill all its processes; tells whether there was one."""
        with calling("kill the container"):
            try:
                self._api.kill(self.id, "SIGKILL")
            except NotFound:
                return False
            except APIError as error:
                if error.status_code != 409:  # it does not run
                    raise
                return False
        return True

    def remove(self) -> None:
        """Remove it and what belongs to it; one that is already gone is not an error."""
        _remove(self._client, self.id)

    def inspect(self) -> dict[str, Any]:
        """Return what the engine says about it."""
        with calling("inspect the container"):
            found: dict[str, Any] = self._api.inspect_container(self.id)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    @contextlib.contextmanager
    def _attached(self) -> Any:
        """Standard input, attached before the start: nothing else ever gets a chance to write to it."""
        stream = self._api.attach_socket(self.id, params={"stdin": 1, "stream": 1})
        connection = getattr(stream, "_sock", stream)
        try:
            yield connection
        finally:
            stream.close()
            connection.close()

    def _ended(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        with calling("wait for the container"):
            try:
                self._api.wait(self.id, timeout=max(seconds, 0.001))
            except OSError:
                if time.monotonic() < end:
                    raise
                return False
        return True

    def _asked_to_kill(self) -> bool:
        """Whether somebody had the engine kill it; if nobody had, the kernel did, for want of memory.

        Engines lose the kernel's message now and then: Docker 20.10 on a busy host did once in 15 times.
        """
        with calling("list its events"):
            # From the first event on, until now: the engine answers at once with what it remembers.
            filters = {"container": self.id, "event": "kill"}
            events = self._api.events(since=1, until=int(time.time()) + 1, filters=filters, decode=True)
            return any(True for _ in events)

    def _log_tail(self) -> str:
        with calling("read the container's log"):
            raw: bytes = self._api.logs(self.id, stdout=True, stderr=True, tail=_TAIL_LINES)
        text = raw[-4 * _TAIL_CHARACTERS :].decode(errors="replace")
        printable = "".join(sign if sign.isprintable() or sign == "\n" else "\ufffd" for sign in text)
        return printable[-_TAIL_CHARACTERS:]


def kill_all(client: DockerClient, labels: Mapping[str, str]) -> None:
    """Kill the running containers with these labels; whoever waits for them sees them end."""
    filters = {"label": [LABEL, *(f"{name}={value}" for name, value in labels.items())]}
    with calling("list containers"):
        running = [found["Id"] for found in client.api.containers(filters=filters)]
    for identity in running:
        Container(client, identity).kill()


def reap(client: DockerClient, labels: Mapping[str, str]) -> list[str]:
    """Remove the containers that an executor left behind, by the labels it gave them; returns their ids."""
    if not labels:
        raise ValueError("name the labels of the containers to remove")
    filters = {"label": [LABEL, *(f"{name}={value}" for name, value in labels.items())]}
    with calling("list left containers"):
        left = [found["Id"] for found in client.api.containers(all=True, filters=filters)]
    for identity in left:
        _remove(client, identity)
    return left


def _remove(client: DockerClient, identity: str) -> None:
    with calling("remove the container"):
        try:
            client.api.remove_container(identity, v=True, force=True)
        except NotFound:
            return
        except APIError as error:
            if error.status_code != 409:  # somebody else is removing it
                raise


def _check_warnings(answer: Mapping[str, Any]) -> None:
    """An engine that drops a limit says so here and nowhere else."""
    if answer.get("Warnings"):
        raise SandboxError(
            "SANDBOX_UNSUPPORTED",
            f"the container engine warns: {'; '.join(answer['Warnings'])[:500]}",
            case="warning",
        )


def _check_sources(request: Mapping[str, Any], inspected: Mapping[str, Any]) -> None:
    """The record leaves out the host's paths; here they are compared with what was asked for."""
    asked = {mount["Target"]: mount.get("Source", "") for mount in request["HostConfig"]["Mounts"]}
    found = {mount["Destination"]: mount.get("Source", "") for mount in inspected["Mounts"]}
    if asked != found:
        raise SandboxError("SANDBOX_MISMATCH", f"the created container mounts {found} instead of {asked}")
