"""What contracts can do: state, batches, ranges, pages, history, calls, events, the caller."""

import json

import pytest

from chaincode.shim import Context, Contract, evaluate, submit, transaction, wire
from chaincode.shim.identity import LONGEST_REMEMBERED, Creator

M = wire.Message
MB = 1024 * 1024
WAIT = 150


def test_get_of_an_absent_key_is_none_not_empty(peer):
    assert peer.run("get", "absent").code == "NOT_FOUND"


def test_put_get_delete(peer):
    peer.submit("put", "a", b"\x00\xff")
    assert peer.run("get", "a").payload == b"\x00\xff"
    assert peer.submit("delete", "a").writes == {"a": None}
    assert peer.run("get", "a").code == "NOT_FOUND"


def test_a_transaction_does_not_read_its_own_writes(peer):
    peer.submit("put", "a", "old")
    assert peer.submit("put_then_get", "a", "new").json == {"before": "old"}
    assert peer.run("get", "a").payload == b"new"


def test_writes_of_a_failed_contract_are_not_sent(peer):
    outcome = peer.run("fail", "refuse", tx="t")
    assert (outcome.status, outcome.code) == (400, "PROBE_REFUSED")
    assert peer.types("t") == ["COMPLETED"]


def test_the_last_write_of_a_key_wins(serve):
    _, peer = serve(Twice())
    assert peer.submit("twice", "k").writes == {"k": b"2", "gone": None}


@pytest.mark.parametrize(("count", "messages"), [(1, 1), (1000, 1), (1001, 2), (2500, 3)])
def test_writes_travel_in_batches_of_the_announced_size(peer, count, messages):
    outcome = peer.submit("put_many", "k", count, 10, tx="t")
    assert len(outcome.writes) == count
    assert peer.types("t") == ["WRITE_BATCH_STATE"] * messages + ["COMPLETED"]


def test_batches_are_cut_by_bytes_before_they_outgrow_a_message(peer):
    outcome = peer.submit("put_many", "k", 40, MB, tx="t")
    assert len(outcome.writes) == 40
    assert peer.types("t").count("WRITE_BATCH_STATE") == 3


def test_multi_key_reads_travel_in_batches_of_the_announced_size(serve):
    _, peer = serve(batch=100)
    peer.submit("put_many", "k", 250, 10)
    one, many = peer.run("get_each", "k", 250), peer.run("get_many", "k", 250, tx="t")
    assert many.json == one.json
    assert many.json["found"] == 250
    assert peer.types("t") == ["GET_STATE_MULTIPLE"] * 3 + ["COMPLETED"]


def test_multi_key_reads_tell_absent_keys_from_present_ones(peer):
    peer.submit("put_many", "k", 3, 10)
    del peer.state["k000001"]
    assert peer.run("get_many", "k", 3).json["found"] == 2


def test_multi_key_read_answered_with_too_few_values_is_refused(peer):
    short = wire.shim.GetStateMultipleResult(values=[b"x"]).SerializeToString()
    peer.script[M.GET_STATE_MULTIPLE] = lambda *_: (M.RESPONSE, short)
    assert peer.run("get_many", "k", 2).code == "MALFORMED"


def test_older_peer_without_ready_payload_is_served_key_by_key(serve):
    _, peer = serve(batch=None)
    outcome = peer.submit("put_many", "k", 3, 10, tx="write")
    assert len(outcome.writes) == 3
    assert peer.types("write") == ["PUT_STATE"] * 3 + ["COMPLETED"]
    peer.submit("delete", "k000000", tx="delete")
    assert peer.types("delete") == ["DEL_STATE", "COMPLETED"]
    assert peer.run("get_many", "k", 3, tx="read").json["found"] == 2
    assert peer.types("read") == ["GET_STATE"] * 3 + ["COMPLETED"]


def test_a_peers_error_is_an_error_and_never_a_value(peer):
    peer.script[M.GET_STATE] = lambda *_: (M.ERROR, b"no ledger context")
    outcome = peer.run("get", "a")
    assert (outcome.status, outcome.code) == (500, "PEER_REFUSED")
    assert "no ledger context" in outcome.message


def test_a_peers_error_to_the_final_writes_fails_the_transaction(peer):
    peer.script[M.WRITE_BATCH_STATE] = lambda *_: (M.ERROR, b"disk full")
    outcome = peer.run("announce", "event", "payload")
    assert (outcome.status, outcome.code, outcome.event) == (500, "PEER_REFUSED", None)


@pytest.mark.parametrize("size", [5 * MB, 20 * MB])
def test_large_values_travel_both_ways(peer, size):
    value = bytes(size - 1) + b"\x01"
    assert peer.submit("put", "big", value).status == 200
    assert peer.run("get", "big").payload == value


def test_a_response_over_the_message_limit_fails_alone(serve, monkeypatch):
    monkeypatch.setattr(transaction, "MAX_MESSAGE", MB)
    _, peer = serve(Huge())
    other = peer.begin("small")
    assert peer.run("huge", MB - 1000).status == 200
    outcome = peer.run("huge", MB)
    assert (outcome.status, outcome.code) == (500, "TOO_LARGE")
    assert other.result(WAIT).status == 200


def test_range_is_half_open_and_ordered(peer):
    peer.state.update(dict.fromkeys("edcba", b"v"))
    assert [item["key"] for item in peer.run("range", "b", "d").json] == ["b", "c"]
    assert [item["key"] for item in peer.run("range", "", "").json] == list("abcde")


def test_long_ranges_are_fetched_part_by_part(serve):
    _, peer = serve(page=10)
    peer.state.update({f"k{n:03d}": b"v" for n in range(35)})
    assert len(peer.run("range", "", "", tx="t").json) == 35
    assert peer.types("t") == ["GET_STATE_BY_RANGE"] + ["QUERY_STATE_NEXT"] * 3 + ["COMPLETED"]


def test_leaving_a_range_early_closes_the_peers_iterator(serve):
    _, peer = serve(page=10)
    peer.state.update({f"k{n:03d}": b"v" for n in range(35)})
    assert len(peer.run("range", "", "", 5, tx="t").json) == 5
    assert peer.types("t") == ["GET_STATE_BY_RANGE", "QUERY_STATE_CLOSE", "COMPLETED"]
    assert not peer._iterators


def test_an_exhausted_range_needs_no_close(peer):
    peer.state["a"] = b"v"
    peer.run("range", "", "", tx="t")
    assert peer.types("t") == ["GET_STATE_BY_RANGE", "COMPLETED"]


def test_pages_follow_one_another_to_the_end(peer):
    peer.state.update({f"k{n}": b"v" for n in range(7)})
    keys, bookmark = [], ""
    while True:
        page = peer.run("range_page", "", "", 3, bookmark).json
        keys += [item["key"] for item in page["items"]]
        bookmark = page["bookmark"]
        if not bookmark:
            break
    assert keys == [f"k{n}" for n in range(7)]


def test_a_bookmark_outside_the_range_is_refused(peer):
    peer.state["secret"] = b"v"
    assert peer.run("range_page", "a", "b", 3, "secret").code == "MISUSE"
    assert peer.run("partial_page", "kind", '["x"]', 3, "\x00other\x00").code == "MISUSE"


@pytest.mark.parametrize("size", ["0", "-1", str(2**31)])
def test_a_page_of_impossible_size_is_refused(peer, size):
    assert peer.run("range_page", "", "", size).code == "MISUSE"


def test_writes_and_pages_do_not_mix(serve):
    _, peer = serve(Mixed())
    assert "writes nothing" in peer.run("write_then_page").message
    assert "read a page" in peer.run("page_then_write").message


def test_partial_composite_keys_match_whole_parts_only(peer):
    for parts in (["x", "1"], ["x", "2"], ["xy", "1"], ["y", "1"]):
        peer.submit("put_part", "kind", json.dumps(parts), "v")
    peer.submit("put", "kind", "a simple key")
    found = peer.run("partial", "kind", '["x"]').json
    assert [item["key"] for item in found] == ["\x00kind\x00x\x001\x00", "\x00kind\x00x\x002\x00"]
    page = peer.run("partial_page", "kind", "[]", 3).json
    assert len(page["items"]) == 3
    assert len(peer.run("partial_page", "kind", "[]", 3, page["bookmark"]).json["items"]) == 1


def test_composite_keys_stay_out_of_simple_ranges(peer):
    peer.submit("put_part", "kind", '["x"]', "v")
    peer.submit("put", "simple", "v")
    assert [item["key"] for item in peer.run("range", "", "").json] == ["simple"]


def test_e19_history_is_newest_first_and_read_in_parts(serve):
    _, peer = serve(page=10)
    for n in range(25):
        peer.submit("put", "a", str(n), tx=f"w{n}")
    peer.submit("delete", "a", tx="gone")
    found = peer.run("history", "a", 0, 100).json
    assert [item["value"] for item in found] == [None, *(str(n) for n in reversed(range(25)))]
    assert found[0]["tx"] == "gone"
    assert [item["value"] for item in peer.run("history", "a", 2, 3).json] == ["23", "22", "21"]
    assert [item["value"] for item in peer.run("history", "a", 9, 3).json] == ["16", "15", "14"]
    assert [item["value"] for item in peer.run("history", "a", 23, 9).json] == ["2", "1", "0"]
    assert peer.run("history", "a", 26, 1).json == peer.run("history", "a", 99, 1).json == []


def test_event_travels_with_the_completed_transaction(peer):
    outcome = peer.submit("announce", "created", b"\x01\x02")
    assert (outcome.event.event_name, outcome.event.payload) == ("created", b"\x01\x02")


def test_a_second_event_is_refused_not_lost(serve):
    _, peer = serve(Twice())
    outcome = peer.run("two_events")
    assert (outcome.code, outcome.event) == ("MISUSE", None)


def test_transient_data_reaches_the_contract_and_not_the_arguments(peer):
    outcome = peer.submit("put_transient", "a", transient={"value": b"secret"})
    assert outcome.writes == {"a": b"secret"}
    assert peer.run("put_transient", "a").code == "NO_TRANSIENT"


def test_call_of_another_chaincode_carries_a_whole_specification(peer):
    seen = []

    def answer(_, message):
        seen.append(wire.parse(wire.chaincode.ChaincodeSpec, message.payload))
        return M.RESPONSE, completed(200, payload=b"hello")

    peer.script[M.INVOKE_CHAINCODE] = answer
    assert peer.run("relay", "other", '["get","k"]', "ch2").payload == b"hello"
    assert seen[0].chaincode_id.name == "other/ch2"
    assert list(seen[0].input.args) == [b"get", b"k"]


def test_error_of_a_called_chaincode_keeps_its_code(peer):
    refused = completed(400, message='{"code":"NOT_YOURS","message":"go away"}')
    peer.script[M.INVOKE_CHAINCODE] = lambda *_: (M.RESPONSE, refused)
    outcome = peer.run("relay", "other", '["get"]')
    assert (outcome.status, json.loads(outcome.message)) == (400, {"code": "NOT_YOURS", "message": "go away"})


def test_error_of_a_called_chaincode_in_plain_text_is_kept(peer):
    peer.script[M.INVOKE_CHAINCODE] = lambda *_: (M.RESPONSE, completed(500, message="boom"))
    outcome = peer.run("relay", "other", '["get"]')
    assert (outcome.status, outcome.code) == (500, "CALL_REFUSED")
    assert "boom" in outcome.message


def test_call_that_the_peer_refuses_is_an_error(peer):
    peer.script[M.INVOKE_CHAINCODE] = lambda *_: (M.ERROR, b"chaincode other not found")
    assert peer.run("relay", "other", '["get"]').code == "PEER_REFUSED"


@pytest.mark.parametrize("name", ["", "a/b", "a b", "../x", "a--b", "ä", "a\n"])
def test_call_with_a_name_that_could_harm_the_peer_is_not_sent(peer, name):
    assert peer.run("relay", name, '["get"]', tx="t").code == "MISUSE"
    assert peer.types("t") == ["COMPLETED"]


def test_call_without_a_function_is_not_sent(peer):
    assert peer.run("relay", "other", "[]").code == "MISUSE"


def test_creator_gives_msp_name_attributes_and_time(peer, make_identity):
    creator = make_identity("node07", {"role": "node", "node": "node07"}, "Org3MSP")
    found = peer.run("whoami", creator=creator, transient={"t": b"1234"}, tx="t").json
    assert (found["msp"], found["name"]) == ("Org3MSP", "node07")
    assert found["attributes"] == {"role": "node", "node": "node07"}
    assert (found["time"], found["tx"], found["channel"]) == ("2026-01-02T03:04:05.678901+00:00", "t", "ch")
    assert found["transient"] == {"t": 4}


def test_the_addressed_chaincode_is_the_one_the_client_signed(serve):
    _, peer = serve(Addressed())
    assert peer.run("addressed", addressed="execution-record").payload == b"execution-record"
    assert peer.run("addressed").payload == b""


def test_c16_certificate_without_attributes_has_none(peer, make_identity):
    assert peer.run("whoami", creator=make_identity()).json["attributes"] == {}


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"attrs":3}', b'{"attrs":{"role":1}}', b"\xff"])
def test_c16_malformed_attributes_are_refused(peer, make_identity, raw):
    assert peer.run("whoami", creator=make_identity("x", raw)).code == "BAD_CREATOR"


@pytest.mark.parametrize("raw", [b"", b"\xff\xff", b"\x0a\x01a\x12\x03PEM"])
def test_c16_creator_that_is_no_certificate_is_refused(peer, raw):
    assert peer.run("whoami", creator=raw).code in ("BAD_CREATOR", "MALFORMED")


def test_c16_creators_with_long_tails_are_not_remembered(make_identity):
    """Whoever adds bytes to its certificate is another creator each time, and none of them takes memory."""
    short = make_identity("node07", {"role": "node"})
    identity = wire.parse(wire.msp.SerializedIdentity, short)
    identity.id_bytes += b"\n" * LONGEST_REMEMBERED
    assert Creator.from_bytes(short) is Creator.from_bytes(short)
    long = identity.SerializeToString()
    assert Creator.from_bytes(long) is not Creator.from_bytes(long)
    assert Creator.from_bytes(long).attributes == Creator.from_bytes(short).attributes == {"role": "node"}


def test_one_call_cannot_change_what_the_next_sees_of_its_caller(make_identity):
    creator = Creator.from_bytes(make_identity("node07", {"role": "node"}))
    with pytest.raises(TypeError):
        creator.attributes["role"] = "admin"


@pytest.mark.parametrize("arguments", [("put", "", "v"), ("put", "k", ""), ("get", ""), ("delete", "")])
def test_keys_and_values_that_fabric_cannot_store_are_refused(peer, arguments):
    assert peer.run(*arguments, tx="t").code == "MISUSE"
    assert peer.types("t") == ["COMPLETED"]


def completed(status, message="", payload=b""):
    answer = wire.response.Response(status=status, message=message, payload=payload).SerializeToString()
    return M(type=M.COMPLETED, payload=answer).SerializeToString()


class Twice(Contract):
    name = "twice"

    @submit
    def twice(self, ctx: Context, key: str) -> None:
        ctx.put(key, b"1")
        ctx.put("gone", b"1")
        ctx.delete("gone")
        ctx.put(key, b"2")

    @submit
    def two_events(self, ctx: Context) -> None:
        ctx.set_event("one")
        ctx.set_event("two")


class Addressed(Contract):
    name = "called"

    @evaluate
    def addressed(self, ctx: Context) -> str:
        return ctx.addressed


class Huge(Contract):
    name = "huge"

    @evaluate
    def huge(self, ctx: Context, size: int) -> bytes:
        return bytes(size)

    @evaluate
    def small(self, ctx: Context) -> str:
        return "small"


class Mixed(Contract):
    name = "mixed"

    @submit
    def write_then_page(self, ctx: Context) -> None:
        ctx.put("a", b"1")
        ctx.range_page("", "", 1)

    @submit
    def page_then_write(self, ctx: Context) -> None:
        ctx.range_page("", "", 1)
        ctx.put("a", b"1")
