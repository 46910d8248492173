"""What docs/ledger.md says about the events and the records of the execution record."""

_TASK = "version, process, node, iteration, organisation, attempt, state"
_BY = "who did it: organisation, identity, role, certificate, time, transaction"
_SIGNED = "payload_digest, signature in hex, and `by`"

EVENTS = {
    "TaskOpened": f"a task committed to its key, code and inputs: {_TASK}, expires",
    "TaskShared": f"a node offered estimators: {_TASK}, share (digest), offered and created (how many)",
    "TaskCompleted": f"a task completed and its node advanced: {_TASK}, result (digest), ensemble_digest",
    "TaskFailed": f"a task was closed without result: {_TASK}, code",
    "TaskExpired": f"a task was closed because its time was over: {_TASK}, code",
    "TaskRefused": f"a node refused to run a task: {_TASK}, code",
}

VALUES = {
    "task": {
        "process, node, iteration": "which task",
        "organisation": "the MSP id of the node",
        "state": "open, shared, completed, failed, expired or refused",
        "attempt": "1 for the first launch, one more for each later one",
        "after": "the state this attempt followed; absent for the first",
        "image": "name and version of the image, null for a refusal before opening",
        "opening": "the commitment: public_key, image_id, manifest_digest, parameter_hash, schema_digest,"
        " state, data, sandbox",
        "inputs_digest": "the digest of state and data that the task's signatures cover",
        "opened": _BY,
        "expires": "until when results are accepted",
        "share": f"the signature of the SHARE: {_SIGNED}",
        "result": f"the signature of the result: {_SIGNED}",
        "closed": f"code, reason or evidence, and {_BY}; null while nothing closed it",
    },
    "estimator": {
        "process, id": "which estimator",
        "digest": "SHA-256 of the tree's bytes",
        "iteration, attempt": "the task that put it on the ledger",
        "organisation, image": "of that task",
        "n_nodes, depth, bytes": "the size of the tree",
        "tree": "the bytes of the tree (estimator-v1) in base64",
        "by": _BY,
    },
    "slot": {
        "process, recipient, sender": "whose slot, and who offers",
        "iteration": "the sender's iteration",
        "share": "digest of the share",
        "ids": "the estimators offered, best first",
    },
    "share": {
        "process, node, iteration, organisation": "the task that offered",
        "ids": "the estimators offered, best first",
        "created": "those of them that this share put on the ledger",
        "recipients": "the neighbours in this iteration",
        "signed": _SIGNED,
    },
    "result": {
        "process, node, iteration, organisation, attempt, image": "the completed task",
        "share": "digest of what it offered, null for a task without neighbours",
        "created": "id and digest of every tree of this FIT, shared or not",
        "slots": "sender, iteration and share of each slot read, what was taken of it, what refused and why",
        "ensemble": "id and digest of each estimator after CROP, by ascending id",
        "ensemble_digest": "SHA-256 over them",
        "state": "digest of the state the round left; the next task must start from it",
        "metrics": "figures of the round, fractional ones as text",
        "signed": _SIGNED,
    },
    "head": {
        "iteration": "the node's last completed iteration",
        "next_counter": "the counter of its next estimator",
        "state, ensemble_digest": "of that iteration",
    },
    "creation": {
        "digest": "SHA-256 of the tree that FIT announced under this id",
        "iteration": "the iteration of that FIT",
    },
    "offer": {
        "sender, iteration": "the share that offered the estimator",
        "place": "its rank in the share, from 0",
    },
    "taken": {"node, iteration": "who took the estimator from a slot, and when last"},
    "refusal": {
        "process, node, iteration, attempt, organisation": "the task that was not run",
        "code, reason, evidence": "why, and what was found",
        "by": _BY,
    },
    "taskkey": {"process, node, iteration, attempt": "the one task that has this public key"},
}
