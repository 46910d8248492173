"""Every code with which a ledger refuses, met on the real contracts: none is a promise that nothing keeps."""

from datetime import timedelta

import pytest
from support.memory.composite import EVALUATE, FAIR, GOOD, PREPARE, Composite, central, schema_output
from support.memory.federation import (
    DIGESTS,
    EXECUTION,
    MODEL,
    N_NEW,
    NODES,
    TWO_ROUNDS,
    Federation,
    changed,
    ended,
    estimators,
    for_all,
    in_base64,
    played,
    prepared,
)
from support.memory.scenario import IMAGE, ORGANISATIONS

from protocol import canonical
from protocol.agreement import collections
from protocol.errors import TABLE, AccessError, StateError
from protocol.identifiers import EstimatorId
from protocol.ledger import keys
from protocol.ledger.challenges import MAX_OPEN, ChallengedTask, OpenChallenges
from protocol.ledger.processes import MAX_ON_SHELF, OpenProcesses, shelf_of
from protocol.task.output import MetricsOutput
from protocol.trees.estimator import Estimator
from protocol.trees.tree import Tree

REFUSALS = [code for code, row in TABLE.items() if issubclass(row.error, AccessError | StateError)]
LEAF = Tree.from_arrays([-1], [0.0], [-1], [-1], [0.0])
P = "fraud-2026"
LATE = timedelta(hours=2)


@pytest.fixture
def running():
    """A federation whose process runs and has done nothing yet."""
    return prepared()()


@pytest.fixture
def proposed(running):
    """The same with a second process, which nobody has accepted."""
    running.create(changed("process", "second"))
    return running


@pytest.fixture
def composite():
    """A process of three steps, two of which do not learn."""
    return prepared(Composite)()


@pytest.fixture
def coordinated():
    """The same with a coordinator that has opened nothing yet."""
    return prepared(central)()


@pytest.fixture
def done():
    """A federation that has done its rounds, and published nothing."""
    return prepared(played)()


@pytest.fixture
def published(done):
    done.players["node01"].publish()
    return done


@pytest.fixture
def completed(published):
    """The same when its process has ended."""
    published.publish_all()
    published.admin1.submit("orchestration", "Complete", P)
    return published


@pytest.fixture
def governed():
    """A process that has ended and lets all decide on its models, each of which may be asked for once."""
    return prepared(for_all)()


@pytest.fixture
def opened(running):
    """The first node, which has opened its first task."""
    running.players["node01"].open(0)
    return running.players["node01"]


@pytest.fixture
def shared(running):
    """The first node, when all have shared in the first iteration."""
    for player in running.players.values():
        player.open(0)
        player.share()
    return running.players["node01"]


def process(function, *arguments, who="admin1", of=P, **more):
    """Call the orchestration chaincode."""
    return lambda federation: getattr(federation, who).code("orchestration", function, of, *arguments, **more)


def model(function, *arguments, who="admin1"):
    """Call the model chaincode about the model of the first node."""
    return lambda federation: getattr(federation, who).code(MODEL, function, P, "node01", *arguments)


def opening(**changes):
    """Open the first node's first task with something else than the ledger asks for."""
    return lambda federation: first(federation).member.code(*first(federation).call_open(0, **changes))


def first(federation):
    return federation.players["node01"]


def challenge(federation):
    federation.auditor2.submit(EXECUTION, "Challenge", P, "node01", 0, [])


def answer(federation):
    challenge(federation)
    federation.admin1.submit(EXECUTION, "AnswerChallenge", P, "node01", 0, "Org2MSP", "Org3MSP", DIGESTS[3])


def judge(federation):
    answer(federation)
    federation.auditor3.submit(EXECUTION, "JudgeChallenge", P, "node01", 0, "Org2MSP", {})


def about_challenge(function, *arguments, who):
    """Call the execution record about the first task of the first node."""
    return lambda federation: getattr(federation, who).code(EXECUTION, function, P, "node01", 0, *arguments)


def one_challenge_too_many(federation):
    key = keys.openchallenges(P, "Org1MSP", "Org2MSP")
    tasks = tuple(ChallengedTask("node01", 0) for _ in range(MAX_OPEN))
    challenge(federation)
    full = OpenChallenges(P, "Org1MSP", "Org2MSP", tasks)
    federation.state[EXECUTION, key] = canonical.encode(full.to_dict())
    return federation.auditor2.code(EXECUTION, "Challenge", P, "node02", 0, [])


def one_process_too_many(channel):
    shelf = shelf_of("second")
    full = OpenProcesses("Org1MSP", shelf, (P,) * MAX_ON_SHELF)
    channel.state["orchestration", keys.openprocesses("Org1MSP", shelf)] = canonical.encode(full.to_dict())
    return channel.scientist1.code("orchestration", "Create", changed("process", "second"))


def after(act, call):
    """Make the call once something has happened."""

    def acted(context):
        act(context)
        return call(context)

    return acted


def request(federation):
    federation.admin3.submit(MODEL, "Request", P, "node01", "to compare")


def vote(federation):
    (asked,) = federation.admin1.evaluate(MODEL, "Requests", P)["items"]
    call = (MODEL, "Decide", P, "node01", "Org3MSP", 0, asked["digest"], True)
    answer = federation.admin1.endorse(*call)
    if answer.status < 400:
        federation.commit([answer])
    return federation.admin1.code(*call)


def retire(federation):
    federation.scientist1.submit("image", "Retire", *IMAGE)


def accept(federation):
    federation.admin1.submit("orchestration", "Accept", "second")


def abort(federation):
    for caller in (federation.admin1, federation.admin2):
        caller.submit("orchestration", "Abort", P, "over")


def ask(federation):
    federation.admin1.submit("orchestration", "ChangeTopology", P, 1, {"kind": "full"})


def learn_and_bring_another_file(federation):
    federation.prepare()
    federation.play(PREPARE + 1)
    player = first(federation)
    return player.member.code(*player.call_open(PREPARE + 2, data=DIGESTS[9]))


def agree_to_what_was_overtaken(federation):
    first, second = (
        federation.admin1.submit("orchestration", "ChangeTopology", P, 1, {"kind": "full"}) for _ in range(2)
    )
    federation.agree(federation.admin2, second)
    return federation.admin2.code(*federation.agreement(first))


def grant(federation):
    federation.admin1.submit(MODEL, "Grant", P, "node01", "Org3MSP")


def without_consent(_):
    """Three organisations, two of which agree on another version."""
    nodes = {"node01": "Org1MSP", "node03": "Org2MSP", "node05": "Org3MSP"}
    federation = Federation(changed("organisations", [*ORGANISATIONS]) | {"nodes": nodes})
    federation.register(version="2")
    asked = federation.admin1.submit("orchestration", "UpdateImage", P, 0, "2")
    federation.agree(federation.admin2, asked)
    player = federation.players["node05"]
    return player.member.code(*player.call_open(0))


def start_what_nobody_rebuilt(federation):
    federation.create(changed("image_attestations", 2) | {"process": "rebuilt"})
    for caller in (federation.admin1, federation.admin2):
        caller.submit("orchestration", "Accept", "rebuilt")
    return federation.admin1.code("orchestration", "Start", "rebuilt")


def let_leave(*nodes):
    def act(federation):
        for node in nodes:
            federation.nodes[node].submit("orchestration", "Leave", P, node, 1)

    return act


def share_alone(federation):
    federation.players["node01"].open(0)
    federation.players["node01"].share()


def start_with_a_thousand_nodes(federation):
    nodes = {f"node{number:04d}": "Org1MSP" for number in range(1000)}
    federation.create(changed("nodes", nodes) | {"process": "large"})
    for caller in (federation.admin1, federation.admin2):
        caller.submit("orchestration", "Accept", "large")
    federation.admin1.submit("orchestration", "Start", "large")


def fail_and_open_again(player):
    player.share()
    player.member.submit(EXECUTION, "Fail", P, "node01", 0, "OOM", "killed")
    player.open(0)


def leaf(counter):
    return (Estimator(EstimatorId("node01", counter), LEAF),)


def key_of_another(player):
    other = player.federation.players["node02"]
    return other.member.code(*other.call_open(0, key=player.key))


def created_otherwise(player):
    first, second, *rest = player.result().created
    return result(created=(second, first, *rest))(player)


def tree_of_a_neighbour(federation):
    """Name a tree of node02, which node01 took, as an own creation."""
    federation.play(0)
    player = first(federation)
    player.open(1)
    taken = max(estimators("node02", 0), key=lambda estimator: estimator.tree.n_internal)
    return player.share_code((Estimator(EstimatorId("node01", N_NEW), taken.tree),))


def tree_never_offered(player):
    return player.share_code(estimators("node03", 0)[:1])


def name_of_another(federation):
    digests = DIGESTS[1], DIGESTS[2]
    return federation.scientist2.code("image", "Register", IMAGE[0], "9", *digests, "registry.example/a")


def share_of_another(player):
    arguments, options = player.call_share()
    return player.federation.nodes["node02"].code(*arguments, **options)


def result(**changes):
    def complete(player):
        good = player.result()
        return player.complete_code(player.result(slots=good.slots, **changes))

    return complete


def with_trees_left_out(federation):
    return first(federation).publish_code(trees=estimators("node01", 0)[4:5])


def trees_that_only_the_node_has(federation):
    federation.admin2.submit(MODEL, "PublishFor", P, "node01")
    return federation.auditor1.code(MODEL, "Trees", P, "node01")


def start_from_a_confidential_model():
    """In an open process."""
    made = ended(changed("steps", 0, "iterations", 1) | {"confidential": True})
    model = made.admin1.evaluate(MODEL, "Get", P, "node01")
    initial = {"process": P, "node": "node01", "digest": model["digest"]}
    return made.scientist1.code(
        "orchestration", "Create", changed("initial_model", initial) | {"process": "b"}
    )


def refuse_the_second_iteration(federation):
    return federation.nodes["node01"].code(EXECUTION, "Refuse", P, "node01", 1, "IMAGE_MISMATCH", {})


def create_for_a_minority(federation):
    made = changed("confidential", True) | {"process": "third", "organisations": ["Org1MSP"]}
    made["nodes"] = {"node01": "Org1MSP"}
    return federation.scientist1.code("orchestration", "Create", made)


def confidential():
    made = Federation(changed("confidential", True, base=TWO_ROUNDS))
    return made.players["node01"]


def share_as_an_argument(_):
    player = confidential()
    player.open(0)
    arguments, options = player.call_share()
    return player.member.code(*arguments, in_base64(options["transient"]["share"]))


def tree_whose_time_is_over(_):
    player = confidential()
    player.open(0)
    player.share()
    ledger, name = player.federation, player.federation.process
    for place in [place for place in ledger.state if "$trees-" in place[0]]:
        del ledger.state[place]
    return ledger.auditor1.code(EXECUTION, "Estimator", name, "node01/0000")


def task_without_a_mark(player):
    ledger, task = player.federation, player.task
    own = f"{EXECUTION}${collections.own(player.member.organisation)}"
    del ledger.state[own, keys.task(task.process, task.node, task.iteration)]
    return player.share_code()


# For each code the fixture it is met in, and the call that meets it.
def comes_to(output):
    """A task of the prepare step that comes to this."""

    def complete(federation):
        player = first(federation)
        player.open(PREPARE)
        return player.complete_code(federation.unlearned("node01", PREPARE, output))

    return complete


def opens(iteration):
    return lambda it: first(it).member.code(*first(it).call_open(iteration))


def open_step(name, who="admin3"):
    return lambda it: getattr(it, who).code("orchestration", "OpenStep", P, name)


TRIGGERS = {
    "ACCESS_ROLE": ("running", process("Start", who="auditor1")),
    "ACCESS_ORGANISATION": ("running", process("Abort", "why", who="admin3")),
    "ACCESS_NODE": ("opened", share_of_another),
    "ACCESS_EXPIRED": (
        "running",
        lambda federation: process("Abort", "why", time=federation.time + timedelta(days=4000))(federation),
    ),
    "ACCESS_CHAINCODE": (
        "running",
        lambda federation: federation.nodes["node01"].code("orchestration", "Advance", P, "node01", 0),
    ),
    "IMAGE_UNKNOWN": ("running", lambda federation: federation.auditor1.code("image", "Get", IMAGE[0], "9")),
    "IMAGE_OWNER": ("running", name_of_another),
    "IMAGE_EXISTS": (
        "running",
        lambda federation: federation.scientist1.code(
            "image", "Register", *IMAGE, DIGESTS[1], DIGESTS[2], "registry.example:5000/attestree/learner"
        ),
    ),
    "IMAGE_CONSENT": ("running", without_consent),
    "IMAGE_RETIRED": (
        "running",
        after(
            retire,
            lambda federation: federation.scientist1.code(
                "orchestration", "Create", changed("process", "other")
            ),
        ),
    ),
    "IMAGE_PIN": (
        "running",
        lambda federation: federation.scientist1.code(
            "orchestration",
            "Create",
            changed("steps", 0, "image", "image_id", DIGESTS[9]) | {"process": "other"},
        ),
    ),
    "IMAGE_REBUILT": (
        "running",
        after(
            lambda federation: federation.auditor2.submit("image", "Attest", *IMAGE, DIGESTS[2]),
            lambda federation: federation.auditor2.code("image", "Attest", *IMAGE, DIGESTS[2]),
        ),
    ),
    "IMAGE_UNATTESTED": ("running", start_what_nobody_rebuilt),
    "PROCESS_UNKNOWN": ("running", process("Get", of="absent")),
    "PROCESS_EXISTS": (
        "running",
        lambda federation: federation.scientist1.code("orchestration", "Create", TWO_ROUNDS),
    ),
    "PROCESS_DIGEST": ("proposed", process("Accept", DIGESTS[0], of="second")),
    "PROCESS_ACCEPTED": ("proposed", after(accept, process("Accept", of="second", who="scientist1"))),
    "PROCESS_UNACCEPTED": ("proposed", after(accept, process("Start", of="second"))),
    "PROCESS_UNFINISHED": ("running", process("Complete")),
    "PROCESS_UNPUBLISHED": ("done", process("Complete")),
    "PROCESS_FINISHED": ("done", process("Abort", "why")),
    "CHANGE_UNKNOWN": ("running", process("Withdraw", 0)),
    "CHANGE_DIGEST": ("running", after(ask, process("Agree", "Org1MSP", 0, DIGESTS[0], who="admin2"))),
    "CHANGE_HOLDS": ("running", after(let_leave("node01"), process("Withdraw", 0))),
    "CHANGE_STALE": ("running", agree_to_what_was_overtaken),
    "CHANGE_LIMIT": (
        "running",
        after(start_with_a_thousand_nodes, process("Join", "node06", "Org1MSP", 2, of="large")),
    ),
    "ITERATION_RANGE": ("running", process("TaskContext", "node01", 2)),
    "ITERATION_ORDER": ("running", refuse_the_second_iteration),
    "NODE_UNKNOWN": ("running", process("TaskContext", "node99", 0)),
    "NODE_ACTIVE": ("running", process("Join", "node01", "Org1MSP", 1)),
    "NODE_INACTIVE": ("running", after(let_leave("node01"), process("Leave", "node01", 1))),
    "NODE_WAITING": ("running", after(share_alone, process("LeaveOut", "node01", "why", who="admin2"))),
    "NODE_LAST": ("running", after(let_leave(*[*NODES][1:]), process("Leave", "node01", 1))),
    "PROCESS_NOT_RUNNING": ("running", after(abort, opening())),
    "TASK_UNKNOWN": (
        "running",
        lambda federation: federation.auditor1.code(EXECUTION, "GetTask", P, "node01", 0),
    ),
    "RECORD_UNVOUCHED": ("opened", task_without_a_mark),
    "PROCESS_COLLECTION": ("running", create_for_a_minority),
    "TREES_CONFIDENTIAL": ("running", share_as_an_argument),
    "HISTORY_DEPTH": ("running", process("History", 10, "1000", who="auditor1")),
    "TREES_GONE": ("running", tree_whose_time_is_over),
    "TASK_EXPIRED": ("opened", lambda player: player.share_code(time=player.federation.time + LATE)),
    "TASK_NOT_EXPIRED": ("opened", lambda player: player.member.code(EXECUTION, "Expire", P, "node01", 0)),
    "KEY_USED": ("opened", key_of_another),
    "IMAGE_MISMATCH": ("running", opening(image_id=DIGESTS[15])),
    "PARAMETERS_MISMATCH": ("running", opening(parameter_hash=DIGESTS[15])),
    "SCHEMA_MISMATCH": ("running", opening(schema_digest=DIGESTS[15])),
    "DATA_MISMATCH": ("composite", learn_and_bring_another_file),
    "STATE_MISMATCH": ("running", opening(state=DIGESTS[15])),
    "ESTIMATOR_UNKNOWN": (
        "running",
        lambda federation: federation.auditor1.code(EXECUTION, "Estimator", P, "node01/0000"),
    ),
    "ESTIMATOR_CONFLICT": ("shared", created_otherwise),
    "ESTIMATOR_NOT_HELD": ("opened", tree_never_offered),
    "ESTIMATOR_COPIED": ("running", tree_of_a_neighbour),
    "ESTIMATOR_COUNTER": ("opened", lambda player: player.share_code(leaf(N_NEW))),
    "SHARE_FIXED": ("opened", after(fail_and_open_again, lambda player: player.share_code(leaf(0)))),
    "SHARE_REQUIRED": ("opened", lambda player: player.complete_code(player.result(slots=()))),
    "RESULT_CREATED": ("shared", result(first=1)),
    "RESULT_SLOT": ("shared", lambda player: player.complete_code(player.result(slots=()))),
    "RESULT_ENSEMBLE": ("shared", result(ensemble=())),
    "RESULT_KIND": ("composite", comes_to(MetricsOutput(GOOD, FAIR))),
    "OUTPUT_MISMATCH": ("composite", comes_to(schema_output(columns=31))),
    "ENSEMBLE_EMPTY": ("composite", after(lambda it: it.miss_learning("node01"), opens(EVALUATE))),
    "STEP_UNOPENED": ("coordinated", opens(PREPARE)),
    "STEP_ORDER": ("coordinated", open_step("learn")),
    "STEP_UNKNOWN": ("coordinated", open_step("elsewhere")),
    "STEP_COORDINATOR": ("running", open_step("learn", who="admin1")),
    "ACCESS_COORDINATOR": ("coordinated", open_step("prepare", who="admin1")),
    "CHALLENGE_OWN": ("done", about_challenge("Challenge", [], who="auditor1")),
    "CHALLENGE_TASK": (
        "opened",
        lambda player: player.federation.auditor2.code(EXECUTION, "Challenge", P, "node01", 0, []),
    ),
    "CHALLENGE_EXISTS": ("done", after(challenge, about_challenge("Challenge", [], who="auditor2"))),
    "PROCESS_QUOTA": ("running", one_process_too_many),
    "CHALLENGE_QUOTA": ("done", one_challenge_too_many),
    "CHALLENGE_UNKNOWN": ("done", about_challenge("JudgeChallenge", "Org2MSP", {}, who="auditor3")),
    "CHALLENGE_AUDITOR": ("done", about_challenge("Challenge", ["Org1MSP"], who="auditor2")),
    "CHALLENGE_ANSWERED": (
        "done",
        after(
            answer,
            about_challenge("AnswerChallenge", "Org2MSP", "Org3MSP", DIGESTS[3], who="admin1"),
        ),
    ),
    "CHALLENGE_UNANSWERED": (
        "done",
        after(challenge, about_challenge("JudgeChallenge", "Org2MSP", {}, who="auditor3")),
    ),
    "CHALLENGE_JUDGED": (
        "done",
        after(judge, about_challenge("JudgeChallenge", "Org2MSP", {}, who="auditor3")),
    ),
    "MODEL_UNKNOWN": ("running", model("Get")),
    "MODEL_EXISTS": ("published", lambda federation: first(federation).publish_code()),
    "MODEL_UNFINISHED": ("running", after(lambda it: it.play(0), lambda it: first(it).publish_code())),
    "MODEL_ESTIMATORS": ("done", lambda federation: first(federation).publish_code(estimators=[])),
    "MODEL_DIGEST": ("done", lambda federation: first(federation).publish_code(digest=DIGESTS[3])),
    "MODEL_CONFIDENTIAL": ("running", lambda _: start_from_a_confidential_model()),
    "MODEL_INCOMPLETE": ("done", trees_that_only_the_node_has),
    "MODEL_TREES": ("done", with_trees_left_out),
    "ACCESS_GRANT": ("published", model("Get", who="auditor3")),
    "GRANT_UNKNOWN": ("published", model("Revoke", "Org3MSP")),
    "GRANT_OWNER": ("published", model("Revoke", "Org1MSP")),
    "GRANT_GOVERNED": ("governed", model("Grant", "Org3MSP")),
    "REQUEST_EARLY": ("published", model("Request", "why", who="admin3")),
    "REQUEST_NEEDLESS": ("completed", model("Request", "why", who="admin2")),
    "REQUEST_LICENCE": ("completed", model("Request", "why", DIGESTS[4], who="admin3")),
    "REQUEST_LIMIT": ("governed", after(request, model("Request", "why", who="admin3"))),
    "REQUEST_UNKNOWN": ("completed", model("Decide", "Org3MSP", 0, DIGESTS[0], True)),
    "REQUEST_DIGEST": ("completed", after(request, model("Decide", "Org3MSP", 0, DIGESTS[0], True))),
    "REQUEST_DECIDED": ("completed", after(request, after(vote, vote))),
    "REQUEST_STALE": ("completed", after(request, after(grant, vote))),
    "REQUEST_VOTED": ("governed", after(request, after(vote, vote))),
    "GRANT_EXPIRY": ("published", model("Grant", "Org3MSP", "2001-01-01T00:00:00.000000Z")),
}


def test_every_refusal_has_its_trigger():
    assert sorted(TRIGGERS) == sorted(REFUSALS)


@pytest.mark.parametrize("code", REFUSALS)
def test_the_refusal_is_met_on_a_contract(code, request):
    fixture, call = TRIGGERS[code]
    assert call(request.getfixturevalue(fixture)) == code
