"""Any tree as arrays, for property tests of the estimator formats."""

from hypothesis import strategies as st

thresholds = st.floats(allow_nan=False, allow_infinity=False)
probabilities = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))


@st.composite
def arrays(draw):
    """A tree grown by splitting one leaf at a time, numbered in order of birth: rarely preorder."""
    n_internal = draw(st.integers(0, 12))
    n_features = draw(st.sampled_from([3, 255, 400]))
    certain = draw(st.booleans())
    feature, threshold, left, right, value, missing = [-1], [0.0], [-1], [-1], [0.0], [False]
    leaves = [0]
    for _ in range(n_internal):
        node = leaves.pop(draw(st.integers(0, len(leaves) - 1)))
        first = len(feature)
        feature[node] = draw(st.integers(0, n_features - 1))
        threshold[node] = draw(thresholds)
        missing[node] = draw(st.booleans())
        left[node], right[node] = first, first + 1
        for column, blank in (
            (feature, -1),
            (threshold, 0.0),
            (left, -1),
            (right, -1),
            (value, 0.0),
            (missing, False),
        ):
            column += [blank, blank]
        leaves += [first, first + 1]
    for leaf in leaves:
        value[leaf] = draw(st.sampled_from([0.0, 1.0]) if certain else probabilities)
    return feature, threshold, left, right, value, missing
