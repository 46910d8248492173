"""Records made to be large or many: no answer of a peer outgrows a message, and no list becomes dear."""

import base64
import json

import pytest
from support.memory import ledger as peer
from support.memory.federation import EXECUTION, Federation, changed, prepared
from support.memory.scenario import DIGESTS

from chaincode.common import pages
from chaincode.common.records import encode
from chaincode.execution_record import ExecutionRecordContract
from chaincode.image import ImageContract
from chaincode.model import ModelContract
from chaincode.orchestration import OrchestrationContract
from chaincode.shim import StreamError, at_most, transaction
from chaincode.shim.transaction import MAX_MESSAGE
from protocol import canonical
from protocol.agreement.process import Specification
from protocol.digest import Digest
from protocol.errors import EncodingError
from protocol.identifiers import EstimatorId
from protocol.ledger import keys
from protocol.ledger.estimators import TakenRecord, TreeRecord, TwinRecord
from protocol.ledger.images import ImageRecord, RebuildRecord
from protocol.ledger.models import AccessRecord, MemberRecord
from protocol.ledger.processes import OpenProcesses, ProcessRecord, ProgressRecord, shelf_of
from protocol.ledger.tasks import HISTORIES, Head, SlotRecord, TaskRecord

HERE, P = "orchestration", "fraud-2026"
CONTRACTS = (ImageContract, OrchestrationContract, ExecutionRecordContract, ModelContract)
KINDS = {kind for contract in CONTRACTS for kind in contract.values.values()}
KEYS_AT_ONCE = 1000
"""What a peer lets a message ask for."""
EDGES = [[f"node{one:03d}", f"node{other:03d}"] for one in range(200) for other in range(one)]
HEAVY = {
    "nodes": {f"node{number:03d}": "Org3MSP" for number in range(200)},
    "organisations": ["Org3MSP"],
    "topology": {"kind": "explicit", "edges": EDGES},
}


@pytest.fixture
def federation():
    return prepared()()


def heavy(process):
    return changed("process", process) | HEAVY


def copies(federation, chaincode, key_of, raw, count):
    """Put a record under many keys; its bytes name the first of them by number."""
    for number in range(count):
        federation.state[chaincode, key_of(number)] = raw(number)


def test_a_flood_of_heavy_proposals_ends_no_stream_and_hides_no_running_process(federation):
    """One organisation by itself proposes so much that two hundred of its records fill a message."""
    federation.scientist3.submit(HERE, "Create", heavy("aaa-000"))
    first = federation.state[HERE, keys.process("aaa-000")]
    assert len(first) * 350 > MAX_MESSAGE
    copies(
        federation,
        HERE,
        lambda number: keys.process(f"aaa-{number:03d}"),
        lambda number: first.replace(b"aaa-000", b"aaa-%03d" % number),
        350,
    )
    found = federation.auditor1.evaluate(HERE, "List", "running", 1000)
    assert ([item["process"] for item in found["items"]], found["bookmark"]) == ([P], "")
    proposed = federation.auditor1.evaluate(HERE, "List", "proposed", 1000)
    assert [item["process"] for item in proposed["items"]] == ["aaa-000"]


def test_changes_made_to_be_large_end_no_stream(federation):
    ask = federation.admin1.submit(HERE, "ChangeTopology", P, 1, {"kind": "full"})
    federation.agree(federation.admin2, ask)
    first = json.loads(federation.state[HERE, keys.change(P, 0)])
    first["subject"] = {"kind": "explicit", "edges": EDGES}
    raw = canonical.encode(first)
    count = MAX_MESSAGE // len(raw) + 1
    copies(
        federation,
        HERE,
        lambda number: keys.change(P, number),
        lambda number: raw.replace(b'"number":0', b'"number":%d' % number),
        count,
    )
    found = federation.auditor1.evaluate(HERE, "Changes", P, 1000)
    assert [item["number"] for item in found["items"]] == [0]
    following = federation.auditor1.evaluate(HERE, "Changes", P, 1000, found["bookmark"])
    assert [item["number"] for item in following["items"]] == [1]


@pytest.fixture
def tight(monkeypatch):
    """Messages of 2 MiB, so that a test needs not a hundred of them to meet the limit."""
    monkeypatch.setattr(peer, "MAX_MESSAGE", (2 << 20) + 1000)
    monkeypatch.setattr(transaction, "ANSWER_BYTES", 2 << 20)


def test_trees_made_to_be_large_end_no_stream_when_many_are_asked_for(federation, tight):
    tree = base64.b64encode(bytes(300_000)).decode()
    ids = [EstimatorId("node01", number) for number in range(10)]
    for estimator_id in ids:
        record = TreeRecord(estimator_id, Digest.of(b""), tree)
        federation.state[EXECUTION, keys.sharedtree(P, estimator_id)] = canonical.encode(record.to_dict())
    found = federation.admin1.evaluate(EXECUTION, "Estimators", P, [str(each) for each in ids])
    assert len(found["estimators"]) == 10


def test_the_channel_in_memory_loses_its_stream_as_a_peer_does(federation, monkeypatch):
    monkeypatch.setattr(peer, "MAX_MESSAGE", 100)
    with pytest.raises(StreamError, match="ends the stream"):
        federation.auditor1.evaluate(HERE, "Get", P)


# What records may have, and what is read at once


@pytest.mark.parametrize("kind", sorted(KINDS, key=str), ids=lambda kind: kind.__name__)
def test_as_many_as_are_asked_for_fit_into_a_message_however_large_each_is(kind):
    at_once = min(at_most(kind.max_bytes), KEYS_AT_ONCE)
    assert at_once * kind.max_bytes < MAX_MESSAGE * 3 // 4


PARTS = {
    ProcessRecord,
    ProgressRecord,
    ImageRecord,
    RebuildRecord,
    AccessRecord,
    TaskRecord,
    SlotRecord,
    Head,
}
"""Kinds that are written again and have a history, which a peer sends in parts of a hundred."""
RANGES = {MemberRecord, TakenRecord, TwinRecord}
"""Kinds that are read as a whole range, in such parts too."""
ONCE = {"share", "result"}
"""Written once: their history has one change."""


@pytest.mark.parametrize("kind", sorted(PARTS | RANGES, key=str), ids=lambda kind: kind.__name__)
def test_a_hundred_changes_of_a_record_fit_into_a_message(kind):
    overhead = 1_000
    assert peer.PART * (kind.max_bytes + overhead) < MAX_MESSAGE


def test_every_history_is_of_a_kind_that_fits():
    assert {kind for name, kind in HISTORIES.items() if name not in ONCE} <= PARTS


def test_a_specification_that_leaves_no_room_for_what_comes_later_is_refused(federation):
    names = [f"{number:03d}".rjust(64, "n") for number in range(120)]
    edges = [[one, other] for at, one in enumerate(names) for other in names[:at]]
    heavier = {
        "nodes": dict.fromkeys(names, "Org3MSP"),
        "organisations": ["Org3MSP"],
        "topology": {"kind": "explicit", "edges": edges},
    }
    code = federation.scientist3.code(HERE, "Create", changed("process", "second") | heavier)
    assert code == "PROCESS_VALUE"
    assert len(Specification.from_dict(heavy("second")).to_bytes()) < ProcessRecord.max_bytes


def test_a_record_that_is_larger_than_its_kind_may_be_is_not_written():
    """Whoever reads many at once relies on it."""
    long = OpenProcesses("Org1MSP", 0, ("x" * 64,) * 1000)
    with pytest.raises(EncodingError) as refused:
        encode(long)
    assert refused.value.code == "RECORD_SIZE"


# Lists that match little


def flooded(federation, count):
    """Another organisation's images, all of whose names sort before the one that is looked for."""
    federation.scientist1.submit("image", "Register", "aaa", "0", *DIGESTS[1:3], "registry.example/aaa")
    raw = federation.state["image", keys.image("aaa", "0")]
    copies(
        federation,
        "image",
        lambda number: keys.image("aaa", str(number)),
        lambda number: raw.replace(b'"version":"0"', b'"version":"%d"' % number),
        count,
    )
    federation.scientist2.submit("image", "Register", "zzz", "1", *DIGESTS[1:3], "registry.example/zzz")


def walk(federation):
    """Follow the bookmarks; returns what each page lists."""
    pages_, bookmark = [], None
    while bookmark != "":
        answer = federation.auditor2.evaluate("image", "List", "Org2MSP", 50, bookmark or "")
        pages_.append([item["image"]["name"] for item in answer["items"]])
        bookmark = answer["bookmark"]
    return pages_


def test_a_list_that_matches_little_looks_at_so_many_records_in_one_call(federation):
    flooded(federation, pages.MAX_SCAN + 500)
    assert walk(federation) == [[], ["zzz"]]


def test_a_list_that_matches_nothing_yet_stops_by_weight(federation, monkeypatch):
    flooded(federation, 30)
    size = len(federation.state["image", keys.image("aaa", "10")])
    monkeypatch.setattr(pages, "MAX_SCAN_BYTES", 10 * size)
    found = walk(federation)
    assert found[:3] == [[], [], []]
    assert found[-1] == ["zzz"]


def test_all_votes_are_read_however_many_fit_into_a_page(federation, monkeypatch):
    monkeypatch.setattr(pages, "MAX_BYTES", 1)
    for node in ("node03", "node04"):
        federation.admin1.submit(HERE, "LeaveOut", P, node, "silent")
    assert len(federation.auditor1.evaluate(HERE, "Votes", P)["absences"]) == 2


# Open processes


def on_one_shelf(count):
    """Ids of processes that count on one shelf."""
    found, wanted = [], None
    for number in range(100_000):
        name = f"flood-{number}"
        shelf = shelf_of(name)
        wanted = shelf if wanted is None else wanted
        found += [name] if shelf == wanted else []
        if len(found) == count:
            return found
    raise AssertionError


def test_an_organisation_has_so_many_open_processes_and_no_more(federation, monkeypatch):
    monkeypatch.setattr("chaincode.orchestration.process.MAX_ON_SHELF", 2)
    first, second, third = on_one_shelf(3)
    for name in (first, second):
        federation.create(changed("process", name))
    call = (HERE, "Create", changed("process", third))
    assert federation.scientist1.code(*call) == "PROCESS_QUOTA"
    federation.scientist2.submit(*call)  # another organisation has shelves of its own
    federation.admin1.submit(HERE, "Abort", first, "comes to nothing")
    federation.create(changed("process", on_one_shelf(4)[-1]))


def test_running_processes_count_too(federation, monkeypatch):
    monkeypatch.setattr("chaincode.orchestration.process.MAX_ON_SHELF", 1)
    first, second = on_one_shelf(2)
    federation.create(changed("process", first))
    for admin in (federation.admin1, federation.admin2):
        admin.submit(HERE, "Accept", first)
    federation.admin1.submit(HERE, "Start", first)
    assert federation.scientist1.code(HERE, "Create", changed("process", second)) == "PROCESS_QUOTA"


def test_two_who_propose_at_the_same_time_do_not_meet(federation):
    shelves = {shelf_of(name): name for name in ("one", "two", "three")}
    block = [
        federation.scientist1.endorse(HERE, "Create", changed("process", name)) for name in shelves.values()
    ]
    assert len(shelves) > 1
    assert federation.commit(block) == ["VALID"] * len(shelves)


def standing(federation):
    return {
        key.removeprefix(keys.SEPARATOR).split(keys.SEPARATOR)[1]
        for space, key in federation.state
        if space == HERE and key.startswith(keys.prefix("brief")) and P in key
    }


def test_a_process_is_listed_under_the_status_that_it_has_and_no_other():
    federation = Federation(started=False)
    seen = [standing(federation)]
    for admin in (federation.admin1, federation.admin2):
        admin.submit(HERE, "Accept", P)
    federation.admin1.submit(HERE, "Start", P)
    seen.append(standing(federation))
    for admin in (federation.admin1, federation.admin2):
        admin.submit(HERE, "Abort", P, "over")
    assert [*seen, standing(federation)] == [{"proposed"}, {"running"}, {"aborted"}]


def test_who_joined_with_a_node_is_listed_with_the_process(federation):
    ask = federation.admin1.submit(HERE, "Join", P, "node05", "Org3MSP", 1)
    for admin in (federation.admin2, federation.admin3):
        federation.agree(admin, ask)
    (found,) = federation.auditor1.evaluate(HERE, "List", "running")["items"]
    assert found["organisations"] == ["Org1MSP", "Org2MSP", "Org3MSP"]
