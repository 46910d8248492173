"""What a majority with altered chaincode would write: the real write set, changed before it commits."""

import io
import json

from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.verify import verify_bundle
from protocol import canonical


def record_of(endorsed, kind):
    """The one record of a kind, as it would be written."""
    return json.loads(endorsed.writes[_place(endorsed, kind)])


def rewritten(endorsed, kind, changes):
    """Change fields of the one record of a kind."""
    endorsed.writes[_place(endorsed, kind)] = canonical.encode(record_of(endorsed, kind) | changes)
    return endorsed


def deleted(endorsed, kind):
    """Write all but the records of a kind."""
    for place in [place for place in endorsed.writes if _kind(place) == kind]:
        del endorsed.writes[place]
        endorsed.policies.pop(place, None)
    return endorsed


def without_mark(endorsed):
    """Write all but the organisation's mark, so that nobody needs its endorsement."""
    for place in [place for place in endorsed.writes if "$" in place[0]]:
        del endorsed.writes[place]
    return endorsed


def failures(federation):
    """Verify what the federation has recorded, and return what is wrong: claim and sentence."""
    return [(failure.claim, failure.what) for failure in verified(federation).failures]


def verified(federation):
    """Verify what the federation has recorded."""
    recorder = federation.recorder
    return verify_bundle(io.BytesIO(recorder.bundle()), Anchor(parse_anchor(recorder.genesis)))


def _place(endorsed, kind):
    (found,) = [place for place in endorsed.writes if _kind(place) == kind]
    return found


def _kind(place):
    return "" if "$" in place[0] else place[1].split("\0")[1]
