"""The table of codes: documented, reachable, one class each."""

import copy
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from protocol import canonical, errors
from protocol.agreement.image import Image
from protocol.agreement.lifecycle import TASK, TaskState, TaskTransition
from protocol.agreement.process import Specification
from protocol.agreement.topology import Kind, Schedule, Topology
from protocol.broker import frames
from protocol.broker.messages import Request, Verb
from protocol.defence import NOBODY, Quota
from protocol.digest import Digest
from protocol.errors import (
    TABLE,
    AccessError,
    AttestreeError,
    DataError,
    RecordError,
    SignatureError,
    StateError,
    TreeError,
    error_from,
)
from protocol.identifiers import EstimatorId, parse_node
from protocol.ledger import keys
from protocol.signing import SigningKey, VerifyKey, sign, verify
from protocol.task.payload import read_payload
from protocol.task.state import StateRecord
from protocol.task.statement import TaskStatement
from protocol.task.table import Table
from protocol.trees.boosted import Boosted
from protocol.trees.estimator import Estimator
from protocol.trees.share import Share, ShareLimits
from protocol.trees.tree import Tree, TreeLimits

FORMATS = Path(__file__).parents[3] / "docs" / "formats"
PAGE = (FORMATS / "errors.md").read_text(encoding="utf-8")
LIMITS = TreeLimits(2, max_internal=1, max_depth=1)
KEY = SigningKey(bytes(range(32)))
LEAF = Tree.from_arrays([-1], [0.0], [-1], [-1], [0.0])


def arrays(left, right, *, feature=0, threshold=0.0, value=0.0, limits=None):
    n_nodes = len(left)
    return Tree.from_arrays(
        [feature] * n_nodes, [threshold] * n_nodes, left, right, [value] * n_nodes, limits=limits
    )


def tree(raw):
    return Tree.from_bytes(raw, LIMITS)


def share(raw):
    return Share.from_bytes(raw, ShareLimits(1, 100), LIMITS)


def state(raw):
    return StateRecord.from_bytes(raw, LIMITS)


def estimator(creator):
    return Estimator(EstimatorId(creator, 1), LEAF)


def image(repository="registry/learner", description="", image_id=b"configuration"):
    return Image("a", "1", Digest.of(b"manifest"), Digest.of(image_id), repository, description)


def specification(**changes):
    record = {"version": 2, "process": "p", "organisations": ["A"], "nodes": {"n": "A"}, "steps": []}
    return Specification.from_dict(record | {"topology": {"kind": "full"}} | changes)


STUMP = [1, -1, -1], [2, -1, -1]
LEAF_ARRAYS = {"feature": [-1], "threshold": [0.0], "left": [-1], "right": [-1], "value": [0.0]}

# One input for each code, so that no code is a promise that nothing keeps.
TRIGGERS = {
    "DIGEST_SYNTAX": lambda: Digest.parse("x"),
    "DIGEST_ALGORITHM": lambda: Digest.parse("sha512:00"),
    "DIGEST_LENGTH": lambda: Digest.parse("sha256:00"),
    "NAME_TYPE": lambda: parse_node(7),
    "NAME_LENGTH": lambda: parse_node(""),
    "NAME_SYNTAX": lambda: parse_node("A"),
    "COUNTER_RANGE": lambda: EstimatorId("a", -1),
    "COUNTER_SYNTAX": lambda: EstimatorId.parse("a/1"),
    "KEY_SYNTAX": lambda: keys.parse(""),
    "RECORD_TYPE": lambda: canonical.encode({1: 2}),
    "RECORD_FLOAT": lambda: canonical.encode(0.5),
    "RECORD_INTEGER": lambda: canonical.encode(2**53),
    "RECORD_TEXT": lambda: canonical.encode("\0"),
    "RECORD_DEPTH": lambda: canonical.decode(b"[" * 99),
    "RECORD_SIZE": lambda: canonical.decode(b"[]", max_bytes=1),
    "RECORD_DUPLICATE_KEY": lambda: canonical.decode(b'{"a":1,"a":1}'),
    "RECORD_SYNTAX": lambda: canonical.decode(b""),
    "RECORD_NOT_CANONICAL": lambda: canonical.decode(b"[ ]"),
    "RECORD_FIELDS": lambda: TaskStatement.from_dict({}),
    "RECORD_VALUE": lambda: TaskStatement("a", "a", 0, "SHARE", *[Digest.of(b"")] * 4),
    "TREE_LIMITS": lambda: TreeLimits(0),
    "TREE_INPUT": lambda: tree("text"),
    "TREE_EMPTY": lambda: tree(bytes((1, 0, 0, 0))),
    "TREE_CYCLE": lambda: arrays([1, 0, -1], [2, 2, -1]),
    "TREE_SELF_CHILD": lambda: arrays([0, -1, -1], [2, -1, -1]),
    "TREE_SHARED_CHILD": lambda: arrays([1, -1, -1], [1, -1, -1]),
    "TREE_UNREACHABLE": lambda: arrays([-1, -1], [-1, -1]),
    "TREE_CHILD_RANGE": lambda: arrays([1, -1, -1], [3, -1, -1]),
    "TREE_ONE_CHILD": lambda: arrays([1, -1, -1], [-1, -1, -1]),
    "TREE_FEATURE_RANGE": lambda: arrays(*STUMP, feature=-1),
    "TREE_THRESHOLD": lambda: arrays(*STUMP, threshold=float("nan")),
    "TREE_LEAF_VALUE": lambda: arrays(*STUMP, value=2.0),
    "TREE_TOO_DEEP": lambda: arrays(*STUMP, limits=TreeLimits(1, 1, 0)),
    "TREE_TOO_MANY_NODES": lambda: tree(bytes((1, 0, 5, 0))),
    "BOOSTED_TREES": lambda: Boosted.from_arrays(0.0, []),
    "BOOSTED_BASE": lambda: Boosted.from_arrays(1e308, [LEAF_ARRAYS]),
    "BOOSTED_LEAF": lambda: Boosted.from_arrays(0.0, [LEAF_ARRAYS | {"value": [float("nan")]}]),
    "TREE_VERSION": lambda: tree(b"\x80\x04\x95\x00"),
    "TREE_FLAGS": lambda: tree(bytes((1, 8, 1, 0))),
    "TREE_LENGTH": lambda: tree(b""),
    "TREE_SHAPE": lambda: tree(bytes((1, 0, 2, 0))),
    "TREE_NOT_CANONICAL": lambda: tree(b"\x01\x00\x01\x00\xff\x02"),
    "SHARE_VERSION": lambda: share(bytes(3)),
    "SHARE_LENGTH": lambda: share(b""),
    "SHARE_COUNT": lambda: share(b"\x01\x02\x00"),
    "QUOTA_EXCEEDED": lambda: Quota("a", NOBODY, 1.0).check((EstimatorId("b", 1), EstimatorId("b", 2)), 2),
    "SHARE_SIZE": lambda: share(bytes(101)),
    "SHARE_DUPLICATE": lambda: Share((Estimator(EstimatorId("a", 1), LEAF),) * 2),
    "SHARE_INPUT": lambda: share("text"),
    "SIGNATURE_DOMAIN": lambda: sign(KEY, "", b""),
    "SIGNATURE_INPUT": lambda: verify(KEY.verify_key, "a", b"", b""),
    "SIGNATURE_INVALID": lambda: verify(KEY.verify_key, "a", b"", bytes(64)),
    "KEY_LENGTH": lambda: SigningKey(b""),
    "KEY_TEXT": lambda: VerifyKey.parse(""),
    "KEY_WEAK": lambda: VerifyKey(bytes(32)),
    "IMAGE_REPOSITORY": lambda: image(repository="learner"),
    "IMAGE_ONE_DIGEST": lambda: image(image_id=b"manifest").check_registrable(),
    "IMAGE_TEXT": lambda: image(description="\0"),
    "PROCESS_FIELDS": lambda: specification(surplus=1),
    "PROCESS_VALUE": lambda: specification(task_seconds=0),
    "PROCESS_TEXT": lambda: specification(description="\u202egpj.txt"),
    "PROCESS_CONSORTIUM": lambda: specification(organisations=[]),
    "PROCESS_NODES": lambda: specification(nodes={}),
    "PROCESS_STEPS": lambda: specification(steps=[]),
    "TOPOLOGY_KIND": lambda: Topology.from_dict({"kind": "star"}),
    "TOPOLOGY_EDGE": lambda: Topology.explicit([("a", "a")]),
    "PAYLOAD_MISSING": lambda: read_payload(None, "", Digest.of(b"")),
    "PAYLOAD_SIZE": lambda: read_payload(b"ab", "", Digest.of(b""), max_bytes=1),
    "PAYLOAD_DIGEST": lambda: read_payload(b"a", "", Digest.of(b"")),
    "TOPOLOGY_CHANGE": lambda: Schedule(Topology(Kind.FULL), ((0, Topology(Kind.RING)),)),
    "TABLE_VERSION": lambda: Table.from_bytes(bytes(7)),
    "TABLE_LENGTH": lambda: Table.from_bytes(b""),
    "TABLE_SHAPE": lambda: Table.from_bytes(b"\1" + bytes(6)),
    "TABLE_VALUE": lambda: Table(np.full((1, 1), np.inf, np.float32), np.array([0])),
    "TABLE_LABEL": lambda: Table(np.zeros((1, 1), np.float32), np.array([2])),
    "TABLE_INPUT": lambda: Table.from_bytes("text"),
    "NODE_STATE_VERSION": lambda: state(bytes(1)),
    "NODE_STATE_LENGTH": lambda: state(b""),
    "NODE_STATE_SIZE": lambda: state(bytes((16 << 20) + 1)),
    "NODE_STATE_VALUE": lambda: StateRecord("p", "n", 0, -1, 0, (), ()),
    "NODE_STATE_ORDER": lambda: StateRecord("p", "n", 0, 0, 0, (), (estimator("b"), estimator("a"))),
    "NODE_STATE_CREATED": lambda: StateRecord("p", "n", 0, 0, 0, (), (estimator("n"),)),
    "NODE_STATE_INPUT": lambda: state("text"),
    "FRAME_VERSION": lambda: Request.from_bytes(bytes(5)),
    "FRAME_LENGTH": lambda: Request.from_bytes(b""),
    "FRAME_SIZE": lambda: Request.from_bytes(b"\1\0\0\0\xff"),
    "FRAME_HEADER": lambda: Request.from_bytes(b"\1\2\0\0\0{}"),
    "FRAME_VERB": lambda: Request.from_bytes(frames.encode({"verb": "open", "fields": {}})),
    "FRAME_BLOBS": lambda: Request.from_bytes(frames.encode({"verb": "task", "fields": {}}, [b""])),
    "FRAME_FIELDS": lambda: Request(Verb.SHARE).to_bytes(),
    "LIFECYCLE_STATE": lambda: TASK.state("done"),
    "LIFECYCLE_TRANSITION": lambda: TASK.after(TaskTransition.SHARE, TaskState.COMPLETED),
}


# What only a ledger can refuse is reached by the tests of the contracts.
PURE = [code for code, row in TABLE.items() if not issubclass(row.error, AccessError | StateError)]


def test_every_code_has_an_input_that_reaches_it():
    assert sorted(TRIGGERS) == sorted(PURE)


@pytest.mark.parametrize("code", PURE)
def test_the_code_is_reached_with_its_class_cause_and_remedy(code):
    with pytest.raises(TABLE[code].error) as refusal:
        TRIGGERS[code]()
    error = refusal.value
    assert type(error) is TABLE[code].error
    assert error.code == code
    assert error.cause
    assert error.remedy == TABLE[code].remedy
    assert str(error) == f"{code}: {error.cause}. {error.remedy}"


@pytest.mark.parametrize("code", TABLE)
def test_the_documentation_says_what_the_table_says(code):
    rows = re.findall(
        r"^\| `(\w+)` \| (\w+) \| .+ \| (.+) \|$",
        PAGE,
        re.MULTILINE,
    )
    documented = {row[0]: (row[1], row[2]) for row in rows}
    assert documented[code] == (TABLE[code].error.__name__, TABLE[code].remedy)


def test_nothing_is_documented_that_the_table_does_not_have():
    documented = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert documented == list(TABLE)


def test_the_tree_drawn_in_the_file_is_the_tree_of_classes():
    drawn = re.findall(r"[├└]── (\w+)", errors.__doc__)
    # Other packages have branches of their own.
    here = [error for error in DataError.__subclasses__() if error.__module__ == errors.__name__]
    assert drawn == ["AccessError", "StateError", "DataError", *[error.__name__ for error in here]]
    assert {row.error for row in TABLE.values()} == {AccessError, StateError, *here}


def test_files_named_in_remedies_exist():
    for row in TABLE.values():
        for name in re.findall(r"docs/formats/([\w.-]+\.md)", row.remedy):
            assert (FORMATS / name).is_file()


def test_an_error_reported_by_code_is_raised_in_its_class():
    error = error_from("TREE_CYCLE", "node 3 is its own descendant")
    assert type(error) is TreeError
    assert error.remedy == TABLE["TREE_CYCLE"].remedy


def test_a_code_of_a_newer_party_keeps_its_words():
    error = error_from("NEW_CODE", "something new")
    assert type(error) is AttestreeError
    assert (error.code, error.cause) == ("NEW_CODE", "something new")
    assert error.remedy
    assert error_from("NEW_CODE", "something new", "Wait.").remedy == "Wait."


@pytest.mark.parametrize("code", TABLE)
def test_a_message_of_a_chaincode_is_taken_apart_into_cause_and_remedy(code):
    error = errors.error_from_message(code, f"it rains. {TABLE[code].remedy}")
    assert (type(error), error.cause, error.remedy) == (TABLE[code].error, "it rains", TABLE[code].remedy)
    assert errors.error_from_message("NEW_CODE", "it rains. Wait.").cause == "it rains. Wait."


def test_a_code_raised_in_the_wrong_class_or_unknown_is_a_bug():
    with pytest.raises(ValueError, match="belongs to TreeError"):
        RecordError("TREE_CYCLE", "x")
    with pytest.raises(ValueError, match="not in the table"):
        SignatureError("NO_SUCH_CODE", "x")


def test_a_later_branch_may_bring_its_own_code_and_remedy():
    class PeerUnreachableError(AttestreeError):
        pass

    error = PeerUnreachableError("PEER_UNREACHABLE", "no answer", "Start the peer.")
    assert isinstance(error, AttestreeError)
    assert error.remedy == "Start the peer."


class CauseOnlyError(DataError):
    def __init__(self, cause):
        super().__init__("CAUSE_ONLY", cause, "Wait.")


def test_errors_with_a_constructor_of_their_own_cross_process_borders():
    again = copy.copy(CauseOnlyError("it rains"))
    assert (type(again), again.code, str(again)) == (
        CauseOnlyError,
        "CAUSE_ONLY",
        "CAUSE_ONLY: it rains. Wait.",
    )
    assert again.args == ("CAUSE_ONLY", "it rains", "Wait.")


def test_errors_cross_process_borders():
    error = error_from("TREE_CYCLE", "node 3 is its own descendant")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.code, again.cause, again.remedy) == (
        TreeError,
        error.code,
        error.cause,
        error.remedy,
    )


def test_a_refusal_says_its_cause():
    with pytest.raises(TypeError, match="STATE_MISMATCH says no cause"):
        StateError("STATE_MISMATCH", None)
