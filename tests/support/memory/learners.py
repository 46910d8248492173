"""Learners on the channel in memory: every share and result passes the real contracts."""

import base64
import io
import threading

import numpy as np

from learner.run import run_task
from protocol.broker.answers import Offer, SlotsAnswer, TaskAnswer
from protocol.broker.messages import Answer, Verb
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.task.result import TaskResult
from protocol.task.state import StateRecord
from protocol.task.table import Table
from protocol.trees.estimator import Estimator
from protocol.trees.limits import TreeLimits
from protocol.trees.share import Share
from protocol.trees.tree import Tree
from support.memory.broker_double import serving
from support.memory.federation import EXECUTION, Federation
from support.memory.scenario import changed

N_FEATURES = 4
LIMITS = TreeLimits(N_FEATURES)
PARAMETERS = {
    "n_new": 4,
    "n_max": 8,
    "n_share": 3,
    "seed": 42,
    "limits": {"n_features": N_FEATURES},
    "schema_digest": f"sha256:{'5' * 64}",
    "options": {"home_check": None},
}
ROUNDS = 3
# How long a neighbour may take before it counts as lost; a busy machine is slow, not wrong.
WAIT = 150


def specification(**step_changes):
    """Four nodes on a ring, three rounds; a test changes the one step."""
    made = changed("steps", 0, "parameters", PARAMETERS)
    made["steps"][0] |= {"iterations": ROUNDS} | step_changes
    return made


RING = specification()


def table_of(seed, rows=120):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, N_FEATURES)).astype(np.float32)
    X[rng.random(X.shape) < 0.02] = np.nan
    y = (np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) > 1.6).astype(int)
    return Table(X, y)


class Channel:
    """A federation whose nodes learn in threads, one broker and one directory each."""

    def __init__(self, specification, directory, federation=None):
        self.federation = federation or Federation(specification)
        self.turn, self.failures = threading.Condition(), []
        self.model, self.nodes = [], {}
        for number, (node, player) in enumerate(sorted(self.federation.players.items())):
            folder = directory / node
            folder.mkdir(parents=True)
            (folder / "rows").write_bytes(table_of(number).to_bytes())
            self.nodes[node] = Node(self, player, folder)

    def play(self, iteration, nodes=None):
        """Let the nodes run one round at the same time; the first failure is raised here."""
        chosen = [self.nodes[node] for node in nodes or self.nodes]
        for node in chosen:
            node.player.open(iteration)

        def run(node):
            try:
                node.run()
            except BaseException as failure:
                with self.turn:
                    self.failures.append(failure)
                    self.turn.notify_all()

        threads = [threading.Thread(target=run, args=(node,)) for node in chosen]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]
        return chosen


class Node:
    """One node: its player on the channel, its directory, and what its learner sent."""

    def __init__(self, channel, player, folder):
        self.channel, self.player, self.folder = channel, player, folder
        self.seeds, self.shares, self.results, self.states, self.said, self.gone = [], [], [], [], [], []
        self.dialogues = []
        """Of each round, the learner's requests and the answers to them."""

    def run(self):
        """Run the round of the task that the player has opened."""
        self.seeds.append(self.player.key.reveal_seed())
        self.dialogues.append([])
        with serving(self.folder, self.answer) as broker:
            key = io.BytesIO(self.seeds[-1])
            run_task(self.folder, key, self.said.append, lambda: self.gone.append(True))
        return broker

    def answer(self, request):
        with self.channel.turn:
            answer = getattr(self, request.verb.value)(request).to_bytes()
        self.dialogues[-1].append((request, answer))
        return answer

    def task(self, request):
        task = self.player.task
        context = self.channel.federation.context(task.node, task.iteration, task.process)
        neighbours = tuple(context["neighbours"])
        return TaskAnswer(task, neighbours, context["parameters"], self.player.commitment).to_answer()

    def share(self, request):
        self.shares.append(request.blobs[0])
        self.submit("Share", "share", request)
        self.channel.turn.notify_all()
        return Answer(Verb.SHARE)

    def slots(self, request):
        task, member = self.player.task, self.player.member
        context = self.channel.federation.context(task.node, task.iteration, task.process)
        if context["synchronous"]:
            complete = self.channel.turn.wait_for(self.offers_are_complete, WAIT)
            assert complete, "a neighbour did not share in time"
            found = self.offers()["slots"]
        else:
            found = member.evaluate(EXECUTION, "Slots", task.process, task.node)["items"]
            found = [slot for slot in found if slot["sender"] in context["neighbours"]]
        names = ("sender", "iteration", "share", "ids")
        offers = tuple(Offer.from_dict({name: slot[name] for name in names}) for slot in found)
        ids = sorted({id_ for offer in offers for id_ in offer.ids})
        return SlotsAnswer(offers, Share(tuple(map(self.estimator, ids))).to_bytes()).to_answer()

    def offers_are_complete(self):
        return self.channel.failures or not self.offers()["missing"]

    def offers(self):
        task = self.player.task
        return self.player.member.evaluate(EXECUTION, "Offers", task.process, task.node, task.iteration)

    def estimator(self, id_):
        found = self.player.member.evaluate(EXECUTION, "Estimators", self.player.task.process, [str(id_)])
        (entry,) = found["estimators"] or [
            entry for entry in self.channel.model if EstimatorId.parse(entry["id"]) == id_
        ]
        return Estimator(id_, Tree.from_bytes(base64.b64decode(entry["tree"]), LIMITS))

    def complete(self, request):
        result, state = request.blobs
        self.submit("Complete", "result", request)
        read = TaskResult.from_bytes(result)
        assert Digest.of(state) == read.state
        self.results.append(result)
        self.states.append(state)
        self.player.state = read.state
        (self.folder / "state").write_bytes(state)
        return Answer(Verb.COMPLETE)

    def submit(self, function, field, request):
        task, raw = self.player.task, request.blobs[0]
        self.player.member.submit(
            EXECUTION, function, task.process, task.node, task.iteration, str(Digest.of(raw)),
            request.signature.hex(), transient={field: raw},
        )  # fmt: skip

    @property
    def state(self):
        return StateRecord.from_bytes(self.states[-1], LIMITS)

    @property
    def result(self):
        return TaskResult.from_bytes(self.results[-1])
