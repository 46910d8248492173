"""What every organisation of the network has: the same ledger, and certificates with role and node."""

import json

from support.channel import unique
from support.network import invoked, query


def test_three_organisations_read_what_one_wrote() -> None:
    key = unique("colour")
    invoked("org1", "node01", "put", key, "green")
    for organisation in ("org2", "org3", "org4"):
        assert query(organisation, "auditor", "get", key) == "green"


def test_certificates_carry_role_and_node() -> None:
    who = json.loads(query("org2", "node06", "whoami"))
    assert who["msp"] == "Org2MSP"
    assert who["attributes"]["role"] == "node"
    assert who["attributes"]["node"] == "node06"
    assert json.loads(query("org3", "auditor", "whoami"))["attributes"]["role"] == "auditor"
    assert json.loads(query("org4", "data-scientist", "whoami"))["attributes"]["role"] == "data-scientist"
