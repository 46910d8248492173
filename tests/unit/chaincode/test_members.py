"""What one member can do to the others: asks hold nobody up, silence and retirement are no dead end."""

import json
from datetime import timedelta

import pytest
from support.memory.federation import EXECUTION, Federation, prepared
from support.memory.ledger import VALID
from support.memory.scenario import DIGESTS, IMAGE, changed

P = "fraud-2026"
HERE = "orchestration"
DAY = timedelta(days=1)
THREE = changed("organisations", ["Org1MSP", "Org2MSP", "Org3MSP"]) | {
    "nodes": {"node01": "Org1MSP", "node03": "Org2MSP", "node05": "Org3MSP"},
    "topology": {"kind": "full"},
}
ANY = THREE | {"abort": "any"}


def three():
    return Federation(THREE)


@pytest.fixture
def consortium():
    """Three organisations with a node each, four iterations, and nothing done yet."""
    return prepared(three)()


def status(federation):
    return federation.auditor1.evaluate(HERE, "Status", P)


def asks(federation):
    return federation.auditor1.evaluate(HERE, "Asks", P)["items"]


def changes(federation):
    return federation.auditor1.evaluate(HERE, "Changes", P)["items"]


def later(federation, by=DAY):
    """A time by which whoever has done nothing since the start is silent for longer than it may be."""
    return federation.time + by + timedelta(hours=1)


def seen(federation, *members, call=(HERE, "LeaveOut", P, "node05", "silent")):
    """Let members vote as soon as they may: from there on each counts by its own clock."""
    for member in members:
        assert member.submit(*call, time=federation.time)["vote"]["counts"] is False


def leave_out(federation, *members, node="node05", time=None):
    time = time or later(federation)
    return [member.submit(HERE, "LeaveOut", P, node, "no sign of life", time=time) for member in members]


def open_code(federation, node, iteration):
    player = federation.players[node]
    return player.member.code(*player.call_open(iteration))


# Asks


def test_h3_a_stream_of_asks_by_one_member_invalidates_nobodys_results(consortium):
    kinds = ("full", "ring", "disconnected")
    for number, node in enumerate(consortium.players):
        player = consortium.players[node]
        for step, play in enumerate((lambda p=player: p.open(0), player.share)):
            made = play_in_block_with_ask(consortium, play, kinds[(number + step) % 3])
            assert made == [VALID, VALID]
    for player in consortium.players.values():
        assert play_in_block_with_ask(consortium, player.complete, "ring") == [VALID, VALID]
    assert status(consortium)["iteration"] == 1


def play_in_block_with_ask(federation, play, kind):
    """Let a node's transaction and an ask of another member meet in one block, the ask first."""
    verdicts = []
    commit = federation.commit

    def together(block):
        ask = federation.scientist2.endorse(HERE, "ChangeTopology", P, 3, {"kind": kind})
        del federation.commit
        verdicts.extend(commit([ask, *block]))
        return verdicts[1:]

    federation.commit = together
    play()
    return verdicts


def test_h4_alternating_asks_and_withdrawals_are_read_by_no_task(consortium):
    player = consortium.players["node01"]
    player.open(0)
    endorsed = player.member.endorse(HERE, "TaskContext", P, "node01", 0)
    read = {key.split("\0")[1] for _, key in endorsed.reads}
    assert read == {"process", "progress"}
    for _ in range(3):
        ask = consortium.scientist2.submit(HERE, "ChangeTopology", P, 3, {"kind": "full"})
        consortium.scientist2.submit(HERE, "Withdraw", P, ask["number"])
    assert consortium.commit([endorsed]) == [VALID]
    assert asks(consortium) == []


def test_h4_a_node_that_leaves_and_comes_back_in_turn_soon_needs_the_others(consortium):
    """Each of these is read by everybody's tasks."""
    leave, join = (HERE, "Leave", P, "node05", 0), (HERE, "Join", P, "node05", "Org3MSP", 1)
    consortium.scientist3.submit(*leave)
    assert consortium.scientist3.submit(*join)["change"] == 1
    consortium.scientist3.submit(HERE, "Leave", P, "node05", 1)
    again = consortium.scientist3.submit(*join)
    assert (again["change"], again["needed"]) == (None, 3)
    assert consortium.agree(consortium.admin1, again)["change"] is None
    assert consortium.agree(consortium.admin2, again)["change"] == 3


def test_h4_who_leaves_from_where_it_came_back_soon_needs_the_others_too(consortium):
    """It takes part in iteration 0 all the while, so that nothing of its first return is left in the plan."""
    leave, join = (HERE, "Leave", P, "node05", 1), (HERE, "Join", P, "node05", "Org3MSP", 1)
    consortium.scientist3.submit(*leave)
    assert consortium.scientist3.submit(*join)["change"] == 1
    consortium.scientist3.submit(*leave)
    again = consortium.scientist3.submit(*join)
    assert (again["change"], again["needed"]) == (None, 2)


def test_h4_who_has_completed_what_it_came_back_for_returns_by_its_own_word_again(consortium):
    consortium.scientist3.submit(HERE, "Leave", P, "node05", 1)
    consortium.scientist3.submit(HERE, "Join", P, "node05", "Org3MSP", 1)
    for iteration in (0, 1):
        consortium.play(iteration)
    consortium.scientist3.submit(HERE, "Leave", P, "node05", 2)
    assert consortium.scientist3.submit(HERE, "Join", P, "node05", "Org3MSP", 3)["change"] == 3


def test_h4_a_node_leaves_sooner_than_it_said_once_and_at_once(consortium):
    consortium.scientist3.submit(HERE, "Leave", P, "node05", 3)
    assert consortium.scientist3.code(HERE, "Leave", P, "node05", 2) == "ITERATION_RANGE"
    consortium.scientist3.submit(HERE, "Leave", P, "node05", 0)
    assert consortium.scientist3.code(HERE, "Leave", P, "node05", 0) == "NODE_INACTIVE"


def test_h5_the_quota_of_changes_is_each_members_own():
    consortium = Federation(THREE | {"change_quota": 2})
    ask = (HERE, "ChangeTopology", P, 3, {"kind": "ring"})
    for _ in range(2):
        consortium.scientist2.submit(*ask)
    assert consortium.admin2.code(*ask) == "CHANGE_LIMIT"
    assert consortium.scientist1.submit(*ask)["number"] == 0


def test_t12_changes_of_one_kind_stand_side_by_side_and_each_agreement_names_one(consortium):
    first = consortium.admin1.submit(HERE, "Join", P, "node02", "Org1MSP", 2)
    second = consortium.admin1.submit(HERE, "Join", P, "node06", "Org1MSP", 2)
    assert [item["number"] for item in asks(consortium)] == [0, 1]
    agree = (HERE, "Agree", P, "Org1MSP")
    assert consortium.admin2.code(*agree, 1, first["digest"]) == "CHANGE_DIGEST"
    assert consortium.admin2.code(*agree, 2, first["digest"]) == "CHANGE_UNKNOWN"
    for member in (consortium.admin2, consortium.admin3):
        done = consortium.agree(member, second)
    assert (done["change"], done["missing"]) == (0, [])
    assert [item["subject"]["node"] for item in asks(consortium)] == ["node02"]
    assert [item["subject"]["node"] for item in changes(consortium)] == ["node06"]


def test_t12_only_who_asked_withdraws_and_nobody_what_holds(consortium):
    ask = consortium.scientist1.submit(HERE, "ChangeTopology", P, 3, {"kind": "ring"})
    assert consortium.scientist2.code(HERE, "Withdraw", P, 0) == "CHANGE_UNKNOWN"
    consortium.admin1.submit(HERE, "Withdraw", P, 0)
    assert consortium.scientist2.code(*consortium.agreement(ask)) == "CHANGE_UNKNOWN"
    held = consortium.scientist1.submit(HERE, "Leave", P, "node01", 3)
    assert held["number"] == 1
    assert consortium.scientist1.code(HERE, "Withdraw", P, 1) == "CHANGE_HOLDS"


def test_two_agreements_in_one_block_do_not_both_miss_each_other(consortium):
    ask = consortium.scientist1.submit(HERE, "ChangeTopology", P, 3, {"kind": "ring"})
    pair = [member.endorse(*consortium.agreement(ask)) for member in (consortium.admin2, consortium.admin3)]
    assert consortium.commit(pair)[0] == VALID
    assert changes(consortium) == []
    assert consortium.agree(consortium.admin3, ask)["change"] == 0


def test_h5_a_task_reads_no_more_however_often_the_process_has_changed(consortium):
    for kind in ("ring", "full", "ring", "disconnected"):
        ask = consortium.scientist1.submit(HERE, "ChangeTopology", P, 2, {"kind": kind})
        for member in (consortium.admin2, consortium.admin3):
            consortium.agree(member, ask)
    read = [
        sorted(
            key.split("\0")[1]
            for _, key in consortium.admin1.endorse(HERE, "TaskContext", P, "node01", at).reads
        )
        for at in (1, 2)
    ]
    assert read == [["process", "progress"], ["change", "process", "progress"]]
    assert consortium.context("node01", 2)["neighbours"] == []


# Images


def test_h7_a_retired_image_is_no_dead_end_for_a_process_that_pinned_it(consortium):
    consortium.play(0)
    consortium.scientist1.submit("image", "Retire", *IMAGE)
    consortium.play(1)
    assert status(consortium)["iteration"] == 2


def test_h7_a_majority_moves_the_present_iteration_to_another_version(consortium):
    consortium.play(0)
    consortium.players["node01"].open(1)
    consortium.register(version="1.0.1")
    ask = consortium.admin1.submit(HERE, "UpdateImage", P, 1, "1.0.1")
    assert (ask["change"], ask["needed"]) == (None, 2)
    assert consortium.agree(consortium.admin2, ask)["change"] == 0
    assert consortium.context("node03", 1)["image"]["version"] == "1.0.1"
    # What was opened before goes on as it is.
    consortium.players["node01"].share()
    # Nobody runs code that it has not agreed to, and may agree later.
    assert consortium.context("node05", 1)["image"]["agreed"] is False
    assert open_code(consortium, "node05", 1) == "IMAGE_CONSENT"
    assert [item["missing"] for item in asks(consortium)] == [["Org3MSP"]]
    consortium.agree(consortium.admin3, ask)
    consortium.players["node05"].open(1)
    assert asks(consortium) == []


def test_h7_one_member_alone_moves_nobody_to_another_version_and_none_to_the_past(consortium):
    consortium.play(0)
    consortium.register(version="1.0.1")
    assert consortium.admin1.code(HERE, "UpdateImage", P, 0, "1.0.1") == "ITERATION_RANGE"
    consortium.admin1.submit(HERE, "UpdateImage", P, 1, "1.0.1")
    assert consortium.context("node01", 1)["image"]["version"] == IMAGE[1]


# Agreements to what was given up


class Five(Federation):
    """Five organisations with a node each."""

    organisations = tuple(f"Org{number}MSP" for number in range(1, 6))

    def running(self, specification):
        self.register()
        process = self.create(specification)["process"]
        for name in self.organisations:
            self.by(name[3]).submit(HERE, "Accept", process)
        self.by(1).submit(HERE, "Start", process)
        return process

    def by(self, number):
        return self.member("admin", f"Org{number}MSP", role="admin")

    def agreed(self, ask, *numbers):
        for number in numbers:
            answer = self.agree(self.by(number), ask)
        return answer


def five():
    nodes = {f"node0{name[3]}": name for name in Five.organisations}
    return Five(THREE | {"organisations": list(Five.organisations), "nodes": nodes})


@pytest.fixture
def wide():
    return prepared(five)()


def test_h7_one_late_agreement_brings_back_no_image_that_a_majority_has_replaced(wide):
    for version in ("2.0.0", "3.0.0"):
        wide.register(version=version)
    early = wide.by(4).submit(HERE, "UpdateImage", P, 1, "2.0.0")
    wide.agreed(early, 1)
    assert wide.agreed(wide.by(1).submit(HERE, "UpdateImage", P, 1, "3.0.0"), 2, 3)["change"] == 0
    assert wide.by(5).code(*wide.agreement(early)) == "CHANGE_STALE"
    assert wide.context("node01", 1)["image"]["version"] == "3.0.0"
    assert [ask["subject"]["version"] for ask in asks(wide)] == ["3.0.0"]
    again = wide.by(4).submit(HERE, "UpdateImage", P, 1, "2.0.0")
    assert wide.agreed(again, 1, 5)["change"] == 1


def test_an_image_that_holds_may_be_agreed_to_after_another_has_replaced_it(wide):
    for version in ("2.0.0", "3.0.0"):
        wide.register(version=version)
    first = wide.by(1).submit(HERE, "UpdateImage", P, 1, "2.0.0")
    wide.agreed(first, 2, 3)
    wide.agreed(wide.by(1).submit(HERE, "UpdateImage", P, 2, "3.0.0"), 2, 3)
    assert wide.agreed(first, 4)["change"] == 0


def test_h7_the_last_agreement_to_an_old_topology_does_not_replace_a_later_one(wide):
    early = wide.by(1).submit(HERE, "ChangeTopology", P, 2, {"kind": "ring"})
    wide.agreed(early, 2, 3, 4)
    later = wide.by(1).submit(HERE, "ChangeTopology", P, 2, {"kind": "disconnected"})
    assert wide.agreed(later, 2, 3, 4, 5)["change"] == 0
    assert wide.by(5).code(*wide.agreement(early)) == "CHANGE_STALE"


def test_h7_an_old_agreement_to_a_join_does_not_bring_a_node_back_that_was_left_out_again(wide):
    def left_out():
        """Have three vote twice, for votes count once their voters have waited."""
        call = (HERE, "LeaveOut", P, "node05", "gone")
        for number in (1, 2, 3, 1, 2, 3):
            if number == 1:
                wide.time += timedelta(days=2)
            if wide.by(number).submit(*call)["change"] is not None:
                return

    left_out()
    early, late = (wide.by(5).submit(HERE, "Join", P, "node05", "Org5MSP", 1) for _ in range(2))
    wide.agreed(early, 4, 1)
    assert wide.agreed(late, 1, 2, 3)["change"] is not None
    left_out()
    assert wide.by(3).code(*wide.agreement(early)) == "CHANGE_STALE"


def test_changes_of_other_nodes_and_other_kinds_leave_an_ask_open(wide):
    wide.register(version="2.0.0")
    early = wide.by(4).submit(HERE, "UpdateImage", P, 1, "2.0.0")
    assert (
        wide.agreed(wide.by(1).submit(HERE, "ChangeTopology", P, 2, {"kind": "ring"}), 2, 3, 4, 5)["change"]
        == 0
    )
    wide.by(5).submit(HERE, "Leave", P, "node05", 0)
    assert wide.agreed(early, 1, 2)["change"] == 2


# Ends


def test_h8_a_process_whose_nodes_are_done_is_completed_and_not_aborted():
    federation = Federation(changed("steps", 0, "iterations", 1))
    federation.admin1.submit(HERE, "Abort", P, "early vote")
    federation.play(0)
    assert federation.admin2.code(HERE, "Abort", P, "nobody shall have a model") == "PROCESS_FINISHED"
    federation.publish_all()
    assert federation.admin1.submit(HERE, "Complete", P)["status"] == "completed"


def test_h9_abort_takes_a_majority_and_one_vote_each(consortium):
    first = consortium.admin1.submit(HERE, "Abort", P, "no longer needed")
    assert (first["status"], sorted(first["voted"]), first["needed"]) == ("running", ["Org1MSP"], 2)
    again = consortium.scientist1.submit(HERE, "Abort", P, "still")
    assert again["voted"] == first["voted"]
    votes = consortium.auditor3.evaluate(HERE, "Votes", P)["abort"]
    assert votes["voted"]["Org1MSP"]["reason"] == "no longer needed"
    assert consortium.admin2.submit(HERE, "Abort", P, "agreed")["status"] == "aborted"


def test_h9_abort_by_any_where_the_specification_says_so():
    federation = Federation(ANY)
    assert federation.admin3.submit(HERE, "Abort", P, "breach")["status"] == "aborted"


def test_h9_a_member_that_left_has_neither_veto_nor_abort(consortium):
    consortium.scientist3.submit(HERE, "Leave", P, "node05", 0)
    assert status(consortium)["present"] == ["Org1MSP", "Org2MSP"]
    assert consortium.admin3.code(HERE, "Abort", P, "spite") == "ACCESS_ORGANISATION"
    assert consortium.admin3.code(HERE, "ChangeTopology", P, 2, {"kind": "ring"}) == "ACCESS_ORGANISATION"
    assert consortium.admin3.code(HERE, "LeaveOut", P, "node01", "spite") == "ACCESS_ORGANISATION"
    ask = consortium.admin1.submit(HERE, "ChangeTopology", P, 2, {"kind": "ring"})
    assert ask["missing"] == ["Org2MSP"]
    assert consortium.agree(consortium.admin2, ask)["change"] == 1


def test_h9_a_vote_of_a_member_that_left_since_no_longer_counts(consortium):
    consortium.admin3.submit(HERE, "Abort", P, "spite")
    consortium.scientist3.submit(HERE, "Leave", P, "node05", 0)
    answer = consortium.admin1.submit(HERE, "Abort", P, "alone")
    assert (answer["status"], sorted(answer["voted"]), answer["needed"]) == ("running", ["Org1MSP"], 2)


def test_h10_a_proposal_that_a_member_never_accepts_is_given_up_by_one(consortium):
    consortium.create(THREE | {"process": "second"})
    assert consortium.admin2.submit(HERE, "Abort", "second", "Org3 is silent")["status"] == "aborted"


# Silence


def test_h10_a_silent_node_is_left_out_by_a_majority_and_the_others_go_on(consortium):
    for node in ("node01", "node03"):
        consortium.players[node].open(0)
        consortium.players[node].share()
    waiting = consortium.players["node01"]
    assert waiting.complete_code(waiting.result(slots=())) == "RESULT_SLOT"
    seen(consortium, consortium.admin1, consortium.admin2)
    first, second = leave_out(consortium, consortium.admin1, consortium.scientist2)
    _, name, announced = consortium.events[-1]
    said = json.loads(announced)
    assert (name, said["kind"], said["number"]) == ("ProcessChanged", "leave-out", second["change"])
    assert said["iteration"] == 0
    assert (first["change"], first["voted"], first["needed"]) == (None, ["Org1MSP"], 2)
    assert (second["change"], second["voted"]) == (0, ["Org1MSP", "Org2MSP"])
    (change,) = changes(consortium)
    assert (change["kind"], change["iteration"], change["subject"]["nodes"]) == (
        "leave-out",
        0,
        {"node05": 0},
    )
    assert change["subject"]["last"]["tx"] == consortium.auditor1.evaluate(HERE, "Get", P)["started"]["tx"]
    for node in ("node01", "node03"):
        consortium.players[node].complete()
    assert open_code(consortium, "node05", 0) == "NODE_INACTIVE"
    assert status(consortium)["present"] == ["Org1MSP", "Org2MSP"]


def test_h10_nobody_is_left_out_before_the_agreed_time(consortium):
    seen(consortium, consortium.admin1, consortium.admin2)
    early = consortium.time + DAY - timedelta(minutes=1)
    for vote in leave_out(consortium, consortium.admin1, consortium.admin2, time=early):
        assert (vote["vote"]["counts"], vote["voted"], vote["change"]) == (False, [], None)
    # The same votes repeated in time count.
    *_, last = leave_out(consortium, consortium.admin1, consortium.admin2)
    assert last["change"] == 0


def test_h10_one_members_clock_leaves_nobody_out(consortium):
    seen(consortium, consortium.admin1, consortium.admin2)
    (vote,) = leave_out(consortium, consortium.admin1, time=later(consortium, 100 * DAY))
    assert (vote["vote"]["counts"], vote["change"]) == (True, None)
    (honest,) = leave_out(consortium, consortium.admin2, time=consortium.time)
    assert (honest["vote"]["counts"], honest["change"]) == (False, None)


def test_h10_a_node_that_claims_a_time_to_come_is_left_out_by_the_voters_clocks(consortium):
    for node in ("node01", "node03"):
        consortium.players[node].open(0)
        consortium.players[node].share()
    consortium.players["node05"].open(0, time=consortium.time + 90 * DAY)
    consortium.players["node05"].share(time=consortium.time + 90 * DAY)
    now = consortium.time
    for vote in leave_out(consortium, consortium.admin1, consortium.admin2, time=now):
        assert (vote["vote"]["counts"], vote["vote"]["since"][:19]) == (False, now.isoformat()[:19])
    *_, last = leave_out(consortium, consortium.admin1, consortium.admin2, time=now + DAY)
    assert last["change"] == 0


def test_h10_a_node_that_joined_late_is_silent_since_it_joined_and_not_since_the_start(consortium):
    start = consortium.time
    consortium.play(0)
    consortium.time = start + 2 * DAY
    ask = consortium.admin1.submit(HERE, "Join", P, "node06", "Org1MSP", 2)
    for member in (consortium.admin2, consortium.admin3):
        joined = consortium.agree(member, ask)
    assert joined["change"] == 0
    about = (HERE, "LeaveOut", P, "node06", "silent")
    seen(consortium, consortium.admin2, consortium.admin3, call=about)
    at = consortium.time
    early = at + DAY - timedelta(minutes=1)
    for vote in leave_out(consortium, consortium.admin2, consortium.admin3, node="node06", time=early):
        assert (vote["vote"]["counts"], vote["change"]) == (False, None)
        assert vote["vote"]["since"] > (start + 2 * DAY).isoformat()
    *_, last = leave_out(consortium, consortium.admin2, consortium.admin3, node="node06", time=at + DAY)
    assert last["change"] == 1


def test_h10_a_node_that_comes_back_is_silent_since_then(consortium):
    consortium.players["node05"].open(0)
    consortium.scientist3.submit(HERE, "Leave", P, "node05", 0)
    consortium.time += 2 * DAY
    consortium.scientist3.submit(HERE, "Join", P, "node05", "Org3MSP", 1)
    votes = leave_out(consortium, consortium.admin1, consortium.admin2, time=consortium.time)
    assert [vote["vote"]["counts"] for vote in votes] == [False, False]
    *_, last = leave_out(consortium, consortium.admin1, consortium.admin2)
    assert last["change"] == 2


def test_h10_a_silent_organisation_loses_its_say_with_its_nodes(consortium):
    call = (HERE, "LeaveOutOrganisation", P, "Org3MSP", "gone")
    seen(consortium, consortium.admin1, consortium.admin2, call=call)
    time = later(consortium)
    consortium.admin1.submit(*call, time=time)
    assert consortium.admin2.submit(*call, time=time)["change"] == 0
    found = status(consortium)
    assert (found["present"], found["consortium"]) == (
        ["Org1MSP", "Org2MSP"],
        ["Org1MSP", "Org2MSP", "Org3MSP"],
    )
    assert consortium.admin3.code(HERE, "Abort", P, "spite") == "ACCESS_ORGANISATION"
    assert consortium.admin1.code(*call, time=time) == "NODE_INACTIVE"


def test_h10_a_vanished_coordinator_without_nodes_is_left_out_too():
    federation = Federation(THREE | {"nodes": {"node01": "Org1MSP", "node03": "Org2MSP"}})
    time = later(federation)
    for member in (federation.admin1, federation.admin2):
        vote = member.submit(HERE, "LeaveOutOrganisation", P, "Org3MSP", "gone", time=time)
    assert (vote["change"], status(federation)["present"]) == (0, ["Org1MSP", "Org2MSP"])
    assert status(federation)["iteration"] == 0


def test_h10_who_was_left_out_comes_back_by_consent_of_a_majority(consortium):
    seen(consortium, consortium.admin1, consortium.admin2)
    leave_out(consortium, consortium.admin1, consortium.admin2)
    ask = consortium.scientist3.submit(HERE, "Join", P, "node05", "Org3MSP", 1)
    assert (ask["change"], ask["needed"]) == (None, 3)
    assert consortium.agree(consortium.admin1, ask)["change"] is None
    assert consortium.agree(consortium.admin2, ask)["change"] == 1
    assert consortium.context("node05", 1)["active"] is True
    assert status(consortium)["present"] == ["Org1MSP", "Org2MSP", "Org3MSP"]


def test_h10_a_node_that_was_alone_in_an_iteration_and_is_silent_there_stops_nobody(consortium):
    """The others were away for one iteration and wait for it in the next, where they cannot begin."""
    consortium.play(0)
    for node, member in (("node03", consortium.admin2), ("node05", consortium.admin3)):
        member.submit(HERE, "Leave", P, node, 1)
        member.submit(HERE, "Join", P, node, member.organisation, 2)
        player = consortium.players[node]
        player.joined = 1
        player.open(2)
        player.share()
    call = (HERE, "LeaveOut", P, "node01", "silent")
    consortium.admin2.submit(*call, time=later(consortium))
    found = consortium.admin3.submit(*call, time=later(consortium))
    assert (found["voted"], found["change"]) == (["Org2MSP", "Org3MSP"], 4)
    for node in ("node03", "node05"):
        consortium.players[node].complete()
    assert status(consortium)["iteration"] == 3


def test_h10_the_last_node_is_not_left_out(consortium):
    for node, owner in (("node01", consortium.scientist1), ("node03", consortium.scientist2)):
        owner.submit(HERE, "Leave", P, node, 1)
    for node in ("node01", "node03"):
        consortium.players[node].open(0)
    call = (HERE, "LeaveOut", P, "node05", "silent")
    seen(consortium, consortium.admin1, consortium.admin2)
    consortium.admin1.submit(*call, time=later(consortium))
    assert consortium.admin2.code(*call, time=later(consortium)) == "NODE_LAST"


def test_c1_nobody_outside_votes_and_nobody_done_is_left_out(consortium):
    outsider = consortium.member("data-scientist", "Org9MSP", role="data-scientist")
    assert outsider.code(HERE, "LeaveOut", P, "node05", "x") == "ACCESS_ORGANISATION"
    assert outsider.code(HERE, "Agree", P, "Org1MSP", 0, DIGESTS[0]) == "CHANGE_UNKNOWN"
    assert consortium.nodes["node01"].code(HERE, "LeaveOut", P, "node05", "x") == "ACCESS_ROLE"
    assert consortium.admin1.code(HERE, "LeaveOut", P, "node09", "x") == "NODE_UNKNOWN"
    assert consortium.admin1.code(HERE, "LeaveOut", P, "node05", "\u202ex") == "IMAGE_TEXT"
    assert consortium.auditor1.evaluate(EXECUTION, "ListTasks", P)["items"] == []


@pytest.mark.parametrize(
    "call",
    [("LeaveOut", P, "node05", "silent"), ("LeaveOutOrganisation", P, "Org3MSP", "silent"), ("Votes", P)],
    ids=lambda call: call[0],
)
def test_e12_same_vote_gives_the_same_bytes_on_every_peer(consortium, call):
    consortium.players["node05"].open(0)
    leave_out(consortium, consortium.admin2)
    first, second = (consortium.admin1.endorse(HERE, *call, tx_id="t") for _ in range(2))
    assert first.status == 200, first.message
    assert first.bytes == second.bytes


def test_h10_an_organisation_one_of_whose_nodes_was_there_lately_is_not_silent():
    """The node owes nothing any more, so it is no part of what is owed, and a sign of life all the same."""
    nodes = {"node01": "Org1MSP", "node03": "Org2MSP", "node05": "Org3MSP", "node06": "Org3MSP"}
    once = {"steps": changed("steps", 0, "iterations", 1)["steps"]}
    federation = Federation(THREE | once | {"nodes": nodes, "topology": {"kind": "disconnected"}})
    seen(federation, federation.admin1, federation.admin2, call=(HERE, "LeaveOut", P, "node06", "silent"))
    federation.time += DAY
    player = federation.players["node05"]
    player.open(0)
    player.complete()
    for member in (federation.admin1, federation.admin2):
        call = (HERE, "LeaveOutOrganisation", P, "Org3MSP", "gone")
        vote = member.submit(*call, time=federation.time + timedelta(hours=2))
    assert (vote["change"], vote["vote"]["counts"]) == (None, False)
    *_, left = leave_out(
        federation,
        federation.admin1,
        federation.admin2,
        node="node06",
        time=federation.time + timedelta(hours=2),
    )
    assert left["change"] is not None
