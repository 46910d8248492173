"""The codes of what the executor refuses, by class, with their remedies; docs/codes.md is made from them.

A code with one remedy has it as text. A code that comes up in several cases has a remedy for each, under the
name that `case` gives where it is raised; "" is the case without a name. Words in braces are filled in there.
The errors.py of this package, of model/, process/ and ledger/ define the rows of their classes.
"""

from protocol.errors import Rows

_GIVE_ONE = "Give one of the two."
_DOCTOR = "Run `executor doctor`, then try again."
_GATEWAY = "or leave --transport at gateway, which needs nothing of this."
FILE = "Correct the file; docs/federation.md explains every field."

USAGE: Rows = {
    "ACCEPT_DECLINED": "Nothing was sent; accept it when it is what you want.",
    "ACCEPT_TWICE": _GIVE_ONE,
    "ACCEPT_UNSEEN": "Give --digest of what you have read, or --spec FILE; at a terminal you are asked.",
    "AGREEMENT_RANGE": "Give an --agreement from 1 to {most}.",
    "AUDIT_ANCHOR": {
        "": (
            "Give --genesis with the hash of the channel's first block, or --roots with the organisations'"
            " root certificates, from another source than the export."
        ),
        "proof": "Give --file with --genesis, or --roots with the owner's root certificates.",
    },
    "AUDIT_FIGURE": "Name a file that ends in .png or .svg.",
    "AUDIT_SUBJECT": "`executor process list`, `executor audit process PROCESS` name what there is.",
    "AUDIT_FILE": "Name a file that you may read, or a place where you may write.",
    "AUDIT_HEIGHT": "Give --from-height the height of a checkpoint below the channel's, or leave it out.",
    "AUDIT_ROOTS": (
        "Put each organisation's root certificates there in PEM, named by its MSP id and a number:"
        " Org1MSP-0.pem."
    ),
    "CHALLENGE_WHICH": "Name one with --challenger; `executor audit task` shows the challenges of a task.",
    "DATA_PATH": "Write it as data/{{node}}.csv.",
    "COMPARE_MODELS": {
        "": "Name two models or more: with --node or --model, or have more of the process published.",
        "digests": "Give --digest once for each --model, in the same order, or not at all.",
        "nodes": "Give exported files with --model, or nodes with --node.",
        "schema": "Compare models whose processes agreed on the same features.",
    },
    "DIGEST_ALONE": "Give the file with --model, or leave --digest out.",
    "EVIDENCE_FILE": "Name a file that you may read, or a new one where you may write.",
    "EXPLAIN_PLOT": {
        "": "Name a file that ends in .png or .svg.",
        "folder": "Name a file in a folder that is there and that you may write to.",
    },
    "EXPLAIN_ROW": "Give --row the number of a row of the file, from 1 on.",
    "EXPLAIN_VOTE": "See its scores with `executor model predict`; explain boosted models with vote: mean.",
    "EXPORT_EXISTS": {
        "": "Choose another --out, or give --force.",
        "proof": "Give --force to replace it.",
    },
    "HFC_CHANGED": (
        "Let nobody else write there (chmod go-w), or remove it, so that it is made again from locked "
        f"packages, {_GATEWAY}"
    ),
    "HFC_CONFIDENTIAL": "Leave --transport at gateway: it asks the organisations of the process alone.",
    "HFC_HASH": f"Do not install them; use another package index, {_GATEWAY}",
    "HFC_INSTALL": {
        "": f"See that the package index can be reached (PIP_INDEX_URL, HTTPS_PROXY), {_GATEWAY}",
        "not run": f"Try again, {_GATEWAY}",
    },
    "HFC_PYTHON": f"Install Python {{version}}, {_GATEWAY}",
    "IDENTITY_UNKNOWN": {
        "": "Choose one of {known}.",
        "none": "Bring the network up with network/up.sh.",
    },
    "IDENTITY_UNUSABLE": "Enrol it again: remove its folder and run network/up.sh.",
    "IMAGE_NOT_LOCAL": "Build it (`executor image build`), or name a local image with --image.",
    "IMAGE_NOT_PUSHED": "Push the image, or correct the digest.",
    "IMAGE_REFERENCE": (
        "Write NAME:VERSION as `executor image list` shows it, for example attestree/learner:1.2.0."
    ),
    "JUDGE_EVIDENCE": "Give --evidence with the owner's file, or --unopened if there is none.",
    "LAUNCH_NODE": {
        "": "Name one with --node, take all with --all-local, or name another --organisation.",
        "elsewhere": "Add --organisation {home}.",
        "not enrolled": "Enrol it: network/enroll.sh {organisation} {node} node.",
    },
    "LAUNCH_OPTIONS": {
        "": _GIVE_ONE,
        "neither": "Give --process with the one to work for, or --follow for every one that was accepted.",
        "follow": "Leave it out: a service works for all nodes until all is done; docs/service.md.",
    },
    "LEAVE_OUT_WHOM": _GIVE_ONE,
    "LICENCE_FILE": {
        "": "Ask with the text that the process agreed on, byte by byte.",
        "needed": "Give --licence with the file that has its text; its SHA-256 is its name.",
        "none": "Leave --licence out.",
        "file": "Name a file of at most 1 MiB that you may read.",
    },
    "LOGS_SINCE": "Write it as 90s, 15m, 2h or 3d, or as a time: 2026-11-17T20:00:00Z.",
    "MODEL_OTHER": "Name the model that the file holds, or give its file.",
    "NETWORK_INCOMPLETE": "Run network/up.sh.",
    "NODE_BUSY": "Wait until it has ended.",
    "OUT_DIRECTORY": "Name a directory that you may write to.",
    "PAPER_NODES": "Start the network with more: network/up.sh --nodes 20.",
    "ORGANISATION_UNKNOWN": "Choose one of {known}.",
    "REQUEST_UNNAMED": "Name all three as `executor model decide PROCESS` lists them.",
    "SERVICE_BUSY": "Leave it to that one, which works for every process, or stop it first.",
    "SIMULATE_OPTIONS": _GIVE_ONE,
    "IMAGE_BASE": (
        "Build the base from a mirror that has the locked packages (ATTESTREE_DEBIAN_MIRROR, docs/images.md),"
        " or take --any-base."
    ),
    "SOURCES_MISSING": "Run it in a clone that scripts/bootstrap made ready: images are built from sources.",
    "SPEC_FEATURES": "Give the federation file that the process was made from.",
    "SPLIT_DIRECTORY": "Name a directory of its own.",
    "SPLIT_NODES": "Name each node once.",
    "SPLIT_OPTIONS": _GIVE_ONE,
    "TOPOLOGY_EDGES": {
        "": "Give --edge A:B for each pair of neighbours with explicit, and with nothing else.",
        "pair": "Write --edge node01:node02.",
    },
}

OPTION: Rows = {"PARAMETER_RANGE": {"option": "Correct the option; `executor simulate --help` lists them."}}

DEADLINE: Rows = {
    "LEARNER_TIMEOUT": "Give it more time with --timeout, or look for a neighbour that does not share.",
    "WAIT_TIMEOUT": {
        "": "See with `executor process status` who is missing, then run the command again.",
        "watch": "Watch it again, with more --seconds; the ledger goes on without you.",
    },
}

STATE: Rows = {
    "REPLAY_DATA": "Run it on the host that has the node's directory, or give an auditor's --evidence.",
    "REPLAY_TASK": "Choose a task that has shared or completed, and whose process has not changed under it.",
    "STATE_MISMATCH": {"file": "Restore the file from a backup."},
    "STATE_MISSING": "Restore the node's directory from a backup; without it the node can only leave.",
    "TASK_BUSY": "Let the other executor end, or wait until the task's time is over.",
}

INTEGRITY: Rows = {
    "IMAGE_MANIFEST": {
        "": "Publish the image again, as a Docker v2 or OCI manifest for this platform.",
        "index": "Publish the image for this platform.",
    },
    "IMAGE_DIGESTS": {
        "": "Register a new version: the digest of its manifest first, then its image id.",
        "swapped": "Register a new version with the two the right way round; `executor image publish` does.",
    },
    "IMAGE_MISMATCH": {"pushed": "Somebody else may push under this tag; publish again."},
}

# {tail} is what the learner printed last, or nothing.
ROUND: Rows = {
    "EXECUTOR_FAULT": "Launch again; if it comes back, report it with the log of the launch.",
    "FEDERATION_LAUNCH": "See what it said above; the same command goes on where it was.",
    "HOST_FAILED": "Free space, or correct the permissions, where the file is; then try again.",
    "INTERRUPTED": "Launch again: the task begins anew.",
    "LEARNER_FAILED": "See why in its last lines; a launch begins the task anew.{tail}",
    "LEARNER_MEMORY": "Give it more with --memory.{tail}",
    "LEARNER_NO_RESULT": "Do not use this image: it does not keep to docs/formats/broker-v1.md.{tail}",
    "PAPER_DIFFERS": "Look at the processes that are named with `executor audit process`.",
    "PROCESS_ABORTED": "Its record says by whom and why.",
}

ENGINE: Rows = {
    "CONTAINER_GONE": "Somebody removed it; launch the task again.",
    "ENGINE_FAILED": {
        "": "Read what the engine said; executor doctor checks the host.",
        "answer": "Look at the engine's log.",
        "alive": "Look at the engine's log; restart the engine if need be.",
    },
    "ENGINE_IMAGE_STORE": (
        'Use Docker 26 or newer, or set "features": {{"containerd-snapshotter": false}} in daemon.json.'
    ),
    "ENGINE_UNREACHABLE": {
        "": "Start it (scripts/bootstrap), or set DOCKER_HOST to the socket of the engine to use.",
        "denied": "Join the docker group, use a rootless engine, or set DOCKER_HOST to a socket of yours.",
        "context": "`docker context ls` shows those there are; unset DOCKER_CONTEXT for the default.",
    },
    "ENGINE_VERSION": "Install Docker 20.10 or newer.",
    "IMAGE_ARCHIVE": {
        "": "Report the engine's version; Docker 20.10 and newer and Podman 4 are known.",
        "disk": "Free three times the image's size, or let TMPDIR name a directory that has it.",
    },
    "IMAGE_BUILD": {
        "": "Read what the build said last.",
        "script": "Read what it said above.",
    },
    "IMAGE_PUSH": "Check that the registry is up: executor doctor.",
    "IMAGE_UNAVAILABLE": {
        "": "Bring the registry up, or load the image from a copy: what counts is its id on the ledger.",
        "dry run": "Launch without --dry-run, which pulls it, or pull it by that digest.",
        "no copy": "Bring the registry up, or pull the image.",
        "run": "Pull the image by the digest on the ledger; nothing is pulled at run time.",
    },
    "REGISTRY_REFUSED": "Use a registry that serves manifests of up to 4 MiB without credentials.",
    "REGISTRY_UNREACHABLE": "Start the network (network/up.sh), or check the registry's address.",
}

SANDBOX: Rows = {
    "SANDBOX_IMAGE": {
        "": "Build the image without control characters in ENV and VOLUME.",
        "volumes": "Build the image without VOLUME; the container writes nowhere but /tmp.",
    },
    "SANDBOX_LIMITS": "Choose another limit.",
    "SANDBOX_MISMATCH": "Nothing was started. Look for defaults in the engine's configuration.",
    "SANDBOX_MOUNT": {
        "": "Mount {wanted}.",
        "profile": "Make the profile with has_state as the mounts are.",
    },
    "SANDBOX_REFUSED": "Choose limits this host can give, an image with the learner in it, and a free name.",
    "SANDBOX_UNSUPPORTED": {
        "": "Use an engine with the default seccomp profile and all cgroup controllers (docs/sandbox.md).",
        "warning": "Use an engine that enforces every limit (docs/sandbox.md).",
        "engine": "Install Docker in this system, and let DOCKER_HOST lead to it (docs/sandbox.md).",
    },
}

DATASET: Rows = {
    "DATA_CHANGED": "Keep the file as it is until the task is over, then launch again.",
    "DATA_COLUMN": {
        "": (
            "Put the column names on the first line, name the label with --label and columns to leave out "
            "with --drop."
        ),
        "count": "Leave columns out with --drop, or add some.",
        "feature": "Give every feature of the process a column of its name.",
        "index": "Use --drop {name}.",
    },
    "DATA_EMPTY": {
        "": "Give a file with a header and rows.",
        "rows": "Add the rows.",
    },
    "DATA_FILE": {
        "kind": "Name a file of CSV or Parquet.",
        "unnamed": "Name the file with --data.",
    },
    "DATA_FORMAT": {
        "": "Save it as plain CSV in UTF-8.",
        "archive": "Unpack it first.",
        "cut": "Write it again; it may be cut off, encrypted, or of another format.",
        "parquet": "Write it again, uncompressed or with a common codec, and without encryption.",
        "text": "Save it as CSV in UTF-8.",
    },
    "DATA_HEADER": {
        "": "Put the column names on the first line.",
        "name": "Name every column, in at most {most} characters.",
        "numbers": "Add a line with the names.",
        "twice": "Put the column names on the first line, each once.",
    },
    "DATA_LABEL": "Labels are 0 (normal) and 1 (anomalous).",
    "DATA_ROW": "Give every row one cell per column, separated by {delimiter}.",
    "DATA_SCHEMA": (
        "Give the columns of the process in its order, name the label with --label and other columns with "
        "--drop, or give the federation file with --spec and let the columns be found by name."
    ),
    "DATA_SIZE": "Give the node fewer rows, or leave columns out.",
    "DATA_VALUE": {
        "cell": "Leave the cell empty if the value is missing, or scale the column.",
        "null": "Use null if the value is missing, or scale the column.",
        "text": "Use a decimal point, encode categories as numbers, or leave the column out with --drop.",
        "type": "Encode categories, times and nested values as numbers, or leave the column out with --drop.",
    },
}

LEDGER: Rows = {
    "HFC_FAILED": {
        "": f"Try again, {_GATEWAY}",
        "bytes": "Try again.",
    },
    "LEDGER_BLOCK": "Ask another organisation's peer: --organisation.",
    "NETWORK_MISSING": "Start the network with network/up.sh, then check with `executor doctor`.",
}

PHASE: Rows = {
    "LEDGER_UNREACHABLE": "Start the network with network/up.sh, or check with `executor doctor`.",
    "LEDGER_TIMEOUT": "The peers are slow or cut off; run `executor doctor`, then try again.",
    "LEDGER_CONFLICT": "Others write the same records just now; nothing was written, so try again.",
    "LEDGER_ANSWER": "Compare the versions of this client and of the chaincode with `executor doctor`.",
    "PEERS_DISAGREE": (
        "Believe none of them: compare the peers with `executor doctor`, and try again once they agree. "
        "A transaction that is named here may be on the ledger."
    ),
    "TRANSACTION_ALTERED": "Do not use the peer that is named: what it brought to be signed was forged.",
    "TRANSACTION_INVALID": "Nothing was written; run `executor doctor` to compare the peers.",
    "TRANSACTION_TOO_LARGE": "Send less in one transaction: fewer or smaller estimators.",
    "EVALUATE_FAILED": _DOCTOR,
    "ENDORSE_FAILED": f"Nothing was written. {_DOCTOR}",
    "SUBMIT_FAILED": f"Nothing was written. {_DOCTOR}",
    "COMMIT_UNKNOWN": "Ask for the transaction again before repeating it: it may still be committed.",
    "EVENTS_FAILED": _DOCTOR,
}

ACCESS: Rows = {
    "ACCESS_DENIED": "Use an identity that the organisation's CA issued and did not revoke, within its time.",
}

MODEL: Rows = {
    "MODEL_ALTERED": {
        "": "Do not use it; ask another organisation's peer, and compare with the process's audit.",
        "file": "Do not use it; export it again with `executor model export`, and compare the two.",
        "bytes": (
            "Do not use it unless its export's digest, given with --digest, confirms it: another version of "
            "numpy or onnx may have written it, or somebody else."
        ),
    },
    "MODEL_EXPORT": {
        "": "Export JSON and npz instead, and report this with the versions of onnx and onnxruntime.",
        "digest": "Report this with the model.",
        "empty": "Export a model that has learned something.",
    },
    "MODEL_FILE": {
        "": "Export it again with `executor model export`.",
        "missing": "Take all files of the export together, or export it again with `executor model export`.",
        "path": "Name a model.json that `executor model export` wrote.",
    },
    "MODEL_OPTIONS": "Score with that learner; how its trees vote is not known here.",
}

# Each fault of a file has a remedy of its own; these are for what has none.
FEDERATION: Rows = {
    "FEDERATION_FILE": {
        "": "Check the path and its permissions.",
        "kind": "Name a file of YAML or JSON.",
        "size": "Give a federation file, not data.",
    },
    "FEDERATION_MEANING": FILE,
    "FEDERATION_SCHEMA": FILE,
    "FEDERATION_SYNTAX": FILE,
}

_NEW_EXPORT = "Ask for another export, from another organisation too: `executor audit export`."
BUNDLE: Rows = {
    "BUNDLE_BEGINNING": "Give --from with the checkpoint of this height, or ask for an export of all blocks.",
    "BUNDLE_BLOCKS": _NEW_EXPORT,
    "BUNDLE_FORMAT": _NEW_EXPORT,
    "BUNDLE_MEMBER": "Do not unpack it: it is no export of this program, or somebody has added to it.",
    "BUNDLE_SIZE": _NEW_EXPORT,
    "BUNDLE_TRUNCATED": _NEW_EXPORT,
    "CHECKPOINT_AHEAD": "Ask for a newer export: this one ends before what was verified already.",
    "CHECKPOINT_FORMAT": "Verify from the first block, with --genesis, and write another: --checkpoint.",
    "PROOF_FILES": "Take the folder as `executor model prove` left it, with nothing added.",
    "PROOF_FORMAT": "Ask the model's owner for another proof: `executor model prove`.",
    "STATEMENT_FORMAT": "Ask the organisation for another one: `executor audit attest`.",
    "BUNDLE_VERSION": "Verify it with the version of this program that made it.",
}

EVIDENCE: Rows = {
    "EVIDENCE_FORMAT": "Ask the task's owner for the file again: `executor answer` writes it.",
    "EVIDENCE_OPENS": "Ask the task's owner for what it committed to; the verdict on this is `unopened`.",
    "EVIDENCE_OTHER": "Take the file whose SHA-256 the owner's answer names; ListChallenges shows it.",
}

REPLAY: Rows = {
    "REPLAY_DIFFERS": "Look for other data or another state; without any, nobody ran the task as recorded.",
}

AUDIT: Rows = {
    "PROOF_REFUSED": "Sign as the node that published the model, what `executor model export` wrote.",
    "AUDIT_VIOLATION": "Compare with an export of another organisation's peer, and tell its auditors.",
    "AUDIT_FAILED": "Compare with an export of another organisation's peer; whoever altered it shows.",
}
