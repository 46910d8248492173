"""What an experiment refuses, each with a stable code, its cause in this case and the remedy.

AttestreeError
├── SourceError          the data set cannot be had, is not the one asked for, or cannot be split
└── ReproductionError    the paper's split comes out otherwise here
"""

from protocol.errors import AttestreeError


class SourceError(AttestreeError):
    """A data set that no experiment can be run on."""


class ReproductionError(AttestreeError):
    """The paper's split does not come out as the paper has it."""
