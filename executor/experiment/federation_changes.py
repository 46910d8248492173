"""What a federation of this host changes while it runs: asked for by one organisation, agreed to by all."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from executor.engine import engine
from executor.errors import DeadlineError
from executor.experiment.local_federation import SCIENTIST, LocalFederation
from executor.ledger.chaincodes.orchestration import Orchestration
from executor.ledger.chaincodes.proxies import Ledger, Submitted
from executor.ledger.follow import wait_until
from protocol.digest import Digest
from protocol.errors import AttestreeError, StateError
from protocol.ledger.changes import AskStatus

SECONDS_TO_HEAR = 60
SECONDS_TO_LEAVE_OUT = 180
BETWEEN_VOTES = 1.0


def ask_all(federation: LocalFederation, ask: Callable[[Orchestration], Submitted[AskStatus]]) -> None:
    """Have one organisation ask for something and all others that have a say in it agree."""
    first, *others = federation.organisations
    with federation.ledger(first, SCIENTIST) as ledger:
        asked = ask(ledger.orchestration).answer
    for other in others:
        if federation.network.msp_id(other) in asked.missing:
            with federation.ledger(other, SCIENTIST) as ledger:
                _agree(ledger, asked)


def _agree(ledger: Ledger, asked: AskStatus) -> None:
    """Agree to what another organisation asks for, once enough peers have heard of it."""

    def agree() -> Submitted[AskStatus] | None:
        try:
            return ledger.orchestration.agree(asked)
        except StateError as error:
            if error.code != "CHANGE_UNKNOWN":
                raise
            return None

    wait_until(ledger, asked.process, agree, SECONDS_TO_HEAR)


def leave_out(federation: LocalFederation, voters: Sequence[str], process: str, node: str) -> int:
    """Have these organisations vote to leave a node out until that holds; returns the change's number.

    A vote counts once the silence has lasted as long as the process allows, and is repeated until then.
    """
    end = time.monotonic() + SECONDS_TO_LEAVE_OUT
    while True:
        for organisation in voters:
            with federation.ledger(organisation, SCIENTIST) as ledger:
                try:
                    found = ledger.orchestration.leave_out(process, node, "it is never heard of again").answer
                except AttestreeError:
                    # A peer may be a block behind, and another transaction in between.
                    if time.monotonic() >= end:
                        raise
                    continue
            if found.change is not None:
                return found.change
        if time.monotonic() >= end:
            raise DeadlineError("WAIT_TIMEOUT", f"{node} is not left out of {process}")
        time.sleep(BETWEEN_VOTES)


@contextmanager
def other_version(federation: LocalFederation, image: str) -> Iterator[str]:
    """Publish the same learner in an image of another id, as a new version would be; removed at the end."""
    name = image.rpartition(":")[0]
    with federation.ledger(federation.organisations[0], SCIENTIST) as ledger:
        registered = ledger.images.get(*image.split(":")).image
    client = engine()
    try:
        made = str(_relabelled(client, registered.image_id))
        try:
            yield federation.publish_image(name, made)
        finally:
            client.api.remove_image(made, force=True)
    finally:
        client.close()


def _relabelled(client: Any, image: Digest) -> Digest:
    """Make an image that differs in nothing but a label, and so in its id."""
    base = client.api.create_container(str(image))
    try:
        made = client.api.commit(base["Id"], changes=["LABEL attestree.revision=another"])
    finally:
        client.api.remove_container(base["Id"], v=True)
    return Digest.parse(made["Id"])
