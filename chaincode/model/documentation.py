"""What docs/ledger.md says about the events and the records of the model chaincode."""

_BY = "who did it: organisation, identity, role, certificate, time, transaction"

EVENTS = {
    "ModelPublished": "a node published its model: version, process, node, organisation, digest, estimators"
    " (how many)",
    "AccessGranted": "an organisation may read a model: version, process, node, owner, organisation, expires",
    "AccessRevoked": "an organisation may no longer read a model: version, process, node, owner,"
    " organisation, expires (null)",
}

VALUES = {
    "model": {
        "process, node, owner": "whose model, and the MSP id that owns it",
        "iteration, image": "of the task whose ensemble it is",
        "result": "payload digest of that task's signed result",
        "estimators": "id and digest of each estimator, by ascending id",
        "digest": "the ensemble digest that the task signed",
        "metrics": "figures of the model, fractional ones as text",
        "stored": "ids of the trees that were never shared and are kept with the model",
        "published": _BY,
    },
    "access": {
        "process, node, owner": "which model",
        "organisations": "who may read it beside the owner: expires (null for never) and `by`",
        "change": f"what changed last: action (publish, grant, revoke), organisation, expires, and {_BY}",
    },
    "tree": {
        "id, digest": "which estimator, and the SHA-256 of its bytes",
        "tree": "the bytes of the tree (estimator-v1) in base64",
    },
    "member": {"node": "the node whose model holds the estimator"},
}
