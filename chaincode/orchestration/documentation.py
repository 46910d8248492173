"""What orchestration announces and stores, in words; docs/ledger.md is made from it."""

EVENTS = {
    "ProcessCreated": "a process was proposed: process, specification_digest, organisation",
    "ProcessAccepted": "an organisation accepted: process, organisation, missing (those still to accept)",
    "ProcessStarted": "a process runs: process",
    "ProcessChanged": "a change was asked for or agreed to: process, number, kind, iteration, organisation,"
    " holds",
    "ProcessCompleted": "every active node is done: process",
    "ProcessAborted": "a process was given up: process, organisation",
}
VALUES = {
    "process": {
        "version": "1, the version of this record",
        "process": "the process id",
        "status": "proposed, running, completed or aborted",
        "specification": "what was agreed, with every default written out (docs/formats/process-v1.md)",
        "specification_digest": "SHA-256 of the canonical specification",
        "created": "provenance of the proposal",
        "accepted": "by organisation, provenance of its acceptance",
        "started": "null, or provenance of the start",
        "ended": "null, or provenance of the end with its reason",
        "change_count": "how many changes were ever asked for",
        "changes": "of each change version, number, kind, iteration, subject, asked, agreed, needed, holds",
    },
    "progress": {
        "version": "1, the version of this record",
        "process": "the process id",
        "node": "the node",
        "iteration": "the last iteration the node completed",
        "updated": "provenance of the completion",
    },
}
