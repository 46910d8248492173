"""Images that organisations rebuild from source, on live peers, and a process that asks for it."""

import pytest
from support.channel import DIGESTS, IMAGE, Member, admin1, register, scientist1, specification, unique
from support.commands import done
from support.federation import nodes

from executor.network import Network

pytestmark = pytest.mark.usefixtures("network")


def test_an_organisation_gets_the_registered_image_from_these_sources(learner: str) -> None:
    """The second organisation builds nothing: the image of these sources is there."""
    for organisation in ("org1", "org2"):
        said = done("image", "attest", learner, organisation=organisation)
        assert said["same"] is True
    shown = done("image", "show", learner)
    assert {"Org1MSP", "Org2MSP"} <= {found["organisation"] for found in shown["rebuilds"]}


def test_a_process_starts_when_as_many_got_the_same_image_as_it_asks_for() -> None:
    process, version = unique("rebuilt"), unique("1")
    register(version)
    owners = {member.identity: Network.load().msp_id(member.organisation) for member in nodes()}
    made = specification(process, version, owners) | {"image_attestations": 2}
    scientist1.submit("orchestration", "Create", made)
    for organisation in ("org1", "org2"):
        Member(organisation, "admin").submit("orchestration", "Accept", process)
    image_id = made["steps"][0]["image"]["image_id"]
    Member("org3", "auditor").submit("image", "Attest", IMAGE, version, image_id)
    Member("org1", "auditor").submit("image", "Attest", IMAGE, version, image_id)
    Member("org2", "auditor").submit("image", "Attest", IMAGE, version, DIGESTS[14])
    assert admin1.code("orchestration", "Start", process) == "IMAGE_UNATTESTED"
    Member("org2", "auditor").submit("image", "Attest", IMAGE, version, image_id)
    admin1.submit("orchestration", "Start", process)
