"""Thresholds rounded to few digits: a threshold halfway between two rows says where they are."""

import numpy as np
from numpy.typing import NDArray


def rounded(thresholds: NDArray[np.float64], bits: int | None) -> NDArray[np.float64]:
    """Return the thresholds with so many significant binary digits, the nearest; None leaves all."""
    if bits is None:
        return thresholds
    fraction, exponent = np.frexp(thresholds)
    scale = 2.0**bits
    return np.ldexp(np.rint(fraction * scale) / scale, exponent)
