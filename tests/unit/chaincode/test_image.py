"""The image chaincode: written once, by whom, retired by its owner, listed by page."""

from datetime import timedelta

import pytest
from support.memory.ledger import MVCC_CONFLICT, VALID
from support.memory.scenario import DIGESTS, IMAGE, Channel

REPOSITORY = "registry.example:5000/attestree/learner"


@pytest.fixture
def channel():
    return Channel()


def arguments(**changes):
    values = {
        "name": IMAGE[0],
        "version": IMAGE[1],
        "manifest_digest": DIGESTS[1],
        "image_id": DIGESTS[2],
        "repository": REPOSITORY,
        "description": "The learner",
    }
    return ("image", "Register", *(values | changes).values())


def test_registered_version_keeps_what_was_registered_and_its_provenance(channel):
    record = channel.scientist1.submit(*arguments())
    assert record["image"] == {
        "name": IMAGE[0],
        "version": IMAGE[1],
        "manifest_digest": DIGESTS[1],
        "image_id": DIGESTS[2],
        "repository": REPOSITORY,
        "description": "The learner",
    }
    assert (record["version"], record["status"], record["retired"]) == (1, "registered", None)
    made = record["registered"]
    assert (made["organisation"], made["identity"], made["role"]) == (
        "Org1MSP",
        "data-scientist",
        "data-scientist",
    )
    assert made["time"] == "2026-11-16T00:00:00.000000Z"
    assert made["certificate"].startswith("sha256:")
    assert channel.auditor3.evaluate("image", "Get", *IMAGE) == record
    assert channel.events == [
        (
            "image",
            "ImageRegistered",
            b'{"image_id":"%s","name":"attestree/learner","organisation":"Org1MSP","version":"1.0.0"}'
            % DIGESTS[2].encode(),
        )
    ]


@pytest.mark.parametrize("field", ["manifest_digest", "image_id"])
@pytest.mark.parametrize(
    ("digest", "code"),
    [
        ("sha256:" + "a" * 63, "DIGEST_LENGTH"),
        ("sha256:" + "a" * 65, "DIGEST_LENGTH"),
        ("sha256:", "DIGEST_LENGTH"),
        ("sha256:" + "A" * 64, "DIGEST_SYNTAX"),
        ("SHA256:" + "a" * 64, "DIGEST_ALGORITHM"),
        ("sha512:" + "a" * 128, "DIGEST_ALGORITHM"),
        ("md5:" + "a" * 32, "DIGEST_ALGORITHM"),
        ("a" * 64, "DIGEST_SYNTAX"),
        ("", "DIGEST_SYNTAX"),
        (" sha256:" + "a" * 64, "DIGEST_ALGORITHM"),
        ("sha256:" + "a" * 64 + "\n", "DIGEST_SYNTAX"),
        ("sha256:sha256:" + "a" * 64, "DIGEST_SYNTAX"),
        ("sha256:" + "\u0430" * 64, "DIGEST_SYNTAX"),
    ],
)
def test_a8_odd_hash_is_refused_at_registration(channel, field, digest, code):
    assert channel.scientist1.code(*arguments(**{field: digest})) == code


@pytest.mark.parametrize(
    "name", ["", "Attestree/learner", "a//b", "/a", "a/", "a:1", "a@sha256", "x" * 129, "a b", "a~b"]
)
def test_image_name_outside_the_grammar_is_refused(channel, name):
    assert channel.scientist1.code(*arguments(name=name)) in ("NAME_SYNTAX", "NAME_LENGTH")


@pytest.mark.parametrize("version", ["", "latest", "1.0 ", "V1", "1/2", "../1", "x" * 65])
def test_image_version_outside_the_grammar_is_refused(channel, version):
    assert channel.scientist1.code(*arguments(version=version)) in ("NAME_SYNTAX", "NAME_LENGTH")


@pytest.mark.parametrize(
    "repository",
    [
        *("", "learner", "https://registry/learner", "registry/learner:1", f"registry/learner@{DIGESTS[1]}"),
        *(
            "registry/../x",
            "registry/Learner",
            "registry:99999999/x",
            "registry /x",
            "registry/x\n",
            "$(id)/x",
        ),
        "registry/" + "x" * 300,
    ],
)
def test_repository_that_is_none_is_refused(channel, repository):
    assert channel.scientist1.code(*arguments(repository=repository)) == "IMAGE_REPOSITORY"


@pytest.mark.parametrize("text", ["x" * 1001, "\0", "e\u0301", "\x1b[31m"])
def test_description_without_a_canonical_form_is_refused(channel, text):
    assert channel.scientist1.code(*arguments(description=text)) == "IMAGE_TEXT"


def test_a_version_is_written_once_also_by_another_organisation(channel):
    channel.register()
    assert channel.scientist1.code(*arguments()) == "IMAGE_EXISTS"
    assert channel.scientist2.code(*arguments(image_id=DIGESTS[9])) == "IMAGE_OWNER"
    assert channel.auditor1.evaluate("image", "Get", *IMAGE)["image"]["image_id"] == DIGESTS[2]


def test_a_version_registered_twice_in_one_block_is_written_once(channel):
    first, second = (
        channel.scientist1.endorse(*arguments()),
        channel.scientist2.endorse(*arguments(image_id=DIGESTS[9])),
    )
    assert channel.commit([first, second]) == [VALID, MVCC_CONFLICT]
    assert channel.auditor1.evaluate("image", "Get", *IMAGE)["registered"]["organisation"] == "Org1MSP"


def test_h12_another_organisation_registers_no_version_of_a_name(channel):
    """Who reads the name of a trusted image in a proposal must not be given another's code."""
    channel.register()
    assert channel.scientist2.code(*arguments(version="1.0.1")) == "IMAGE_OWNER"
    assert channel.scientist2.code(*arguments(version="0.0.1", image_id=DIGESTS[9])) == "IMAGE_OWNER"
    other = channel.member("colleague", "Org1MSP", role="data-scientist")
    assert other.submit(*arguments(version="1.0.1"))["registered"]["organisation"] == "Org1MSP"
    channel.scientist2.submit(*arguments(name="other/learner"))


def test_h12_a_name_keeps_its_owner_when_all_its_versions_are_retired(channel):
    channel.register()
    channel.scientist1.submit("image", "Retire", *IMAGE)
    assert channel.scientist2.code(*arguments(version="2")) == "IMAGE_OWNER"


def test_a4_one_digest_given_as_both_is_refused_at_registration(channel):
    assert (
        channel.scientist1.code(*arguments(manifest_digest=DIGESTS[3], image_id=DIGESTS[3]))
        == "IMAGE_ONE_DIGEST"
    )


def test_a_new_build_is_a_new_version(channel):
    channel.register()
    channel.register(version="1.0.1")
    assert [item["image"]["version"] for item in channel.auditor1.evaluate("image", "List")["items"]] == [
        "1.0.0",
        "1.0.1",
    ]


@pytest.mark.parametrize("role", ["admin", "node", "auditor"])
def test_c16_only_a_data_scientist_registers(channel, role):
    caller = channel.member("someone", "Org1MSP", role=role, node="node01")
    assert caller.code(*arguments()) == "ACCESS_ROLE"


@pytest.mark.parametrize(
    "attributes", [{}, {"role": ""}, {"role": "Admin"}, {"role": "data-scientist "}, {"node": "node01"}]
)
def test_c16_certificate_without_a_known_role_is_denied_also_for_reading(channel, attributes):
    caller = channel.member("someone", "Org1MSP", **attributes)
    channel.register()
    assert caller.code("image", "Get", *IMAGE) == "ACCESS_ROLE"
    assert caller.code(*arguments(version="2")) == "ACCESS_ROLE"


def test_c16_certificate_expired_at_the_time_of_the_transaction_is_denied(channel):
    assert channel.scientist1.code(*arguments(), time=channel.time + timedelta(days=366)) == "ACCESS_EXPIRED"


def test_c16_role_given_as_an_argument_counts_nothing(channel):
    caller = channel.member("data-scientist", "Org1MSP", role="auditor")
    assert caller.code(*arguments()) == "ACCESS_ROLE"


def test_retired_version_keeps_its_record_and_shows_who_and_why(channel):
    registered = channel.register()
    record = channel.admin1.submit("image", "Retire", *IMAGE, "CVE-2026-1")
    assert (record["status"], record["retired"]["reason"]) == ("retired", "CVE-2026-1")
    assert record["registered"] == registered["registered"]
    assert channel.events[-1][1] == "ImageRetired"
    items = channel.auditor2.evaluate("image", "History", *IMAGE)["items"]
    assert [item["value"]["status"] for item in items] == ["retired", "registered"]
    assert items[0]["tx"] == record["retired"]["tx"]


def test_c2_another_organisation_cannot_retire_the_version(channel):
    channel.register()
    assert channel.scientist2.code("image", "Retire", *IMAGE) == "ACCESS_ORGANISATION"
    assert channel.auditor1.code("image", "Retire", *IMAGE) == "ACCESS_ROLE"


def test_version_is_retired_once_and_never_registered_again(channel):
    channel.register()
    channel.scientist1.submit("image", "Retire", *IMAGE)
    assert channel.scientist1.code("image", "Retire", *IMAGE) == "LIFECYCLE_TRANSITION"
    assert channel.scientist1.code(*arguments()) == "IMAGE_EXISTS"


@pytest.mark.parametrize("function", ["Get", "Retire", "History"])
def test_unknown_version_is_refused(channel, function):
    assert channel.scientist1.code("image", function, *IMAGE) == "IMAGE_UNKNOWN"


def test_list_goes_page_by_page_and_by_organisation(channel):
    for number in range(7):
        member, name = (channel.scientist1, "a") if number % 2 else (channel.scientist2, "b")
        member.submit(*arguments(name=name, version=f"1.{number}"))
    found, bookmark, pages = [], "", 0
    while pages == 0 or bookmark:
        answer = channel.auditor1.evaluate("image", "List", "Org2MSP", 2, bookmark)
        found += [item["image"]["version"] for item in answer["items"]]
        bookmark, pages = answer["bookmark"], pages + 1
    assert found == ["1.0", "1.2", "1.4", "1.6"]
    assert pages > 1
    first = channel.auditor1.evaluate("image", "List", "", 3)
    assert first["bookmark"] == "image~b~1.0"


@pytest.mark.parametrize(
    "bookmark", ["x", "process~p", "image~a", "image~a~1~2", "image~A~1", "\0", "image\0a\0"]
)
def test_bookmark_that_no_list_returned_is_refused(channel, bookmark):
    assert channel.scientist1.code("image", "List", "", 2, bookmark) == "BAD_ARGUMENT"


@pytest.mark.parametrize("size", [0, -1, 1001])
def test_page_size_outside_its_range_is_refused(channel, size):
    channel.register()
    assert channel.scientist1.code("image", "List", "", size) == "BAD_ARGUMENT"
    assert channel.scientist1.code("image", "History", *IMAGE, size) == "BAD_ARGUMENT"


def test_list_by_something_that_is_no_organisation_is_refused(channel):
    assert channel.scientist1.code("image", "List", "no one") == "NAME_SYNTAX"


def test_e12_same_proposal_gives_the_same_bytes_on_every_peer(channel):
    channel.register()
    reads = ("image", "Get", *IMAGE), ("image", "List"), ("image", "History", *IMAGE)
    for call in (arguments(version="2"), ("image", "Retire", *IMAGE), *reads):
        first, second = (channel.scientist1.endorse(*call, tx_id="t") for _ in range(2))
        assert first.status == 200
        assert first.bytes == second.bytes
