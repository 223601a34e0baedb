"""Cases of decision trees (ai.onnx.ml)."""

import numpy as np
from onnx import helper, numpy_helper

from case import F, GENERATOR, I, evaluate, make_model

DOMAIN = "ai.onnx.ml"
TESTS = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
FEATURES = 5


def rows(count, dtype=F):
    """Of small whole numbers, so that each test of equality passes now and then."""
    return GENERATOR.integers(-3, 4, (count, FEATURES)).astype(dtype)


def grow(depth):
    """A tree: (feature, split, number of a test, whether a missing value passes, then, else), or None for a leaf."""
    if depth == 0 or GENERATOR.random() < 0.2:
        return None
    feature, split, test = (int(GENERATOR.integers(*limits)) for limits in ((0, FEATURES), (-2, 3), (0, 6)))
    return feature, split, test, int(GENERATOR.integers(0, 2)), grow(depth - 1), grow(depth - 1)


def forest(count, depth=4):
    return [grow(depth) for _ in range(count - 1)] + [None]


def numbered(trees, targets, prefix, tests, least=-2.0):
    """Attributes of the operators that number their nodes. Each leaf says something of some targets."""
    nodes = {name: [] for name in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids", "missing_value_tracks_true")}
    votes = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
    for tree, root in enumerate(trees):
        waiting, next_number = [(0, root)], 1
        while waiting:
            number, node = waiting.pop()
            row = (tree, number, 0, "LEAF", 0.0, 0, 0, 0)
            if node is None:
                for target in targets[: 1 + int(GENERATOR.integers(0, len(targets)))]:
                    vote = (tree, number, target, float(F(GENERATOR.uniform(least, 2.0))))
                    for name, value in zip(votes, vote):
                        votes[name].append(value)
            else:
                feature, split, test, missing, *children = node
                row = (tree, number, feature, tests[test % len(tests)], float(split), next_number, next_number + 1, missing)
                waiting += [(next_number, children[0]), (next_number + 1, children[1])]
                next_number += 2
            for name, value in zip(nodes, row):
                nodes[name].append(value)
    return {**{f"nodes_{name}": values for name, values in nodes.items()}, **{f"{prefix}_{name}": values for name, values in votes.items()}}


def flat(trees, targets, dtype=F):
    """Attributes of TreeEnsemble."""
    names = ("featureids", "modes", "splits", "missing_value_tracks_true", "truenodeids", "falsenodeids", "trueleafs", "falseleafs")
    nodes = {name: [] for name in names}
    leaf_targets, roots, members = [], [], []

    def leaf():
        leaf_targets.append(int(GENERATOR.integers(0, targets)))
        return len(leaf_targets) - 1, 1

    def add(node):
        if node is None:
            return leaf()
        place = len(nodes["modes"])
        feature, split, test, missing, then, other = node
        for name, value in zip(names, (feature, test, float(split), missing, 0, 0, 0, 0)):
            nodes[name].append(value)
        for side, child in (("true", then), ("false", other)):
            child_place, is_leaf = add(child)
            nodes[f"{side}nodeids"][place], nodes[f"{side}leafs"][place] = child_place, is_leaf
        return place, 0

    for tree in trees:
        # A tree that is a leaf is a branch both of whose ways lead there.
        roots.append(len(nodes["modes"]))
        if tree is None:
            place, _ = leaf()
            for name, value in zip(names, (0, 0, 0.0, 0, place, place, 1, 1)):
                nodes[name].append(value)
        else:
            add(tree)
    # Every third branch tests for members.
    for place in range(0, len(nodes["modes"]), 3):
        nodes["modes"][place] = 6
        members += [*map(float, GENERATOR.integers(-3, 4, 1 + place % 3)), np.nan]

    def tensor(values, kind):
        return numpy_helper.from_array(np.array(values, kind))

    attributes = {f"nodes_{name}": values for name, values in nodes.items() if name not in ("modes", "splits")}
    return {
        **attributes,
        "tree_roots": roots,
        "n_targets": targets,
        "nodes_modes": tensor(nodes["modes"], np.uint8),
        "nodes_splits": tensor(nodes["splits"], dtype),
        "membership_values": tensor(members[:-1], dtype),
        "leaf_targetids": leaf_targets,
        "leaf_weights": tensor(GENERATOR.uniform(-2, 2, len(leaf_targets)), dtype),
    }


def trees(cases):
    def add(op, version, name, x, outputs, expected=None, **attributes):
        node = helper.make_node(op, ["x"], outputs, domain=DOMAIN, **attributes)
        cases.add(f"{op}_{name}", 21, [node], {"x": x}, outputs=outputs, versions={DOMAIN: version}, expected=expected)

    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        attributes = numbered(forest(6), [0, 1, 2], "target", TESTS)
        add("TreeEnsembleRegressor", 3, aggregate, rows(20), ["y"], n_targets=3, aggregate_function=aggregate, base_values=[0.5, -1.0, 2.0], **attributes)
    with_missing = rows(20)
    with_missing[GENERATOR.random(with_missing.shape) < 0.3] = np.nan
    add("TreeEnsembleRegressor", 1, "missing", with_missing, ["y"], n_targets=1, **numbered(forest(5), [0], "target", TESTS[:1]))
    doubles = numbered(forest(4), [0, 1], "target", TESTS[:1])
    add("TreeEnsembleRegressor", 3, "float64", rows(9, np.float64), ["y"], n_targets=2, **doubles)
    for transform in ("SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        add("TreeEnsembleRegressor", 3, transform, rows(9), ["y"], n_targets=3, post_transform=transform, **numbered(forest(4), [0, 1, 2], "target", TESTS[:1]))
    probit = numbered([grow(3)], [0], "target", TESTS[:1])
    probit["target_weights"] = list(np.linspace(0.05, 0.95, len(probit["target_weights"])))
    add("TreeEnsembleRegressor", 3, "PROBIT", rows(9), ["y"], n_targets=1, post_transform="PROBIT", **probit)

    numbers = {"classlabels_int64s": [7, 3, 5]}
    for transform, kind in (("NONE", F), ("SOFTMAX", I), ("LOGISTIC", np.int32), ("SOFTMAX_ZERO", np.float64)):
        attributes = {**numbered(forest(6), [0, 1, 2], "class", TESTS[:1]), **numbers}
        add("TreeEnsembleClassifier", 3, transform, rows(20, kind), ["label", "y"], post_transform=transform, **attributes)
    both = [vote for tree in range(4) for vote in [(tree, 0, 0.25 * tree), (tree, 1, 1 - 0.25 * tree)]]
    attributes = numbered([(tree, 0, 0, 0, None, None) for tree in range(4)], [0], "class", TESTS[:1])
    attributes["class_treeids"] = [tree for tree, _, _ in both for _ in range(2)]
    attributes["class_nodeids"] = [node for _ in both for node in (1, 2)]
    attributes["class_ids"] = [label for _, label, _ in both for _ in range(2)]
    attributes["class_weights"] = [weight for _, _, share in both for weight in (share / 4, (1 - share) / 4)]
    # ONNX Runtime 1.31 gives 1 for every label here, which is none of them.
    x = rows(20)
    node = helper.make_node("TreeEnsembleClassifier", ["x"], ["label", "y"], domain=DOMAIN, classlabels_int64s=[4, 9], **attributes)
    _, scores = evaluate(make_model(21, [node], {"x": x}, {}, ["label", "y"], versions={DOMAIN: 3}), {"x": x})
    expected = [np.array([4, 9])[scores.argmax(1)], scores]
    add("TreeEnsembleClassifier", 3, "both_of_two", x, ["label", "y"], expected, classlabels_int64s=[4, 9], **attributes)
    add("TreeEnsembleClassifier", 3, "base", rows(20), ["label", "y"], base_values=[0.3, -0.2, 0.1], **numbered(forest(6), [0, 1, 2], "class", TESTS), **numbers)
    for least in (0.0, -2.0):
        for transform in ("NONE", "LOGISTIC"):
            name = f"binary_{'shares' if least == 0 else 'margins'}_{transform}"
            attributes = numbered(forest(4), [0], "class", TESTS[:1], least)
            if least == 0:
                attributes["class_weights"] = [weight / 8 for weight in attributes["class_weights"]]
            add("TreeEnsembleClassifier", 3, name, rows(20), ["label", "y"], post_transform=transform, classlabels_int64s=[4, 9], **attributes)
            add("TreeEnsembleClassifier", 3, name + "_base", rows(20), ["label", "y"], post_transform=transform, base_values=[0.25],
                classlabels_int64s=[9, 4], **attributes)
    for kind in (F, np.float64):
        for number, aggregate in enumerate(("AVERAGE", "SUM", "MIN", "MAX")):
            name = f"{np.dtype(kind).name}_{aggregate}"
            add("TreeEnsemble", 5, name, rows(20, kind), ["y"], aggregate_function=number, **flat(forest(6), 3, kind))
    # ONNX Runtime 1.31 takes 1, ONNX's number of SOFTMAX, for LOGISTIC.
    x, attributes = rows(9), flat(forest(4), 3)
    node = helper.make_node("TreeEnsemble", ["x"], ["y"], domain=DOMAIN, **attributes)
    (scores,) = evaluate(make_model(21, [node], {"x": x}, {}, ["y"], versions={DOMAIN: 5}), {"x": x})
    exponentials = np.exp(scores)
    expected = [exponentials / exponentials.sum(1, keepdims=True)]
    add("TreeEnsemble", 5, "softmax", x, ["y"], expected, post_transform=1, **attributes)


def trees_without_votes(cases):
    """Leaves vote for one class each, with weights that are not positive, so that the classes without votes have the highest scores."""
    some = np.random.default_rng(35)
    nodes = {"nodes_treeids": [], "nodes_nodeids": [], "nodes_featureids": [], "nodes_values": [], "nodes_modes": []}
    nodes |= {"nodes_truenodeids": [], "nodes_falsenodeids": []}
    votes = {"class_treeids": [], "class_nodeids": [], "class_ids": [], "class_weights": []}
    for tree in range(2):
        for number, (mode, value, then, other) in enumerate((("BRANCH_LEQ", 0.1, 1, 2), ("LEAF", 0, 0, 0), ("LEAF", 0, 0, 0))):
            for name, entry in zip(nodes, (tree, number, tree, float(value), mode, then, other)):
                nodes[name].append(entry)
            if mode == "LEAF":
                for name, entry in zip(votes, (tree, number, tree + number - 1, -float(some.integers(0, 4)))):
                    votes[name].append(entry)
    for transform in ("NONE", "SOFTMAX"):
        attributes = {**nodes, **votes, "classlabels_int64s": [7, 3, 5, 9], "post_transform": transform}
        node = helper.make_node("TreeEnsembleClassifier", ["x"], ["label", "y"], domain=DOMAIN, **attributes)
        x = some.normal(size=(20, 2)).astype(F)
        cases.add(f"TreeEnsembleClassifier_without_votes_{transform}", 21, [node], {"x": x}, outputs=["label", "y"], versions={DOMAIN: 3})
