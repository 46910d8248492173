"""A recorded task in its recorded image, in the sandbox of a launch; nothing of it reaches the ledger."""

import os
import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path

from docker import DockerClient

from executor.data import Dataset
from executor.engine import describe
from executor.errors import DeadlineError, TaskError
from executor.image.check import obtain
from executor.launch.broker import BrokerServer
from executor.launch.layout import READABLE
from executor.network import Network
from executor.replay.evidence import Evidence
from executor.replay.folder import labels_of, private_folder
from executor.replay.recorded import Recorded
from executor.sandbox.container import KEY_BYTES, Container, Mounts, Outcome
from executor.sandbox.profile import Limits, Profile
from protocol.broker.answers import SlotsAnswer, TaskAnswer
from protocol.broker.exit_codes import LearnerExit
from protocol.signing import SigningKey, VerifyKey


@dataclass
class ReplayedTask:
    """Answers a learner's four verbs from the record, and keeps what it hands over."""

    recorded: Recorded
    key: VerifyKey
    slots_bundle: bytes
    shared: bytes | None = field(default=None, init=False)
    result: bytes | None = field(default=None, init=False)

    @property
    def is_done(self) -> bool:
        """Whether everything came out again that is on the ledger."""
        task = self.recorded.task
        return (self.shared is not None or task.offered is None) and (
            self.result is not None or task.outcome is None
        )

    def task(self) -> TaskAnswer:
        """Say which task to run, as it was opened, with a key of this replay alone."""
        recorded = self.recorded
        opening = replace(recorded.opening, public_key=self.key)
        parameters = recorded.context.parameters.to_dict()
        return TaskAnswer(recorded.id, recorded.neighbours, parameters, opening)

    def share(self, signature: bytes, share: bytes) -> None:  # noqa: ARG002
        """Keep what it offers."""
        self.shared = share

    def slots(self) -> SlotsAnswer:
        """Return what the slots held; a task that never read them ends here."""
        if self.recorded.task.outcome is None:
            raise ConnectionAbortedError("nothing else of it is on the ledger")
        return SlotsAnswer(self.recorded.offers, self.slots_bundle)

    def complete(self, signature: bytes, result: bytes, state: bytes) -> None:  # noqa: ARG002
        """Keep the result, which names the state by its digest."""
        self.result = result

    def stop(self) -> None:
        """There is nobody to wait for."""


@dataclass(frozen=True)
class ReplaySettings:
    """Where and within which bounds a replay runs."""

    client: DockerClient
    network: Network
    limits: Limits
    seconds: float


def run_again(settings: ReplaySettings, recorded: Recorded, evidence: Evidence) -> ReplayedTask:
    """Open the evidence, run the task, and return what came out."""
    with private_folder(settings.client, settings.network) as folder:
        dataset = evidence.opened(recorded, folder)
        described = describe(settings.client)
        local = obtain(settings.client, recorded.image, network=settings.network, described=described)
        has_state = evidence.state is not None
        profile = Profile.for_image(
            settings.client, local, settings.limits, has_state=has_state, described=described
        )
        _lay_out(folder, dataset, evidence)
        key = bytearray(os.urandom(KEY_BYTES))
        verbs = ReplayedTask(recorded, SigningKey(bytes(key)).verify_key, evidence.slots)
        outcome = _run(settings, profile, folder, verbs, key)
    if not verbs.is_done:
        raise _failed(outcome, settings.seconds)
    return verbs


def _lay_out(folder: Path, dataset: Dataset, evidence: Evidence) -> None:
    for name, content in (("rows", dataset.table.to_bytes()), ("state", evidence.state)):
        if content is not None:
            (folder / name).write_bytes(content)
            (folder / name).chmod(READABLE)


def _run(
    settings: ReplaySettings, profile: Profile, folder: Path, verbs: ReplayedTask, key: bytearray
) -> Outcome:
    task = verbs.recorded.id
    labels = labels_of(settings.network, folder) | {
        "attestree.process": task.process,
        "attestree.node": task.node,
    }
    name = f"{settings.network.project}-replay-{secrets.token_hex(8)}"
    mounts = Mounts(folder / "rows", folder / "state" if profile.has_state else None, folder / "broker.sock")
    with (
        BrokerServer(mounts.socket, verbs, shares=bool(verbs.recorded.neighbours)) as broker,
        Container.create(settings.client, profile, mounts, labels, name) as container,
    ):
        container.start(key)
        outcome = container.wait(settings.seconds)
    if not verbs.is_done and broker.failure is not None:
        raise broker.failure
    return outcome


def _failed(outcome: Outcome, seconds: float) -> TaskError | DeadlineError:
    if outcome.timed_out:
        return DeadlineError("LEARNER_TIMEOUT", f"the learner had not completed after {seconds:.0f} s")
    tail = f" Its last lines:\n{outcome.log_tail}" if outcome.log_tail else ""
    if outcome.oom_killed:
        return TaskError("LEARNER_MEMORY", "the learner ran out of memory", tail=tail)
    meaning = LearnerExit.meaning_of(outcome.exit_code)
    return TaskError("LEARNER_FAILED", f"the learner ended with {outcome.exit_code}: {meaning}", tail=tail)
