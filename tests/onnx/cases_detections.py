"""Cases of detectors, and of what depends on values that are constants."""

import numpy as np

from case import F, GENERATOR, data, ints, positive, single


def detections(cases):
    """Operators of detectors, and those whose result has as many elements as constants say."""
    x = data(1, 4, 7, 6)
    rois = np.array([[0, 0, 0, 9, 9], [0, 3.4, 2, 11, 12], [0, 8, 9, 8, 9]], F)
    single(cases, "MaxRoiPool", (7,), {"x": x, "r": rois}, pooled_shape=[3, 2], spatial_scale=0.5)
    offset, mask = data(1, 2 * 9 * 2, 4, 3) * F(1.5), positive(1, 2 * 9, 4, 3)
    weights = {"w": data(6, 2, 3, 3)}
    window = {"strides": [2, 2], "pads": [1, 1, 1, 1], "offset_group": 2, "group": 2}
    single(cases, "DeformConv", (19,), {"x": x}, {**weights, "o": offset, "b": data(6), "m": mask}, **window)
    single(cases, "DeformConv", (19,), {"x": x}, {**weights, "o": offset}, "DeformConv_plain", **window)
    corners = GENERATOR.random((1, 8, 4), F)
    limits = {"n": ints(3), "i": np.array([0.3], F), "s": np.array([0.2], F)}
    for center in (0, 1):
        name = f"NonMaxSuppression_{center}"
        boxes = {"b": corners, "c": GENERATOR.random((1, 2, 8), F)}
        single(cases, "NonMaxSuppression", (10, 11), {}, {**boxes, **limits}, name, center_point_box=center)
    values = np.array([[2, 1, 1], [3, 4, 3], [2, 1, 1]], F)
    every = ("y", "first", "inverse", "count")
    for sorted_values in (0, 1):
        single(cases, "Unique", (11,), {}, {"x": values}, f"Unique_{sorted_values}", every, sorted=sorted_values)
        single(cases, "Unique", (11,), {}, {"x": values}, f"Unique_rows_{sorted_values}", every, sorted=sorted_values, axis=0)
    pool = {"ngram_counts": [0, 3], "ngram_indexes": [0, 1, 2, 3, 4], "pool_int64s": [2, 3, 5, 2, 3, 5, 5], "weights": [1, 2, 3, 4, 5.0]}
    tokens = {"x": ints([2, 3, 5, 5, 2, 3], [5, 5, 5, 2, 2, 3])}
    for mode in ("TF", "IDF", "TFIDF"):
        lengths = {"min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1}
        single(cases, "TfIdfVectorizer", (9,), tokens, name="TfIdfVectorizer_" + mode, mode=mode, **lengths, **pool)
