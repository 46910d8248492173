"""The image chaincode on live peers: every function, every kind of refusal."""

import json
from contextlib import closing

import pytest
from support.channel import (
    DIGESTS,
    IMAGE,
    REPOSITORY,
    Member,
    admin1,
    auditor2,
    client_of,
    register,
    scientist1,
    scientist2,
    unique,
)


@pytest.fixture(scope="module")
def version(network: None) -> str:
    """A registered version that no test changes."""
    made = unique("1")
    register(made)
    return made


def test_registered_version_is_read_by_another_organisation_with_its_provenance(version: str) -> None:
    record = auditor2.evaluate("image", "Get", IMAGE, version)
    assert record["image"]["image_id"] == DIGESTS[2]
    assert record["status"] == "registered"
    assert record["registered"]["organisation"] == "Org1MSP"
    assert record["registered"]["identity"] == "data-scientist"
    (item,) = auditor2.evaluate("image", "History", IMAGE, version)["items"]
    assert item["tx"] == record["registered"]["tx"]
    assert item["value"] == record


def test_list_is_paged_and_filtered(version: str) -> None:
    theirs, mine = "org3/learner", [unique("1") for _ in range(3)]
    # By an organisation that registers little else, or there would be hundreds of pages.
    for made in mine:
        Member("org3", "data-scientist").submit("image", "Register", theirs, made, *DIGESTS[1:3], REPOSITORY)
    found, bookmark = [], None
    while bookmark != "":
        page = auditor2.evaluate("image", "List", "Org3MSP", 2, bookmark or "")
        assert len(page["items"]) <= 2
        found += [(item["image"]["name"], item["image"]["version"]) for item in page["items"]]
        bookmark = page["bookmark"]
    assert {(theirs, made) for made in mine} <= set(found)
    assert (IMAGE, version) not in found
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    "digest", ["sha256:" + "a" * 63, "sha256:" + "A" * 64, "sha512:" + "a" * 128, "a" * 64]
)
def test_a8_odd_hash_is_refused(digest: str) -> None:
    code = scientist1.code("image", "Register", IMAGE, unique("1"), digest, DIGESTS[2], REPOSITORY)
    assert code.startswith("DIGEST_")


def test_a_version_is_written_once(version: str) -> None:
    again = ("image", "Register", IMAGE, version, DIGESTS[1], DIGESTS[9], REPOSITORY)
    assert scientist1.code(*again) == "IMAGE_EXISTS"


def test_h12_another_organisation_registers_no_version_of_a_name(version: str) -> None:
    call = ("image", "Register", IMAGE, unique("2"), DIGESTS[1], DIGESTS[9], REPOSITORY)
    assert scientist2.code(*call) == "IMAGE_OWNER"
    assert scientist2.cli.code(*call) == "IMAGE_OWNER"


def test_a4_one_digest_given_as_both_is_refused_at_registration() -> None:
    call = ("image", "Register", IMAGE, unique("1"), DIGESTS[1], DIGESTS[1], REPOSITORY)
    assert scientist1.code(*call) == "IMAGE_ONE_DIGEST"


def test_c16_roles_are_read_from_the_certificate() -> None:
    call = ("image", "Register", IMAGE, unique("1"), DIGESTS[1], DIGESTS[2], REPOSITORY)
    assert admin1.code(*call) == "ACCESS_ROLE"
    assert auditor2.code(*call) == "ACCESS_ROLE"
    assert Member("org1", "node01").code(*call) == "ACCESS_ROLE"


def test_c2_only_the_registering_organisation_retires() -> None:
    version = unique("1")
    register(version)
    assert scientist2.code("image", "Retire", IMAGE, version, "") == "ACCESS_ORGANISATION"
    admin1.submit("image", "Retire", IMAGE, version, "replaced")
    record = auditor2.evaluate("image", "Get", IMAGE, version)
    assert (record["status"], record["retired"]["reason"]) == ("retired", "replaced")
    assert admin1.code("image", "Retire", IMAGE, version, "") == "LIFECYCLE_TRANSITION"
    assert len(auditor2.evaluate("image", "History", IMAGE, version)["items"]) == 2


def test_version_is_registered_read_and_retired_at_the_peer_cli() -> None:
    version = unique("1")
    record = ("image", "Register", IMAGE, version, DIGESTS[1], DIGESTS[2], REPOSITORY, "by the CLI")
    scientist1.cli.submit(*record)
    assert scientist1.cli.code(*record) == "IMAGE_EXISTS"
    assert auditor2.cli.evaluate("image", "Get", IMAGE, version)["registered"]["organisation"] == "Org1MSP"
    admin1.cli.submit("image", "Retire", IMAGE, version, "replaced")
    history = auditor2.cli.evaluate("image", "History", IMAGE, version)["items"]
    assert [item["value"]["status"] for item in history] == ["retired", "registered"]


def test_unknown_version_and_function_are_refused() -> None:
    assert auditor2.code("image", "Get", IMAGE, unique("0")) == "IMAGE_UNKNOWN"
    assert auditor2.code("image", "Delete", IMAGE, "1") == "UNKNOWN_FUNCTION"
    assert auditor2.code("image", "Get", IMAGE) == "BAD_ARGUMENT_COUNT"


def test_registration_is_announced_by_an_event_of_its_block() -> None:
    made = unique("1")
    client = client_of(scientist1)
    committed = client.submit("image", "Register", IMAGE, made, DIGESTS[1], DIGESTS[2], REPOSITORY)
    with closing(client.events("image", committed.block)) as events:
        found = next(event for event in events if event[3] == committed.tx_id)
    assert (committed.code, found[0], found[1]) == (0, committed.block, "ImageRegistered")
    assert json.loads(found[2]) == {
        "name": IMAGE,
        "version": made,
        "image_id": DIGESTS[2],
        "organisation": "Org1MSP",
    }
