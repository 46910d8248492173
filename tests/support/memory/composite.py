"""A composite process on the channel in memory: prepare, learn in two iterations, evaluate."""

import copy

from protocol.agreement.step_kind import ranges_digest
from protocol.digest import Digest
from protocol.task.output import Figures, MetricsOutput, SchemaOutput
from protocol.task.result import TaskResult, ensemble_digest
from support.memory.federation import N_FEATURES, N_NEW, Federation
from support.memory.scenario import DIGESTS, IMAGE, NODES, SPECIFICATION, changed

PREPARE, EVALUATE = 0, 3
ITERATIONS = EVALUATE + 1
RANGES = [["-10.0", "10.0"], *[None] * (N_FEATURES - 1)]
OTHER_IMAGE = ("attestree/evaluator", "1.0.0")
GOOD, FAIR = Figures(0.95, 0.875, 0.9), Figures(0.9, 0.75, 0.8)


def composite(**more):
    """The specification of prepare, learn and evaluate, each with an image of its own where that matters."""
    made = copy.deepcopy(SPECIFICATION)
    (learn,) = made["steps"]
    learn |= {"name": "learn", "iterations": 2}
    learn["parameters"]["options"] = {"held_out": "0.25"}
    none = {"n_new": 0, "n_share": 0}
    prepare = {**copy.deepcopy(learn), "name": "prepare", "kind": "prepare", "iterations": 1}
    prepare["parameters"] |= none | {"options": {"ranges": RANGES}}
    evaluate = {**copy.deepcopy(learn), "name": "evaluate", "kind": "evaluate", "iterations": 1}
    evaluate["parameters"] |= none
    evaluate["image"] |= {"name": OTHER_IMAGE[0], "version": OTHER_IMAGE[1]}
    return made | {"steps": [prepare, learn, evaluate]} | more


def altered(step, *path_and_value):
    """The composite specification with one place of a step set to another value."""
    return changed("steps", step, *path_and_value, base=composite())


class Composite(Federation):
    """The composite process, running."""

    def __init__(self, specification=None, started=True):
        super().__init__(specification or composite(), started)
        for player in self.players.values():
            player.joined = 1

    def register(self, **more):
        super().register(*OTHER_IMAGE, **more)
        return super().register(*IMAGE, **more)

    def unlearned(self, node, iteration, output, **changes):
        """The result of a task that does not learn, with its player's ensemble as it was."""
        player = self.players[node]
        kept = player.after = dict(player.ensemble)
        learned = max(0, min(iteration, EVALUATE) - 1)
        fields = {
            "first": learned * N_NEW,
            "created": (),
            "slots": (),
            "ensemble": tuple(kept),
            "ensemble_digest": ensemble_digest(list(kept.items())),
            "state": Digest.of(f"{node} {iteration}".encode()),
            "metrics": {},
            "output": output,
        }
        return TaskResult(**(fields | changes))

    def act(self, node, iteration, output):
        """One whole task that does not learn."""
        player = self.players[node]
        player.open(iteration)
        return player.complete(self.unlearned(node, iteration, output))

    def prepare(self):
        for node in self.players:
            self.act(node, PREPARE, schema_output())

    def prepare_again(self):
        """The last step of a process that ends with one that prepares."""
        for node in self.players:
            self.act(node, EVALUATE, schema_output())

    def learn(self):
        for iteration in range(PREPARE + 1, EVALUATE):
            self.play(iteration)

    def learn_privately(self, largest):
        """Learn, and share no tree that has more splits: models hold larger ones that nobody has seen."""
        for iteration in range(PREPARE + 1, EVALUATE):
            for player in self.players.values():
                player.open(iteration)
                player.share([tree for tree in player.fitted() if tree.tree.n_internal <= largest])
            for player in self.players.values():
                player.complete()

    def evaluate(self):
        for node in self.players:
            self.act(node, EVALUATE, MetricsOutput(GOOD, FAIR))

    def miss_learning(self, node):
        """Let a node of Org1 be away while the others learn, and come back for the evaluation."""
        self.admin1.submit("orchestration", "Leave", self.process, node, 1)
        others = [other for other in self.players if other != node]
        self.prepare()
        self.play(1, others)
        ask = self.admin1.submit("orchestration", "Join", self.process, node, "Org1MSP", EVALUATE)
        assert ask["change"] is not None
        self.play(2, others)

    def finish(self):
        self.publish_all()
        self.admin1.submit("orchestration", "Complete", self.process)


def central():
    """Three organisations, the third of which has one node and opens the steps."""
    nodes = NODES | {"node05": "Org3MSP"}
    three = ["Org1MSP", "Org2MSP", "Org3MSP"]
    return Composite(composite(organisations=three, nodes=nodes, coordinator="Org3MSP"))


def schema_output(**changes):
    fields = {
        "schema": Digest.parse(DIGESTS[5]),
        "ranges": ranges_digest({"ranges": RANGES}),
        "columns": N_FEATURES,
        "holding": N_FEATURES - 1,
    }
    return SchemaOutput(**(fields | changes))


def learned():
    """The composite process before its evaluation."""
    federation = Composite()
    federation.prepare()
    federation.learn()
    return federation
