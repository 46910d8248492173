"""Every refusal of the project: a stable code, its cause in this case, and the remedy.

    AttestreeError
    ├── AccessError             the caller's certificate does not allow it
    ├── StateError              what is on the ledger does not allow it
    └── DataError               the data lies
        ├── DigestError         a hash that is not the one spelling of a SHA-256
        ├── IdentifierError     a name outside the grammar
        ├── EncodingError       bytes that are not the canonical form of anything
        ├── TreeError           a tree that is not a tree, or beyond the limits
        ├── ShareError          a bundle of estimators that breaks its rules
        ├── RecordError         a well-formed record with wrong content
        ├── SignatureError      a key or signature that proves nothing
        ├── LifecycleError      a transition that the life cycle does not have
        ├── ImageError          an image described in words that name no image
        ├── ProcessError        a process specification or topology that contradicts itself
        ├── TableError          bytes or arrays that are not a table of rows and labels
        ├── NodeStateError      bytes that are not a node's state, or a state that contradicts itself
        └── FrameError          bytes that are not a message between learner and broker

`TABLE` has what the ledger and the formats refuse. What fails for another reason (the ledger by phase, the
sandbox) has its own branch under `AttestreeError`, in the package that raises it, which adds its codes with
`define`. Codes are never renamed or given a second meaning.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple


class AttestreeError(Exception):
    """A refusal that a program can act on by `code` and a person by `cause` and `remedy`.

    The remedy is the one defined for the code, or for this `case` of it, with the `values` filled in.
    Only what another party reported brings its own.
    """

    code: str
    cause: str
    remedy: str

    def __init__(
        self, code: str, cause: str, remedy: str | None = None, *, case: str = "", **values: object
    ) -> None:
        row = _DEFINED.get(code)
        if row is None and remedy is None:
            raise ValueError(f"error code {code!r} is not in the table and brings no remedy")
        # The root class is for what another party said, in whatever class it was raised there.
        if row is not None and type(self) is not AttestreeError and not isinstance(self, row.error):
            raise ValueError(f"error code {code} belongs to {row.error.__name__}, not {type(self).__name__}")
        # A person acts by the cause: a refusal without one is a fault of ours, also where no type is checked.
        if not isinstance(cause, str):
            raise TypeError(f"error {code} says no cause")
        self.code = code
        self.cause = cause
        self.remedy = _DEFINED[code].remedies[case].format(**values) if remedy is None else remedy
        super().__init__(code, cause, self.remedy)

    def __str__(self) -> str:
        return f"{self.code}: {self.cause}. {self.remedy}"

    def __reduce__(self) -> tuple[Any, ...]:
        # A subclass may have a constructor of its own; an error still has to cross from a worker process.
        return _rebuild, (type(self), self.code, self.cause, self.remedy)


class AccessError(AttestreeError):
    """The caller's certificate does not allow what was asked."""


class StateError(AttestreeError):
    """What is on the ledger does not allow what was asked, though the caller might."""


class DataError(AttestreeError):
    """The data lies: what was received is not what it claims to be."""


class DigestError(DataError):
    """A text or byte string is not a SHA-256 digest in its one spelling."""


class IdentifierError(DataError):
    """A name does not follow the grammar of its kind."""


class EncodingError(DataError):
    """Bytes are not the canonical encoding of a record."""


class TreeError(DataError):
    """A tree is malformed or beyond the limits agreed for its process."""


class ShareError(DataError):
    """A bundle of estimators breaks the rules of a SHARE."""


class RecordError(DataError):
    """A canonical record has missing, unknown or impossible fields."""


class SignatureError(DataError):
    """A key or a signature proves nothing."""


class LifecycleError(DataError):
    """A transition is asked for that the life cycle does not have."""


class ImageError(DataError):
    """A name, version, digest or repository cannot be that of an image."""


class ProcessError(DataError):
    """A process specification or a topology contradicts itself or exceeds what a process may ask."""


class TableError(DataError):
    """Bytes or arrays are not a table of rows and labels."""


class NodeStateError(DataError):
    """Bytes are not a node's state, or a state contradicts itself."""


class FrameError(DataError):
    """Bytes are not a message between learner and broker, or one that its verb does not allow."""


class Code(NamedTuple):
    """What a code means to a program (the class raised) and to a person (the remedy)."""

    error: type[AttestreeError]
    remedy: str


class Definition(NamedTuple):
    """All that is defined for a code: the class raised, and the remedy for each case in which it is."""

    error: type[AttestreeError]
    remedies: dict[str, str]


Rows = Mapping[str, str | Mapping[str, str]]
"""The codes of a class, each with its remedy, or with one for each case; "" is the case without a name."""


_SENDER = "Ask the sender for the unaltered bytes; they were not made by this protocol version."
_FIT = "Refuse this tree; its creator must FIT within the limits of the process."
_SPECIFICATION = "Correct the field; docs/formats/process-v2.md gives its meaning and range."
_STATE = "Restore the state file whose digest the ledger has; this one is not what a task left."
_BUG = "Refuse this tree; its creator runs code that does not build trees."

TABLE: dict[str, Code] = {
    "DIGEST_SYNTAX": Code(DigestError, "Write the hash as sha256: and 64 lower-case hex digits."),
    "DIGEST_ALGORITHM": Code(DigestError, "Use SHA-256, the only hash of this protocol."),
    "DIGEST_LENGTH": Code(DigestError, "Give the whole hash: 64 hex digits or 32 bytes."),
    "NAME_TYPE": Code(IdentifierError, "Give the name as text."),
    "NAME_LENGTH": Code(IdentifierError, "Choose a name within the length its kind allows."),
    "NAME_SYNTAX": Code(IdentifierError, "Follow the grammar in docs/formats/identifiers-v1.md."),
    "COUNTER_RANGE": Code(IdentifierError, "Use a whole number from 0 to 4294967295."),
    "COUNTER_SYNTAX": Code(IdentifierError, "Pad the counter with zeros exactly as this protocol prints it."),
    "KEY_SYNTAX": Code(IdentifierError, "Build ledger keys with protocol.ledger.keys only."),
    "RECORD_TYPE": Code(
        EncodingError, "Use text, whole numbers, booleans, null, lists and text-keyed objects."
    ),
    "RECORD_FLOAT": Code(EncodingError, "Write the number with canonical.float_text."),
    "RECORD_INTEGER": Code(EncodingError, "Keep whole numbers within 2**53-1 in size."),
    "RECORD_TEXT": Code(
        EncodingError, "Write text as valid UTF-8 in Unicode form NFC, without control characters."
    ),
    "RECORD_DEPTH": Code(EncodingError, "Nest records less deeply."),
    "RECORD_SIZE": Code(EncodingError, "Send a smaller record."),
    "RECORD_DUPLICATE_KEY": Code(EncodingError, _SENDER),
    "RECORD_SYNTAX": Code(EncodingError, _SENDER),
    "RECORD_NOT_CANONICAL": Code(
        EncodingError, "Encode the record with protocol.canonical and sign those bytes."
    ),
    "RECORD_FIELDS": Code(RecordError, "Send exactly the fields that docs/formats/records-v1.md lists."),
    "RECORD_VALUE": Code(RecordError, "Correct the field; docs/formats/records-v1.md gives its range."),
    "TREE_LIMITS": Code(TreeError, "Choose limits that estimator format v1 can hold."),
    "TREE_INPUT": Code(TreeError, "Give one-dimensional arrays of one length and of the documented types."),
    "TREE_EMPTY": Code(TreeError, "Send a single leaf for a tree without splits."),
    "TREE_CYCLE": Code(TreeError, _BUG),
    "TREE_SELF_CHILD": Code(TreeError, _BUG),
    "TREE_SHARED_CHILD": Code(TreeError, _BUG),
    "TREE_UNREACHABLE": Code(TreeError, _BUG),
    "TREE_CHILD_RANGE": Code(TreeError, _BUG),
    "TREE_ONE_CHILD": Code(TreeError, _BUG),
    "TREE_FEATURE_RANGE": Code(
        TreeError, "Compare the feature schema of the sender with that of the process."
    ),
    "TREE_THRESHOLD": Code(TreeError, "Refuse this tree; a threshold is a finite number."),
    "TREE_LEAF_VALUE": Code(TreeError, "Refuse this tree; a leaf holds a probability from 0 to 1."),
    "TREE_TOO_DEEP": Code(TreeError, _FIT),
    "TREE_TOO_MANY_NODES": Code(TreeError, _FIT),
    "BOOSTED_TREES": Code(TreeError, "Refuse this estimator; boost for fewer rounds."),
    "BOOSTED_BASE": Code(TreeError, "Refuse this estimator; its base is no log-odds."),
    "BOOSTED_LEAF": Code(TreeError, "Refuse this estimator; a leaf of it is no log-odds."),
    "TREE_VERSION": Code(
        TreeError, "Ask the sender for the estimator format of the process; nothing else is ever loaded."
    ),
    "TREE_FLAGS": Code(TreeError, _SENDER),
    "TREE_LENGTH": Code(TreeError, _SENDER),
    "TREE_SHAPE": Code(TreeError, _SENDER),
    "TREE_NOT_CANONICAL": Code(TreeError, _SENDER),
    "SHARE_VERSION": Code(ShareError, "Ask the sender for share format v1; nothing else is ever loaded."),
    "SHARE_LENGTH": Code(ShareError, _SENDER),
    "SHARE_COUNT": Code(ShareError, "Share at most the number of estimators the process allows."),
    "QUOTA_EXCEEDED": Code(
        RecordError,
        "The node did not apply the quota of its process: ask its organisation to replay the task.",
    ),
    "SHARE_SIZE": Code(ShareError, "Share fewer or smaller estimators."),
    "SHARE_DUPLICATE": Code(ShareError, "Share each estimator once."),
    "SHARE_INPUT": Code(ShareError, "Give a sequence of Estimator values."),
    "SIGNATURE_DOMAIN": Code(SignatureError, "Use a domain tag that protocol.signing defines."),
    "SIGNATURE_INPUT": Code(SignatureError, "Give a key, a message and a 64-byte signature."),
    "SIGNATURE_INVALID": Code(
        SignatureError, "Refuse the message; it was not signed by this key for this purpose."
    ),
    "KEY_LENGTH": Code(SignatureError, "Give the 32 bytes of an Ed25519 key."),
    "KEY_TEXT": Code(SignatureError, "Write the key as ed25519: and 64 lower-case hex digits."),
    "KEY_WEAK": Code(SignatureError, "Make a new key pair from 32 random bytes; this one proves nothing."),
    "LIFECYCLE_STATE": Code(LifecycleError, "Use one of the states of docs/formats/lifecycle-v1.md."),
    "LIFECYCLE_TRANSITION": Code(
        LifecycleError, "Read the current state first; docs/formats/lifecycle-v1.md has the table."
    ),
    "IMAGE_REPOSITORY": Code(
        ImageError, "Give the repository as HOST[:PORT]/PATH, without scheme, tag or digest."
    ),
    "IMAGE_ONE_DIGEST": Code(
        ImageError,
        "Give what the registry serves as manifest digest, and what the engine shows as id as image id.",
    ),
    "IMAGE_TEXT": Code(ImageError, "Keep descriptions and reasons to 1000 printable characters."),
    "PROCESS_FIELDS": Code(ProcessError, _SPECIFICATION),
    "PROCESS_VALUE": Code(ProcessError, _SPECIFICATION),
    "PROCESS_TEXT": Code(
        ProcessError, "Write one line without control, bidirectional or invisible characters."
    ),
    "PROCESS_CONSORTIUM": Code(
        ProcessError, "Name each organisation of the consortium once, and at least one."
    ),
    "PROCESS_NODES": Code(
        ProcessError, "Give each node one organisation of the consortium, and name one at least."
    ),
    "PROCESS_STEPS": Code(
        ProcessError,
        "List steps with names of their own, at least one that learns, none before its time, and give each"
        " the features, limits and vote of those before it that learn.",
    ),
    "TOPOLOGY_KIND": Code(ProcessError, "Use disconnected, ring, full, or explicit with its edges."),
    "TOPOLOGY_EDGE": Code(
        ProcessError, "Join two different nodes of the process by each edge, each pair once."
    ),
    "TOPOLOGY_CHANGE": Code(
        ProcessError, "List changes by ascending iterations within the process, from 1 on."
    ),
    "TABLE_VERSION": Code(TableError, "Write the rows in rows format v1; nothing else is ever loaded."),
    "TABLE_LENGTH": Code(TableError, "Write the rows again; bytes are missing or too many."),
    "TABLE_SHAPE": Code(TableError, "Give at least one row and one feature, and one label per row."),
    "TABLE_VALUE": Code(TableError, "Leave unknown values empty (NaN) and scale what float32 cannot hold."),
    "TABLE_LABEL": Code(TableError, "Label normal rows 0 and anomalous rows 1."),
    "TABLE_INPUT": Code(TableError, "Give values as float32 by row and labels as whole numbers."),
    "NODE_STATE_VERSION": Code(NodeStateError, "Use state format v1; nothing else is ever loaded."),
    "NODE_STATE_LENGTH": Code(NodeStateError, _STATE),
    "NODE_STATE_SIZE": Code(NodeStateError, "Start a new process from this node's model."),
    "NODE_STATE_VALUE": Code(NodeStateError, _STATE),
    "NODE_STATE_ORDER": Code(NodeStateError, _STATE),
    "NODE_STATE_CREATED": Code(NodeStateError, _STATE),
    "NODE_STATE_INPUT": Code(NodeStateError, "Give the state as bytes."),
    "FRAME_VERSION": Code(FrameError, "Speak broker protocol v1 on both sides of the socket."),
    "FRAME_LENGTH": Code(FrameError, "Send whole messages; this one ended early or went on."),
    "FRAME_SIZE": Code(FrameError, "Send a smaller message; docs/formats/broker-v1.md has the limits."),
    "FRAME_HEADER": Code(FrameError, "Send exactly the header that docs/formats/broker-v1.md gives."),
    "FRAME_VERB": Code(FrameError, "Ask task, share, slots or complete; there is no other verb."),
    "FRAME_BLOBS": Code(FrameError, "Send as many blobs as docs/formats/broker-v1.md gives the verb."),
    "FRAME_FIELDS": Code(FrameError, "Send exactly the fields docs/formats/broker-v1.md gives the verb."),
    "ACCESS_ROLE": Code(
        AccessError, "Call with an identity that has a role docs/ledger.md lists for the function."
    ),
    "ACCESS_ORGANISATION": Code(
        AccessError, "Ask an organisation that may; yours is the MSP id of your certificate."
    ),
    "ACCESS_NODE": Code(AccessError, "Call with the certificate of the node itself."),
    "ACCESS_EXPIRED": Code(AccessError, "Enrol again, or set the clock of the client right."),
    "ACCESS_CHAINCODE": Code(
        AccessError, "Address the transaction to the chaincode that is named; writes are never relayed."
    ),
    "IMAGE_UNKNOWN": Code(StateError, "Register the image version first, or correct its name."),
    "IMAGE_OWNER": Code(AccessError, "Choose another name; this one is its first registrant's."),
    "IMAGE_EXISTS": Code(StateError, "Give a new build a new version; a version is written once."),
    "IMAGE_PIN": Code(
        StateError, "Pin image_id and manifest_digest as registered; executor process create fills them in."
    ),
    "IMAGE_CONSENT": Code(
        StateError,
        "Agree with executor process image, or let the node leave: nobody runs what it did not agree to.",
    ),
    "IMAGE_UNATTESTED": Code(
        StateError, "Have more organisations of the process build it: executor image attest NAME:VERSION."
    ),
    "IMAGE_REBUILT": Code(StateError, "Nothing is left to do: your organisation has said the same before."),
    "IMAGE_RETIRED": Code(StateError, "Choose a version that is not retired."),
    "PROCESS_UNKNOWN": Code(StateError, "Correct the process id; List shows the processes there are."),
    "PROCESS_EXISTS": Code(StateError, "Choose another id; a process is written once."),
    "PROCESS_QUOTA": Code(
        StateError,
        "Abort proposals that come to nothing (executor process abort), or wait until others have ended.",
    ),
    "PROCESS_DIGEST": Code(
        StateError, "Read the specification again and accept the digest of what you read."
    ),
    "PROCESS_ACCEPTED": Code(StateError, "Nothing is left to do: your organisation has agreed already."),
    "PROCESS_UNACCEPTED": Code(StateError, "Wait for the organisations that are named; each has to accept."),
    "PROCESS_UNFINISHED": Code(StateError, "Wait for the nodes that are named, or let them leave."),
    "PROCESS_UNPUBLISHED": Code(
        StateError, "Publish the models of the nodes that are named; `executor process complete` does."
    ),
    "PROCESS_FINISHED": Code(StateError, "Complete the process and publish its models."),
    "CHANGE_LIMIT": Code(StateError, "Start a new process from a model of this one."),
    "CHANGE_UNKNOWN": Code(StateError, "Read Asks: it shows what is asked for, by organisation and number."),
    "CHANGE_DIGEST": Code(StateError, "Read Asks again and agree to the digest of what you read."),
    "CHANGE_STALE": Code(
        StateError, "Ask again: an ask is over once another change of the same has come to hold."
    ),
    "CHANGE_HOLDS": Code(StateError, "Ask for another change: what holds is not withdrawn."),
    "ITERATION_RANGE": Code(StateError, "Read Status and choose an iteration that is still to come."),
    "ITERATION_ORDER": Code(
        StateError, "Complete the iterations in order, each once; Status shows the next one."
    ),
    "NODE_UNKNOWN": Code(StateError, "Use a node of the process, or let it Join first."),
    "NODE_ACTIVE": Code(StateError, "Nothing is left to do: the node takes part already."),
    "NODE_INACTIVE": Code(
        StateError, "A node that is done or gone owes nothing; to take part again it has to Join."
    ),
    "NODE_WAITING": Code(StateError, "Vote about the neighbour whose share it waits for; Offers names it."),
    "NODE_LAST": Code(StateError, "Abort the process instead; no iteration can be without a node."),
    "PAYLOAD_MISSING": Code(
        RecordError, "Send the payload once: as transient data, or in base64 as argument."
    ),
    "PAYLOAD_SIZE": Code(RecordError, "Send at most 1 MiB: fewer or smaller estimators."),
    "PAYLOAD_DIGEST": Code(RecordError, "Send the bytes whose digest was signed."),
    "PROCESS_NOT_RUNNING": Code(StateError, "Work on a process that runs; Status shows its state."),
    "PROCESS_COLLECTION": Code(
        StateError,
        "Make the consortium a majority of the channel, or have the collection defined.",
    ),
    "HISTORY_DEPTH": Code(
        StateError,
        "Ask for larger pages, of up to 1,000 changes; read older ones from the blocks (executor audit "
        "export), or results by iteration.",
    ),
    "TREES_CONFIDENTIAL": Code(AccessError, "Send the trees in the transient map."),
    "TREES_GONE": Code(
        StateError,
        "Read trees and export models while the process keeps them (confidential_blocks); digests stay.",
    ),
    "RECORD_UNVOUCHED": Code(
        StateError,
        "Ask the organisation named; others wrote in its name. Its node cannot go on from there, and a "
        "change has to be asked for again.",
    ),
    "TASK_UNKNOWN": Code(StateError, "Open the task first, or correct process, node and iteration."),
    "TASK_EXPIRED": Code(StateError, "Launch the task again: it gets a new key and the same inputs."),
    "TASK_NOT_EXPIRED": Code(StateError, "Wait until the task's time is over, or let its node Fail it."),
    "KEY_USED": Code(StateError, "Make a new key pair for each task; this key has served."),
    "IMAGE_MISMATCH": Code(StateError, "Do not run it; pull the image by the digest on the ledger."),
    "PARAMETERS_MISMATCH": Code(StateError, "Use the parameters of the process as the ledger has them."),
    "SCHEMA_MISMATCH": Code(StateError, "Bring the data into the features and the order of the process."),
    "STATE_MISMATCH": Code(StateError, "Start from the state that the node's last completed task left."),
    "DATA_MISMATCH": Code(
        StateError,
        "Launch with the file that the node's earlier tasks held rows out of: it must stay as it is, byte by"
        " byte, until the process ends.",
    ),
    "ESTIMATOR_UNKNOWN": Code(StateError, "Relay only estimators that their creators have shared."),
    "ESTIMATOR_CONFLICT": Code(StateError, "Keep one content per id; the ledger's was first."),
    "ESTIMATOR_NOT_HELD": Code(
        StateError, "Offer what the node created itself, and of others what its last ensemble holds."
    ),
    "ESTIMATOR_COPIED": Code(
        StateError, "Offer the tree under its creator's id; the node holds it and did not create it."
    ),
    "ESTIMATOR_COUNTER": Code(StateError, "Number new estimators from the node's next counter on."),
    "SHARE_FIXED": Code(
        StateError,
        "Offer the same trees again, from the same data and state, or let the node leave and join later.",
    ),
    "SHARE_REQUIRED": Code(StateError, "SHARE first, if only an empty share: the neighbours wait for it."),
    "RESULT_CREATED": Code(
        StateError, "List the digests of all trees of this FIT, from the next counter on."
    ),
    "RESULT_SLOT": Code(StateError, "Take only what the slots of this iteration offered the node."),
    "RESULT_ENSEMBLE": Code(StateError, "Report the ensemble that FIT, GET and CROP gave, and its digest."),
    "RESULT_KIND": Code(
        StateError, "Run an image that keeps to the kind of the step; executor process show says which it is."
    ),
    "OUTPUT_MISMATCH": Code(StateError, "Publish the output of this very task, by what its step states."),
    "STEP_UNOPENED": Code(
        StateError, "Wait for the coordinator (executor process open-step), or have a majority name another."
    ),
    "STEP_ORDER": Code(StateError, "Open the step that comes next; executor process status names it."),
    "STEP_UNKNOWN": Code(StateError, "Name a step of the process; executor process status lists them."),
    "STEP_COORDINATOR": Code(
        StateError,
        "Go on where steps open by themselves; else name an organisation that takes part and is not the"
        " coordinator.",
    ),
    "ACCESS_COORDINATOR": Code(
        AccessError, "Let the coordinator open it, or have a majority name your organisation instead."
    ),
    "ENSEMBLE_EMPTY": Code(
        StateError, "Let the node leave, or join again from an iteration on that FITs estimators."
    ),
    "CHALLENGE_OWN": Code(AccessError, "Replay your own task (executor replay); others challenge it."),
    "CHALLENGE_TASK": Code(StateError, "Challenge a task that has shared or completed; GetTask shows it."),
    "CHALLENGE_EXISTS": Code(StateError, "Nothing is left to do: your organisation has challenged the task."),
    "CHALLENGE_QUOTA": Code(
        StateError, "Wait for verdicts on what you have challenged of this organisation."
    ),
    "CHALLENGE_UNKNOWN": Code(StateError, "Read ListChallenges: it shows who challenged which task."),
    "CHALLENGE_AUDITOR": Code(
        AccessError,
        "Choose an auditor whom the challenge names: neither the challenger's nor the owner's.",
    ),
    "CHALLENGE_ANSWERED": Code(StateError, "Give the auditor the file; the inputs are opened to it already."),
    "CHALLENGE_UNANSWERED": Code(StateError, "Wait until the owner opens the task's inputs to you."),
    "CHALLENGE_JUDGED": Code(StateError, "Nothing is left to do: a verdict is given once."),
    "MODEL_UNKNOWN": Code(StateError, "Correct process and node; List shows the models there are."),
    "MODEL_EXISTS": Code(StateError, "Nothing is left to do: a model is published once."),
    "MODEL_UNFINISHED": Code(StateError, "Publish after the node's last iteration."),
    "MODEL_ESTIMATORS": Code(StateError, "List the estimators of the node's last ensemble, by ascending id."),
    "MODEL_DIGEST": Code(StateError, "Publish the ensemble whose digest the last task signed."),
    "MODEL_CONFIDENTIAL": Code(
        StateError, "Start from it in a process with confidential: true; else every peer would get its trees."
    ),
    "MODEL_INCOMPLETE": Code(
        StateError, "Ask the node's organisation to publish its model: only the node has these trees."
    ),
    "MODEL_TREES": Code(StateError, "Send exactly the trees of the model that were never shared."),
    "ACCESS_GRANT": Code(
        AccessError, "Ask for access: `executor model request`, once the process is completed."
    ),
    "GRANT_UNKNOWN": Code(StateError, "Nothing is left to do: the organisation has no access."),
    "GRANT_OWNER": Code(StateError, "Leave the owner alone: it always has access to its own model."),
    "GRANT_GOVERNED": Code(
        StateError,
        "Ask the others, who decide too: for access with `executor model request`, to end it with `executor"
        " model revoke --purpose`.",
    ),
    "REQUEST_EARLY": Code(StateError, "Ask when the process is completed; Status shows its state."),
    "REQUEST_NEEDLESS": Code(StateError, "Nothing is left to do: the organisation may read the model."),
    "REQUEST_LICENCE": Code(
        StateError, "Read the licence that the process agreed on, and name its digest; Catalogue shows it."
    ),
    "REQUEST_LIMIT": Code(
        StateError, "Wait for decisions on what was asked for; the process sets the number."
    ),
    "REQUEST_UNKNOWN": Code(StateError, "Correct model, organisation and number; Requests shows them."),
    "REQUEST_DIGEST": Code(StateError, "Read the request again, and vote on what it says."),
    "REQUEST_DECIDED": Code(StateError, "Nothing is left to decide; Requests shows what was."),
    "REQUEST_STALE": Code(
        StateError, "Ask again: a request is over once something is decided on the access that it is about."
    ),
    "REQUEST_VOTED": Code(StateError, "Nothing is left to do: an organisation votes once."),
    "GRANT_EXPIRY": Code(StateError, "Give a time to come as in 2027-01-31T00:00:00Z, or none."),
}


_DEFINED = {code: Definition(row.error, {"": row.remedy}) for code, row in TABLE.items()}


def define(error: type[AttestreeError], rows: Rows) -> None:
    """Add the codes that another package raises in a class; a code or case keeps the one meaning it has.

    A class may add cases to a code of a class that it derives from.
    """
    for code, given in rows.items():
        remedies = {"": given} if isinstance(given, str) else given
        row = _DEFINED.setdefault(code, Definition(error, {}))
        if not issubclass(error, row.error):
            raise ValueError(f"error code {code} belongs to {row.error.__name__}, not {error.__name__}")
        for case, remedy in remedies.items():
            if row.remedies.setdefault(case, remedy) != remedy:
                raise ValueError(f"error code {code} has another remedy already")


def defined() -> dict[str, Definition]:
    """Return every code that the packages imported so far have defined, `TABLE` first."""
    return {code: Definition(row.error, dict(row.remedies)) for code, row in _DEFINED.items()}


def _rebuild(error: type[AttestreeError], code: str, cause: str, remedy: str) -> AttestreeError:
    rebuilt = error.__new__(error, code, cause, remedy)
    rebuilt.code, rebuilt.cause, rebuilt.remedy = code, cause, remedy
    return rebuilt


def error_from_message(code: str, message: str) -> AttestreeError:
    """Rebuild the error of a chaincode, whose message is the cause and the remedy in one text."""
    row = TABLE.get(code)
    return error_from(code, message.removesuffix(f". {row.remedy}") if row else message)


def error_from(code: str, cause: str, remedy: str | None = None) -> AttestreeError:
    """Rebuild the error that another party reported by code, in the class this project raises for it."""
    row = TABLE.get(code)
    if row is not None:
        return row.error(code, cause, remedy)
    return AttestreeError(
        code, cause, remedy or "Compare the versions of both parties; this one does not know the code."
    )
