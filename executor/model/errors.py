"""Why a model is not used: what was received is not what the ledger says it is."""

from executor import codes
from protocol.errors import DataError, define


class ModelError(DataError):
    """A model whose content contradicts its digests, or an export that does not score like it.

    `MODEL_ALTERED` trees or members are not those of the digest, `MODEL_FILE` a file holds no exported model,
    `MODEL_EXPORT` what was written scores otherwise, `MODEL_OPTIONS` the process's options are not the
    shipped learner's.
    """


define(ModelError, codes.MODEL)


def altered(cause: str) -> ModelError:
    """Refuse a model that is not the one its digest names."""
    return ModelError("MODEL_ALTERED", cause)


def altered_file(cause: str) -> ModelError:
    """Refuse a file that is not as it was exported."""
    return ModelError("MODEL_ALTERED", cause, case="file")
