"""What a verified channel says of a model: its organisation, and where it comes from."""

from pathlib import Path

from executor.audit.chain import Anchor
from executor.audit.challenges import verdicts
from executor.audit.errors import AuditError
from executor.audit.fabric.organisation import Organisation
from executor.audit.files import verify_file
from executor.audit.proof.claims import ChannelSeen, Pin
from executor.audit.proof.origin import Origin, OriginSearch
from executor.errors import UsageError
from protocol.values import dataclass


@dataclass(frozen=True)
class ModelChannel:
    """A channel that was verified, with what it says of one model."""

    organisation: Organisation
    """The model's owner, as configured at the end."""
    origin: Origin
    seen: ChannelSeen


def read_channel(file: Path, anchor: Anchor, pin: Pin) -> ModelChannel:
    """Verify an export, and return what it says of a model; raise if anything in it is wrong."""
    search = OriginSearch(pin.process, pin.node)
    verified = verify_file(file, anchor, (search.observe,))
    adverse = verdicts(verified.challenges, pin.process)[1]
    if not verified.holds or adverse:
        count = len(verified.failures) + len(adverse)
        raise AuditError("AUDIT_FAILED", f"{count} things in the channel are not as they should be")
    organisation = verified.chain.configuration.members.organisations.get(pin.owner)
    if search.found is None or organisation is None:
        raise UsageError("AUDIT_SUBJECT", f"the channel has no model {pin.process}/{pin.node} of {pin.owner}")
    return ModelChannel(organisation, search.found, ChannelSeen.of(verified))
