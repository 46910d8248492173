"""Why an export is not even looked at further, and how an audit ends that found something wrong."""

from executor import codes
from protocol.errors import DataError, SignatureError, define


class BundleError(DataError):
    """An export that is not in its one form; nothing in it was believed."""


class AuditError(SignatureError):
    """An export in which something is not as it should be; its findings say what and where."""


define(BundleError, codes.BUNDLE)
define(AuditError, codes.AUDIT)
