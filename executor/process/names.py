"""The two names of an organisation: how people call it (`org1`) and what the ledger knows (`Org1MSP`)."""

import re

_SHORT = re.compile(r"org([1-9][0-9]*)")


def msp_id(organisation: str) -> str:
    """Return the MSP id for either name; any other MSP id is itself."""
    short = _SHORT.fullmatch(organisation)
    return f"Org{short.group(1)}MSP" if short else organisation
