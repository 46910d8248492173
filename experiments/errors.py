"""What an experiment refuses, with the code and the remedy of each.

AttestreeError
├── SourceError          the data set cannot be had, is not the one asked for, or cannot be split
└── ReproductionError    the paper's split comes out otherwise here
"""

from protocol.errors import AttestreeError, define


class SourceError(AttestreeError):
    """A data set that no experiment can be run on."""


class ReproductionError(AttestreeError):
    """The paper's split does not come out as the paper has it."""


_COPY = "Give your own copy of {name} with --data FILE."

define(
    SourceError,
    {
        "DATA_FETCH": _COPY,
        "DATA_FILE": "Check the path and its permissions.",
        "DATA_HASH": {
            "": "Leave --data out to fetch it, or run other data with `executor simulate --data`.",
            "fetched": _COPY,
        },
        "DATA_ONE_CLASS": "A federation may hold nodes without anomalies, but the whole needs both classes.",
        "DATA_TOO_SMALL": {
            "": "Ask for more.",
            "node": "Use fewer nodes or another --split-seed.",
            "row": "Training and testing need more.",
            "test": "Use another --split-seed or more data.",
        },
        "DATA_VALUE": "Use --drop {name}.",
    },
)
define(
    ReproductionError,
    {
        "SPLIT_DIFFERS": (
            "Install the locked versions of numpy and scikit-learn with scripts/bootstrap --python."
        ),
    },
)
