"""A process that all organisations of this host's network run together, from the proposal to the models."""

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from executor.audit.errors import AuditError
from executor.caller import Caller
from executor.errors import TaskError
from executor.experiment.launches import PROGRAM, Hear, Launches, Reports
from executor.launch.places import places_of_host
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.follow import wait_until
from executor.network import Network
from executor.process.federation import load
from executor.sandbox.profile import Limits
from protocol.agreement.lifecycle import ProcessState
from protocol.agreement.process import Specification
from protocol.errors import AttestreeError, StateError
from protocol.values import dataclass

SCIENTIST = "data-scientist"
SECONDS_TO_HEAR = 60
MOST_TOLD = 3
"""How many of the things that an audit found its error names."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Audit:
    """What an audit came to; one that failed, or could not be done, keeps nothing else from being told."""

    verified: bool = False
    problem: AttestreeError | None = None
    """What it found, or why it found nothing."""


@dataclass(frozen=True)
class LocalFederation:
    """The organisations of this host's network, each with its own identities, as on hosts of their own."""

    network: Network
    organisations: Sequence[str]
    folder: Path

    def publish(self, name: str) -> str:
        """Build the learner image from these sources, put it on the ledger, and return NAME:VERSION."""
        _answer("image", "build")
        return f"{name}:{_answer('image', 'publish', name)['version']}"

    def publish_image(self, name: str, image: str) -> str:
        """Put an image of the engine on the ledger, and return NAME:VERSION."""
        return f"{name}:{_answer('image', 'publish', name, '--image', image)['version']}"

    def audit(self, process: str) -> Audit:
        """Have the last organisation's auditor check everything since the first block."""
        return _judged("audit", "process", process, "--organisation", self.organisations[-1])

    def audit_channel(self, process: str) -> Audit:
        """Have the last organisation's auditor export the channel, and check all of it without a network."""
        file = str(self.folder / "channel.tar")
        words = ("audit", "export", file, "--process", process, "--organisation", self.organisations[-1])
        try:
            made = _answer(*words)
        except TaskError as error:
            return Audit(False, error)
        return _judged("audit", "verify", file, "--genesis", str(made["genesis"]))

    def agree(self, content: Mapping[str, Any], say: Say) -> Specification:
        """Propose, accept and start what a federation file has; what is done already is left alone."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{content['process']}.json"
        file.write_text(json.dumps(content))
        first, *_ = self.organisations
        with self.ledger(first, SCIENTIST) as ledger:
            images = ledger.images
            agreed = load(file).specification.pinned(lambda *name: images.get(*name).image.pin)
            state = _state(ledger, agreed.process)
            if state is None:
                ledger.orchestration.create(agreed.to_dict())
                say(f"{agreed.process} is proposed")
            if state in (None, ProcessState.PROPOSED):
                for organisation in self.organisations:
                    self._accept(organisation, agreed)
                _wait(
                    ledger, agreed.process, lambda: ledger.orchestration.status(agreed.process).missing == ()
                )
                ledger.orchestration.start(agreed.process)
                say(f"{agreed.process} is accepted by all and started")
        return agreed

    def agree_on_all(self, contents: Sequence[Mapping[str, Any]], say: Say) -> list[Specification]:
        """Agree on several processes at once; in each, organisations accept one after the other.

        Whoever accepts has read who did before, so that of several who accept at once all but one do so anew.
        """
        with ThreadPoolExecutor(len(contents), "agree") as pool:
            return list(pool.map(lambda content: self.agree(content, say), contents))

    def launch(self, processes: Sequence[str], data: str, hear: Hear) -> Reports:
        """Have every organisation work for all its nodes until the processes are complete.

        One executor of each organisation works for all of them, so that its places are never idle while
        there is something to do in any.
        """
        first, *others = processes
        more = [word for process in others for word in ("--process", process)]
        options = ("--all-local", "--until-complete", "--data", data, "--tasks", str(self.tasks))
        with Launches(self.network, self.folder) as launches:
            for organisation in self.organisations:
                launches.start(organisation, first, *more, *options)
            return launches.wait(hear)

    @property
    def tasks(self) -> int:
        """How many tasks each organisation's executor works at: they share the places of this one host.

        A task waits for its transactions most of the time, and three of them keep the cores busy meanwhile.
        """
        return max(3, places_of_host(Limits()) // len(self.organisations))

    def ledger(self, organisation: str, identity: str) -> Ledger:
        """Open the ledger as one of the organisation's identities."""
        return Caller(self.network, organisation, identity).ledger()

    def _accept(self, organisation: str, agreed: Specification) -> None:
        with self.ledger(organisation, SCIENTIST) as ledger:
            _wait(ledger, agreed.process, lambda: _state(ledger, agreed.process) is not None)
            if self.network.msp_id(organisation) in ledger.orchestration.status(agreed.process).missing:
                ledger.orchestration.accept(agreed.process, agreed.digest)


def _state(ledger: Ledger, process: str) -> ProcessState | None:
    """Return where a process stands, None if the peer has not heard of it."""
    try:
        return ledger.orchestration.status(process).status
    except StateError as error:
        if error.code != "PROCESS_UNKNOWN":
            raise
        return None


def _wait(ledger: Ledger, process: str, check: Callable[[], bool]) -> None:
    wait_until(ledger, process, lambda: check() or None, SECONDS_TO_HEAR)


def _judged(*arguments: str) -> Audit:
    """Run a command that judges: what it printed counts, and not only how it ended."""
    ran = _run(*arguments)
    answer = _read(ran)
    if "verified" not in answer:
        return Audit(False, _failed(arguments, ran))
    if answer["verified"] is True and ran.returncode == 0:
        return Audit(True)
    failures = answer.get("failures") or []
    told = "; ".join(f"{failure['claim']}: {failure['what']}" for failure in failures[:MOST_TOLD])
    cause = f"{len(failures)} things in the channel are not as they should be"
    return Audit(False, AuditError("AUDIT_FAILED", f"{cause}: {told}" if told else cause))


def _answer(*arguments: str) -> dict[str, Any]:
    """Run a command of ours in a process of its own; returns what it printed."""
    ran = _run(*arguments)
    if ran.returncode != 0:
        raise _failed(arguments, ran)
    return dict(json.loads(ran.stdout))


def _run(*arguments: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [*PROGRAM, *arguments, "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False
    )


def _read(ran: "subprocess.CompletedProcess[bytes]") -> dict[str, Any]:
    """Return the object that a command printed, if it printed one."""
    try:
        found = json.loads(ran.stdout)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _failed(arguments: Sequence[str], ran: "subprocess.CompletedProcess[bytes]") -> TaskError:
    tail = ran.stdout.decode(errors="replace")[-400:]
    return TaskError(
        "FEDERATION_LAUNCH", f"`executor {' '.join(arguments[:3])}` ended with {ran.returncode}: {tail}"
    )
