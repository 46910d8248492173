"""Requests to read models and the votes on them: who may ask, who decides, and what nobody can do."""

from datetime import timedelta

import pytest
from support.memory.federation import DIGESTS, MODEL, Federation, changed, ended, prepared
from support.memory.ledger import RefusedError

from protocol.ledger import keys

NODES = {"node01": "Org1MSP", "node03": "Org2MSP", "node05": "Org3MSP"}
THREE = changed("organisations", ["Org1MSP", "Org2MSP", "Org3MSP"]) | {
    "nodes": NODES,
    "topology": {"kind": "full"},
    "description": "finds fraud in card payments",
}
THREE = changed("steps", 0, "iterations", 1, base=THREE)
ASKER = "Org4MSP"


class Channel(Federation):
    """Three organisations that learn, and two that might want what they learned."""

    organisations = ("Org1MSP", "Org2MSP", "Org3MSP", ASKER, "Org5MSP")


def by_owner():
    return ended(THREE, Channel)


def by_majority():
    terms = {"model_access": "majority", "model_licence": DIGESTS[6], "change_quota": 2}
    return ended(THREE | terms, Channel)


def by_all():
    return ended(THREE | {"model_access": "all"}, Channel)


@pytest.fixture
def owned():
    return prepared(by_owner)()


@pytest.fixture
def governed():
    return prepared(by_majority)()


def asker(federation, role="admin"):
    return federation.member(role, ASKER, role=role)


def ask(federation, licence="", caller=None, node="node01"):
    caller = caller or asker(federation)
    return caller.submit(MODEL, "Request", federation.process, node, "to compare", licence)


def call(federation, asked, agrees, **changes):
    wanted = asked["request"] | changes
    place = (federation.process, wanted["node"], wanted["organisation"], wanted["number"])
    return (MODEL, "Decide", *place, changes.get("digest", asked["digest"]), agrees)


def vote(federation, caller, asked, agrees=True):
    return caller.submit(*call(federation, asked, agrees))


def revocation(federation, organisation):
    return ("RequestRevocation", federation.process, "node01", organisation, "no longer wanted")


def shut_out(federation, organisation, asking=None):
    asked = (asking or federation.admin1).submit(MODEL, *revocation(federation, organisation))
    for caller in (federation.admin1, federation.admin2):
        vote(federation, caller, asked)


def test_the_owner_decides_where_the_process_says_nothing(owned):
    outsider = asker(owned)
    asked = ask(owned)
    assert (asked["missing"], asked["needed"]) == (["Org1MSP"], 1)
    with pytest.raises(RefusedError, match="ACCESS_GRANT"):
        outsider.evaluate(MODEL, "Get", owned.process, "node01")
    decided = vote(owned, owned.admin1, asked)
    assert decided["request"]["decision"]["granted"] is True
    assert outsider.evaluate(MODEL, "Get", owned.process, "node01")["owner"] == "Org1MSP"
    access = owned.auditor2.evaluate(MODEL, "Access", owned.process, "node01")
    assert (access["change"]["action"], access["change"]["request"]) == ("grant", 0)
    assert ASKER in access["organisations"]
    owned.admin1.submit(MODEL, "Revoke", owned.process, "node01", ASKER)
    assert outsider.code(MODEL, "Get", owned.process, "node01") == "ACCESS_GRANT"


def test_a_majority_grants_against_the_owner(governed):
    """Also without the endorsement of the owner's peer: its word is one of three."""
    asked = ask(governed, DIGESTS[6])
    refused = vote(governed, governed.admin1, asked, agrees=False)
    assert (refused["refused"], refused["request"]["decision"]) == (["Org1MSP"], None)
    vote(governed, governed.admin2, asked)
    last = governed.admin3.endorse(*call(governed, asked, True), endorsers=("Org2MSP", "Org3MSP", ASKER))
    assert governed.commit([last]) == ["VALID"]
    (status,) = governed.auditor1.evaluate(MODEL, "Requests", governed.process)["items"]
    assert status["request"]["decision"]["granted"] is True
    assert asker(governed).evaluate(MODEL, "Get", governed.process, "node01")


def test_two_of_three_refuse_and_the_third_comes_too_late(governed):
    asked = ask(governed, DIGESTS[6])
    vote(governed, governed.admin1, asked, agrees=False)
    decided = vote(governed, governed.admin2, asked, agrees=False)
    assert (decided["request"]["decision"]["granted"], decided["missing"]) == (False, [])
    assert governed.admin3.code(*call(governed, asked, True)) == "REQUEST_DECIDED"
    assert asker(governed).code(MODEL, "Get", governed.process, "node01") == "ACCESS_GRANT"


def test_all_means_that_each_can_refuse():
    federation = prepared(by_all)()
    asked = ask(federation)
    vote(federation, federation.admin1, asked)
    assert vote(federation, federation.admin2, asked, agrees=False)["request"]["decision"]["granted"] is False


def test_a_vote_is_cast_once_by_those_entitled_on_what_they_read(governed):
    asked = ask(governed, DIGESTS[6])
    vote(governed, governed.admin1, asked)
    assert governed.scientist1.code(*call(governed, asked, False)) == "REQUEST_VOTED"
    assert asker(governed).code(*call(governed, asked, True)) == "ACCESS_ORGANISATION"
    assert governed.auditor2.code(*call(governed, asked, True)) == "ACCESS_ROLE"
    assert governed.nodes["node03"].code(*call(governed, asked, True)) == "ACCESS_ROLE"
    assert governed.admin2.code(*call(governed, asked, True, digest=DIGESTS[3])) == "REQUEST_DIGEST"
    for changes in ({"number": 1}, {"organisation": "Org2MSP"}, {"node": "node03"}):
        assert governed.admin2.code(*call(governed, asked, True, **changes)) == "REQUEST_UNKNOWN"


def test_c4_a_member_that_was_shut_out_does_not_vote_for_itself(governed):
    shut_out(governed, "Org3MSP")
    asked = ask(governed, DIGESTS[6], governed.admin3)
    assert asked["missing"] == ["Org1MSP", "Org2MSP"]
    assert governed.admin3.code(*call(governed, asked, True)) == "ACCESS_ORGANISATION"


def test_the_owner_grants_and_revokes_nothing_alone_where_others_decide(governed):
    place = (governed.process, "node01")
    assert governed.admin1.code(MODEL, "Grant", *place, ASKER) == "GRANT_GOVERNED"
    assert governed.admin1.code(MODEL, "Revoke", *place, "Org2MSP") == "GRANT_GOVERNED"


def test_c4_an_owner_cannot_take_back_what_a_majority_granted(governed):
    asked = ask(governed, DIGESTS[6])
    for caller in (governed.admin2, governed.admin3):
        vote(governed, caller, asked)
    back = governed.admin1.submit(MODEL, *revocation(governed, ASKER))
    assert (back["missing"], back["needed"]) == (["Org1MSP", "Org2MSP", "Org3MSP"], 2)
    vote(governed, governed.admin1, back)
    for caller in (governed.admin2, governed.admin3):
        vote(governed, caller, back, agrees=False)
    assert asker(governed).evaluate(MODEL, "Get", governed.process, "node01")


def test_a_majority_takes_access_back_against_the_owner(governed):
    shut_out(governed, "Org3MSP", governed.admin2)
    assert governed.admin3.code(MODEL, "Get", governed.process, "node01") == "ACCESS_GRANT"
    access = governed.auditor1.evaluate(MODEL, "Access", governed.process, "node01")
    change = access["change"]
    assert (change["action"], change["organisation"], change["asked"]) == ("revoke", "Org3MSP", "Org2MSP")


def test_a_revocation_is_asked_for_by_those_who_have_a_say_about_what_is_there(governed):
    wanted = revocation(governed, "Org3MSP")
    assert asker(governed).code(MODEL, *wanted) == "ACCESS_ORGANISATION"
    assert governed.admin3.code(MODEL, *wanted) == "ACCESS_ORGANISATION"
    assert governed.auditor1.code(MODEL, *wanted) == "ACCESS_ROLE"
    assert governed.admin2.code(MODEL, *revocation(governed, ASKER)) == "GRANT_UNKNOWN"
    assert governed.admin2.code(MODEL, *revocation(governed, "Org1MSP")) == "GRANT_OWNER"
    assert governed.admin2.code(MODEL, *wanted[:-1], "a\u202eb") == "IMAGE_TEXT"


def test_h5_revocations_count_as_requests(governed):
    for _ in range(2):
        governed.admin2.submit(MODEL, *revocation(governed, "Org3MSP"))
    assert governed.admin2.code(MODEL, *revocation(governed, "Org3MSP")) == "REQUEST_LIMIT"


def test_a_request_names_the_licence_and_has_a_bounded_purpose(governed):
    request = (MODEL, "Request", governed.process, "node01")
    outsider = asker(governed)
    assert outsider.code(*request, "why") == "REQUEST_LICENCE"
    assert outsider.code(*request, "why", DIGESTS[5]) == "REQUEST_LICENCE"
    assert outsider.code(*request, "x" * 1001, DIGESTS[6]) == "IMAGE_TEXT"
    assert outsider.code(*request, "why", DIGESTS[6], "2001-01-01T00:00:00Z") == "GRANT_EXPIRY"
    assert asker(governed, "auditor").code(*request, "why", DIGESTS[6]) == "ACCESS_ROLE"
    assert governed.admin2.code(*request, "why", DIGESTS[6]) == "REQUEST_NEEDLESS"
    assert outsider.code(MODEL, "Request", governed.process, "node99", "why", DIGESTS[6]) == "MODEL_UNKNOWN"


def test_access_that_ends_can_be_asked_for_longer_and_not_for_less(owned):
    owned.admin1.submit(MODEL, "Grant", owned.process, "node01", ASKER, "2900-01-01T00:00:00Z")
    request = (MODEL, "Request", owned.process, "node01", "to go on", "")
    assert asker(owned).code(*request, "2899-01-01T00:00:00Z") == "REQUEST_NEEDLESS"
    assert owned.admin1.code(*request, "") == "REQUEST_NEEDLESS"
    vote(owned, owned.admin1, asker(owned).submit(*request, ""))
    granted = owned.auditor1.evaluate(MODEL, "Access", owned.process, "node01")["organisations"][ASKER]
    assert granted["expires"] is None
    assert asker(owned).code(*request, "") == "REQUEST_NEEDLESS"


def test_h5_requests_of_one_organisation_are_bounded_and_take_nothing_from_others(governed):
    for _ in range(2):
        ask(governed, DIGESTS[6])
    request = (MODEL, "Request", governed.process, "node01", "again", DIGESTS[6])
    assert asker(governed).code(*request) == "REQUEST_LIMIT"
    other = governed.member("admin", "Org5MSP", role="admin")
    assert other.submit(*request)["request"]["number"] == 0


def test_e9_requests_of_two_and_votes_on_both_fit_into_one_block(governed):
    other = governed.member("admin", "Org5MSP", role="admin")
    request = (MODEL, "Request", governed.process, "node01", "why", DIGESTS[6])
    block = [caller.endorse(*request) for caller in (asker(governed), other)]
    assert governed.commit(block) == ["VALID"] * 2
    first, second = governed.auditor1.evaluate(MODEL, "Requests", governed.process)["items"]
    block = [governed.admin1.endorse(*call(governed, asked, True)) for asked in (first, second)]
    assert not any(endorsed.ranges for endorsed in block)
    assert governed.commit(block) == ["VALID"] * 2


def test_a_vote_that_its_organisation_did_not_vouch_for_counts_as_none(governed):
    asked = ask(governed, DIGESTS[6])
    vote(governed, governed.admin2, asked)
    place = keys.decision(governed.process, "node01", ASKER, 0, "Org2MSP")
    forged = governed.state[MODEL, place].replace(b"Org2MSP", b"Org3MSP")
    governed.state[MODEL, place.replace("Org2MSP", "Org3MSP")] = forged
    (status,) = governed.auditor1.evaluate(MODEL, "Requests", governed.process)["items"]
    assert (status["agreed"], status["missing"]) == (["Org2MSP"], ["Org1MSP", "Org3MSP"])


def test_the_catalogue_says_what_a_model_is_and_how_to_ask_and_no_more(governed):
    outsider = asker(governed)
    first = outsider.evaluate(MODEL, "Catalogue", "", 2)
    second = outsider.evaluate(MODEL, "Catalogue", "", 2, first["bookmark"])
    found = [*first["items"], *second["items"]]
    assert [item["node"] for item in found] == sorted(NODES)
    assert second["bookmark"] == ""
    entry = found[0]
    assert (entry["description"], entry["metrics"]) == ("finds fraud in card payments", {"auc": "0.98"})
    assert (entry["access"], entry["licence"], entry["missing"]) == ("majority", DIGESTS[6], 0)
    assert "estimators" not in entry
    assert outsider.evaluate(MODEL, "Catalogue", "absent")["items"] == []


def test_h9_who_left_before_the_end_has_no_say_and_is_not_waited_for():
    federation = Channel(THREE | {"model_access": "all"})
    process = federation.process
    federation.nodes["node05"].submit("orchestration", "Leave", process, "node05", 0)
    federation.play(0, ["node01", "node03"])
    federation.publish_all("node01", "node03")
    federation.admin1.submit("orchestration", "Complete", process)
    asked = ask(federation)
    assert asked["missing"] == ["Org1MSP", "Org2MSP"]
    assert federation.admin3.code(*call(federation, asked, True)) == "ACCESS_ORGANISATION"
    assert federation.admin3.code(MODEL, *revocation(federation, "Org2MSP")) == "ACCESS_ORGANISATION"


def leave_out_third(federation):
    """Have the two others leave the third organisation out, a day after the start and an hour."""
    call = ("orchestration", "LeaveOutOrganisation", federation.process, "Org3MSP", "gone")
    for member in (federation.admin1, federation.admin2):
        member.submit(*call)
    federation.time += timedelta(days=1, hours=1)
    voted = [member.submit(*call)["change"] for member in (federation.admin1, federation.admin2)]
    assert any(change is not None for change in voted)


def completed(federation, *nodes):
    federation.publish_all(*nodes)
    federation.admin1.submit("orchestration", "Complete", federation.process)
    return federation


def test_h9_who_did_the_last_iteration_decides_though_the_others_left_its_other_node_out():
    """Else a majority could take the say of who would refuse, for a second node that is silent."""
    alone = {"topology": {"kind": "disconnected"}, "nodes": NODES | {"node06": "Org3MSP"}}
    federation = Channel(THREE | alone | {"model_access": "all"})
    for node in NODES:
        federation.players[node].open(0)
        federation.players[node].complete()
    leave_out_third(federation)
    present = federation.auditor1.evaluate("orchestration", "Status", federation.process)["present"]
    assert present == ["Org1MSP", "Org2MSP"]
    asked = ask(completed(federation, *NODES))
    assert asked["missing"] == ["Org1MSP", "Org2MSP", "Org3MSP"]
    refused = federation.admin3.submit(*call(federation, asked, False))
    assert refused["request"]["decision"]["granted"] is False


def test_h9_a_member_without_nodes_decides_though_the_others_left_it_out():
    nodes = {"node01": "Org1MSP", "node03": "Org2MSP"}
    federation = Channel(THREE | {"nodes": nodes, "model_access": "all"})
    federation.play(0)
    leave_out_third(federation)
    assert ask(completed(federation, *nodes))["missing"] == ["Org1MSP", "Org2MSP", "Org3MSP"]


def test_h9_who_was_left_out_before_its_last_iteration_decides_nothing():
    federation = Channel(THREE | {"model_access": "all"})
    leave_out_third(federation)
    federation.play(0, ["node01", "node03"])
    assert ask(completed(federation, "node01", "node03"))["missing"] == ["Org1MSP", "Org2MSP"]


# Requests that are over

FIVE = [f"Org{number}MSP" for number in range(1, 6)]
STRANGER = "Org6MSP"
DAY = timedelta(days=1)


class Wide(Federation):
    """Five organisations that learn, and one that might want what they learned."""

    organisations = (*FIVE, STRANGER)

    def running(self, specification):
        self.register()
        process = self.create(specification)["process"]
        for name in FIVE:
            self.member("admin", name, role="admin").submit("orchestration", "Accept", process)
        self.scientist1.submit("orchestration", "Start", process)
        return process


def by_three_of_five():
    nodes = {f"node0{number}": name for number, name in enumerate(FIVE, 1)}
    return ended(THREE | {"organisations": FIVE, "nodes": nodes, "model_access": "majority"}, Wide)


@pytest.fixture
def wide():
    return prepared(by_three_of_five)()


def by(federation, organisation):
    return federation.member("admin", organisation, role="admin")


def wish(federation, expires="", organisation=STRANGER):
    place = (federation.process, "node01", "to compare", "", expires)
    return by(federation, organisation).submit(MODEL, "Request", *place)


def ending(federation, asker, organisation=STRANGER):
    return by(federation, asker).submit(MODEL, *revocation(federation, organisation))


def decide(federation, asked, *numbers, agrees=True):
    for number in numbers:
        status = vote(federation, by(federation, f"Org{number}MSP"), asked, agrees)
    return status


def late(federation, number, asked, agrees=True):
    return by(federation, f"Org{number}MSP").code(*call(federation, asked, agrees))


def reads(federation, organisation=STRANGER):
    return by(federation, organisation).endorse(MODEL, "Get", federation.process, "node01").status < 400


def test_c4_votes_on_a_spare_request_do_not_give_back_what_a_majority_has_taken(wide):
    spare, used = wish(wide), wish(wide)
    decide(wide, spare, 1, 2)
    assert decide(wide, used, 1, 2, 3)["request"]["decision"]["granted"] is True
    decide(wide, ending(wide, "Org1MSP"), 1, 2, 3)
    wide.time += 30 * DAY
    assert late(wide, 5, spare) == "REQUEST_STALE"
    assert not reads(wide)


def test_c4_votes_on_a_spare_request_do_not_give_what_a_majority_has_refused(wide):
    """Who voted for the one and then against the other cannot take the first vote back."""
    spare, used = wish(wide), wish(wide)
    decide(wide, spare, 1, 2)
    assert decide(wide, used, 1, 2, 3, agrees=False)["request"]["decision"]["granted"] is False
    assert late(wide, 5, spare) == "REQUEST_STALE"
    change = wide.auditor1.evaluate(MODEL, "Access", wide.process, "node01")["change"]
    assert (change["action"], change["organisation"], change["request"]) == ("refuse", STRANGER, 1)
    decide(wide, wish(wide), 1, 2, 3)
    assert reads(wide)


def test_c4_a_request_until_tomorrow_is_not_decided_the_day_after(wide):
    """It would end the access that its organisation was given since."""
    short = wish(wide, (wide.time + DAY).strftime("%Y-%m-%dT%H:%M:%SZ"))
    decide(wide, short, 1, 2)
    wide.time += 2 * DAY
    assert late(wide, 5, short) == "REQUEST_STALE"
    decide(wide, wish(wide), 1, 2, 3)
    assert late(wide, 5, short) == "REQUEST_STALE"
    assert reads(wide)


def test_c4_an_old_revocation_does_not_end_access_that_was_given_back(wide):
    old, new = ending(wide, "Org5MSP", "Org4MSP"), ending(wide, "Org1MSP", "Org4MSP")
    decide(wide, old, 1, 2)
    decide(wide, new, 1, 2, 3)
    assert not reads(wide, "Org4MSP")
    decide(wide, wish(wide, organisation="Org4MSP"), 1, 2, 3)
    assert late(wide, 5, old) == "REQUEST_STALE"
    assert reads(wide, "Org4MSP")


def test_a_decision_on_one_organisation_leaves_requests_about_others_open(wide):
    asked, about = wish(wide), ending(wide, "Org1MSP", "Org4MSP")
    decide(wide, about, 1, 2, 3)
    assert decide(wide, asked, 1, 2, 3)["request"]["decision"]["granted"] is True


def test_c4_of_two_requests_of_one_block_one_is_decided(wide):
    request = (MODEL, "Request", wide.process, "node01", "why", "")
    first = by(wide, STRANGER).endorse(*request)
    assert wide.commit([first]) == ["VALID"]
    second = wish(wide)
    (one, _) = wide.auditor1.evaluate(MODEL, "Requests", wide.process)["items"]
    for asked in (one, second):
        decide(wide, asked, 1, 2)
    block = [by(wide, "Org3MSP").endorse(*call(wide, asked, True)) for asked in (one, second)]
    assert [verdict == "VALID" for verdict in wide.commit(block)] == [True, False]
    assert late(wide, 3, second) == "REQUEST_STALE"


def test_requests_that_are_over_are_shown_as_such(wide):
    spare, used = wish(wide), wish(wide)
    decide(wide, used, 1, 2, 3)
    shown, done = wide.auditor1.evaluate(MODEL, "Requests", wide.process)["items"]
    assert (shown["request"]["number"], shown["stale"], shown["missing"]) == (0, True, [])
    assert "stale" not in done
    assert spare["missing"] == FIVE


def test_c4_all_decide_on_what_is_asked_after_the_last_decision_alone():
    federation = prepared(by_all)()
    spare, used = ask(federation), ask(federation)
    for caller in (federation.admin1, federation.admin2):
        vote(federation, caller, spare)
    vote(federation, federation.admin1, used, agrees=False)
    assert federation.admin3.code(*call(federation, spare, True)) == "REQUEST_STALE"


def test_what_the_owner_grants_or_revokes_ends_requests_too(owned):
    first = ask(owned)
    owned.admin1.submit(MODEL, "Grant", owned.process, "node01", ASKER, "2900-01-01T00:00:00Z")
    assert owned.admin1.code(*call(owned, first, True)) == "REQUEST_STALE"
    second = ask(owned)
    owned.admin1.submit(MODEL, "Revoke", owned.process, "node01", ASKER)
    assert owned.admin1.code(*call(owned, second, True)) == "REQUEST_STALE"
