"""Cases of linear models, kernel machines and what prepares features for them (ai.onnx.ml)."""

import numpy as np
from onnx import helper

from case import F, GENERATOR, I, data

DOMAIN = "ai.onnx.ml"
FEATURES = 5


def numbers(*shape):
    """As attributes hold them."""
    return list(map(float, data(*shape).ravel()))


def linear_models(cases):
    def add(op, name, x, outputs=("y",), expected=None, **attributes):
        inputs = x if isinstance(x, dict) else {"x": x}
        node = helper.make_node(op, list(inputs), list(outputs), domain=DOMAIN, **attributes)
        cases.add(f"{op}_{name}", 21, [node], inputs, outputs=outputs, versions={DOMAIN: 3}, expected=expected)

    rows = data(7, FEATURES)
    for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        weights = {"coefficients": numbers(3, FEATURES), "intercepts": numbers(3), "post_transform": transform}
        add("LinearRegressor", transform, rows, targets=3, **weights)
        add("LinearClassifier", transform, rows, ["label", "y"], classlabels_ints=[7, 3, 5], **weights)
        weights = {"coefficients": numbers(FEATURES), "intercepts": numbers(1), "post_transform": transform}
        add("LinearClassifier", f"binary_{transform}", rows, ["label", "y"], classlabels_ints=[4, 9], **weights)
    add("LinearRegressor", "without_intercepts", rows, coefficients=numbers(FEATURES))
    add("LinearRegressor", "one_row", rows[0], targets=2, coefficients=numbers(2, FEATURES))
    weights = {"coefficients": numbers(2, FEATURES), "intercepts": numbers(2), "classlabels_ints": [4, 9]}
    add("LinearClassifier", "two_of_two", rows, ["label", "y"], **weights)
    add("LinearClassifier", "integers", GENERATOR.integers(-3, 4, (7, FEATURES)).astype(I), ["label", "y"], **weights)

    vectors = {"support_vectors": numbers(6, FEATURES), "kernel_params": [0.3, 0.1, 3.0]}
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        add("SVMRegressor", kernel, rows, kernel_type=kernel, n_supports=6, coefficients=numbers(6), rho=[0.2], **vectors)
        for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
            three = {"vectors_per_class": [1, 3, 2], "coefficients": numbers(2, 6), "rho": numbers(3), "classlabels_ints": [4, 9, 2]}
            add("SVMClassifier", f"{kernel}_{transform}", rows, ["label", "y"], kernel_type=kernel, post_transform=transform, **three, **vectors)
        two = {"vectors_per_class": [2, 4], "coefficients": [0.5, 0.2, -0.3, -0.1, -0.2, -0.1], "rho": [0.1], "classlabels_ints": [4, 9]}
        for transform in ("NONE", "LOGISTIC"):
            add("SVMClassifier", f"two_{kernel}_{transform}", rows, ["label", "y"], kernel_type=kernel, post_transform=transform, **two, **vectors)
    # Of pairs, from which follow those of classes.
    some = np.random.default_rng(11)
    for count, supports in ((2, [2, 4]), (3, [1, 3, 2]), (4, [1, 2, 2, 1])):
        pairs = count * (count - 1) // 2
        of_classes = {"vectors_per_class": supports, "coefficients": some.normal(size=(count - 1) * 6).tolist(), "rho": some.normal(size=pairs).tolist()}
        of_pairs = {"prob_a": [-1.5 - 0.25 * i for i in range(pairs)], "prob_b": some.normal(size=pairs).tolist(), "classlabels_ints": list(range(3, 3 + count))}
        add("SVMClassifier", f"probabilities_{count}", rows, ["label", "y"], kernel_type="RBF", **of_classes, **of_pairs, **vectors)
    shares = some.random((7, 3)).astype(F)
    add("ZipMap", "integers", shares, expected=[shares], classlabels_int64s=[4, 9, 2])
    add("ZipMap", "strings", shares[0], expected=[shares[:1]], classlabels_strings=["a", "b", "c"])
    add("SVMRegressor", "one_class", rows, kernel_type="RBF", n_supports=6, coefficients=numbers(6), rho=[0.0], one_class=1, **vectors)
    add("SVMRegressor", "no_vectors", rows, kernel_type="LINEAR", kernel_params=[0.3, 0.1, 3.0], coefficients=numbers(FEATURES), rho=[0.2])

    for kind in (F, I):
        some = GENERATOR.integers(-3, 4, (4, 3)).astype(kind)
        some[0], some[1] = 0, -np.abs(some[1]) - 1
        add("Scaler", f"each_{np.dtype(kind).name}", some, offset=[1.0, -2.0, 0.5], scale=[2.0, 0.25, -1.0])
        for norm in ("MAX", "L1", "L2"):
            add("Normalizer", f"{norm}_{np.dtype(kind).name}", some, norm=norm)
    add("Scaler", "one", rows, offset=[0.5], scale=[2.0])
    add("Normalizer", "one_row", rows[0], norm="L2")

    missing = rows.copy()
    missing[GENERATOR.random(missing.shape) < 0.4] = np.nan
    add("Imputer", "missing", missing, imputed_value_floats=numbers(FEATURES), replaced_value_float=float("nan"))
    small = GENERATOR.integers(0, 3, (4, FEATURES))
    add("Imputer", "value", small.astype(F), imputed_value_floats=[7.0], replaced_value_float=1.0)
    add("Imputer", "integers", small.astype(I), imputed_value_int64s=[7], replaced_value_int64=1)

    vectorized = {"a": data(4, 2), "b": data(4, 3), "c": data(4, 1)}
    add("FeatureVectorizer", "three", vectorized, inputdimensions=[2, 3, 1])
    add("OneHotEncoder", "integers", small.astype(I), cats_int64s=[2, 0, 1])
    add("OneHotEncoder", "truncated", np.array([1.7, 2.2, 5.0], F), cats_int64s=[1, 2, 3])
