"""Words for people: how they call an organisation that the ledger knows by its MSP id, and who decides."""

import re

from protocol.agreement.process import ModelAccess

_SHORT = re.compile(r"org([1-9][0-9]*)")

DECIDERS = {
    ModelAccess.OWNER: "its owner",
    ModelAccess.MAJORITY: "a majority of those who take part",
    ModelAccess.ALL: "all who take part",
}
"""Who decides on a request to read a model, in words."""


def msp_id(organisation: str) -> str:
    """Return the MSP id for either name; any other MSP id is itself."""
    short = _SHORT.fullmatch(organisation)
    return f"Org{short.group(1)}MSP" if short else organisation
