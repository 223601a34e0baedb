"""Models in which extents depend on data are compiled, saved, loaded and run, and give what ONNX Runtime gives.

Usage: remainder_test.py BINARY"""

import json

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from command_line import InOneFolderTestCase, main

F = np.float32
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def model(nodes, inputs, outputs, weights, opset=17):
    """inputs, outputs: name to (element type, shape); symbols are extents that a run tells."""
    values = [[helper.make_tensor_value_info(name, *type) for name, type in group.items()] for group in (inputs, outputs)]
    graph = helper.make_graph(nodes, "detector", *values, [numpy_helper.from_array(array, name) for name, array in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def detector(classes=3, heavy_tail=False):
    """A small single-shot detector: a backbone, boxes and scores of 2 scales, non-maximum suppression, and a tail as torchvision and
    TensorFlow write it: the best boxes, their scores and classes. With a heavy tail each box is cut out of a feature map, and a
    convolution looks at what is inside."""
    generator = np.random.default_rng(7)
    weights, nodes = {}, []

    def conv(x, y, channels, outputs, stride=1):
        weights["w_" + y] = (generator.standard_normal((outputs, channels, 3, 3)) * 0.3).astype(F)
        weights["b_" + y] = (generator.standard_normal(outputs) * 0.1).astype(F)
        nodes.append(node("Conv", f"{x} w_{y} b_{y}", y, pads=[1, 1, 1, 1], strides=[stride, stride]))

    conv("x", "c1", 3, 8, 2)
    nodes.append(node("Relu", "c1", "f1"))
    conv("f1", "c2", 8, 8, 2)
    nodes.append(node("Relu", "c2", "f2"))
    boxes, scores = [], []
    for scale, extent in (("f1", 8), ("f2", 4)):
        for kind, width, into in (("box", 4, boxes), ("score", classes, scores)):
            name = f"{kind}_{scale}"
            conv(scale, name, 8, width)
            weights["shape_" + name] = np.array([1, width, extent * extent])
            nodes.append(node("Reshape", f"{name} shape_{name}", "flat_" + name))
            into.append("flat_" + name)
    nodes += [
        node("Concat", " ".join(boxes), "boxes_last", axis=2), node("Concat", " ".join(scores), "logits", axis=2),
        node("Transpose", "boxes_last", "raw_boxes", perm=[0, 2, 1]), node("Sigmoid", "raw_boxes", "boxes"),
        node("Sigmoid", "logits", "scores"),
        node("NonMaxSuppression", "boxes scores most overlap threshold", "selected"),
        # image, class and box of each; then boxes, scores and classes
        node("Gather", "selected class_column", "label", axis=1), node("Gather", "selected box_column", "place", axis=1),
        node("Squeeze", "boxes zero", "boxes_of_image"), node("Gather", "boxes_of_image place", "found_boxes", axis=0),
        node("GatherND", "scores selected", "found_scores"),
        node("Shape", "found_scores", "count"), node("Min", "count five", "k"), node("TopK", "found_scores k", "best_scores order"),
        node("Gather", "found_boxes order", "best_boxes", axis=0), node("Gather", "label order", "best_labels", axis=0),
    ]
    weights |= {"most": np.array([20]), "overlap": np.array([0.5], F), "class_column": np.array(1), "box_column": np.array(2),
                "zero": np.array([0]), "five": np.array([5])}
    inputs = {"x": (FLOAT, [1, 3, 16, 16]), "threshold": (FLOAT, [1])}
    outputs = {"best_boxes": (FLOAT, ["k", 4]), "best_scores": (FLOAT, ["k"]), "best_labels": (INT64, ["k"]), "scores": (FLOAT, [1, classes, 80])}
    if heavy_tail:
        nodes += [
            node("Shape", "order", "n"), node("ConstantOfShape", "n", "images", value=numpy_helper.from_array(np.array([0]))),
            node("Mul", "best_boxes sixteen", "corners"), node("RoiAlign", "f1 corners images", "regions", output_height=5, output_width=5),
        ]
        conv("regions", "inside", 8, 6)
        nodes += [node("GlobalAveragePool", "inside", "pooled"), node("Flatten", "pooled", "features")]
        weights["sixteen"] = np.array(16, F)
        outputs["features"] = (FLOAT, ["k", 6])
    return model(nodes, inputs, outputs, weights)


def image(seed=0):
    return np.random.default_rng(seed).standard_normal((1, 3, 16, 16)).astype(F)


# Nothing is found, some boxes are, and all that do not overlap.
THRESHOLDS = (2.0, 0.6, 0.0)


def small(op_nodes, inputs, outputs, weights=(), opset=17):
    return model(op_nodes, inputs, outputs, dict(weights), opset)


def vector(*values):
    return np.array(values, F)


def loop_of_data():
    """As many turns as an element says; each adds a slice to a scan output."""
    body = helper.make_graph(
        [node("Cast", "i", "number", to=FLOAT), node("Add", "number state", "sum"), node("Identity", "go_on", "go_on_out"),
         node("Identity", "sum", "slice")], "body",
        [helper.make_tensor_value_info("i", INT64, []), helper.make_tensor_value_info("go_on", BOOL, []),
         helper.make_tensor_value_info("state", FLOAT, [2])],
        [helper.make_tensor_value_info("go_on_out", BOOL, []), helper.make_tensor_value_info("sum", FLOAT, [2]),
         helper.make_tensor_value_info("slice", FLOAT, [2])])
    return [node("Relu", "x", "start"), node("ReduceMax", "x", "turns", keepdims=0), node("Cast", "turns", "n", to=INT64),
            helper.make_node("Loop", ["n", "", "start"], ["last", "all"], body=body)]


def branch_of_data():
    """An If with branches of different shapes, as torchvision writes around an empty result; outputs are of the one that is taken."""
    value = helper.make_tensor_value_info
    then = helper.make_graph([node("NonZero", "y", "found"), node("Cast", "found", "then_out", to=FLOAT)], "then", [],
                             [value("then_out", FLOAT, None)])
    other = helper.make_graph([node("Identity", "y", "else_out")], "else", [], [value("else_out", FLOAT, None)])
    return [node("Relu", "x", "y"), node("ReduceSum", "y", "sum", keepdims=0), node("Greater", "sum limit", "many"),
            helper.make_node("If", ["many"], ["z"], then_branch=then, else_branch=other)]


# Name: model, and the inputs of some runs. ("x": a vector, unless said otherwise)
X4, X23 = {"x": (FLOAT, [4])}, {"x": (FLOAT, [2, 3])}
VECTORS = [{"x": vector(*values)} for values in ((0, 0, 0, 0), (1, -2, 0, 3), (3, 2, 1, 4), (1, 1, 1, 1))]
MATRICES = [{"x": np.array(values, F)} for values in (np.zeros((2, 3)), [[1, 0, -1], [0, 2, 0]], np.ones((2, 3)))]
CASES = {
    "non_zero": (small([node("Relu", "x", "y"), node("NonZero", "y", "z")], X23, {"z": (INT64, [2, "n"])}), MATRICES),
    "non_zero_of_an_input": (small([node("NonZero", "x", "z")], X23, {"z": (INT64, [2, "n"])}), MATRICES),
    "compress": (small([node("Greater", "x zero", "c"), node("Compress", "x c", "y", axis=0), node("ReduceSum", "y", "s", keepdims=0)], X4,
                       {"y": (FLOAT, ["n"]), "s": (FLOAT, [])}, {"zero": vector(0)}), VECTORS),
    "unique": (small([node("Relu", "x", "y"), node("Unique", "y", "z first inverse count", sorted=1), node("Sqrt", "z", "root")], X4,
                     {"root": (FLOAT, ["n"]), "inverse": (INT64, [4]), "count": (INT64, ["n"])}), VECTORS),
    "topk": (small([node("ReduceMax", "x", "most", keepdims=1), node("Cast", "most", "k", to=INT64), node("TopK", "x k", "y i"),
                    node("Softmax", "y", "z", axis=0)], X4, {"z": (FLOAT, ["k"]), "i": (INT64, ["k"])}), VECTORS[1:]),
    "slice": (small([node("ReduceSum", "x", "sum", keepdims=1), node("Cast", "sum", "end", to=INT64), node("Slice", "x zero end", "y"),
                     node("MatMul", "x column", "product"), node("Mul", "y product", "z")], X4, {"z": (FLOAT, ["n"])},
                    {"zero": np.array([0]), "column": np.ones((4, 1), F)}), VECTORS),
    "range_and_expand": (small([node("ReduceMax", "x", "most", keepdims=0), node("Cast", "most", "n", to=INT64),
                                node("Range", "zero n one", "r"), node("Unsqueeze", "n axes", "shape"), node("Expand", "half shape", "e"),
                                node("Cast", "r", "f", to=FLOAT), node("Add", "e f", "y")], X4, {"y": (FLOAT, ["n"])},
                               {"zero": np.array(0), "one": np.array(1), "axes": np.array([0]), "half": vector(0.5)}), VECTORS),
    "loop": (small(loop_of_data(), {"x": (FLOAT, [2])}, {"last": (FLOAT, [2]), "all": (FLOAT, ["n", 2])}),
             [{"x": vector(0, -1)}, {"x": vector(3, 1)}]),
    "branch": (small(branch_of_data(), X4, {"z": (FLOAT, None)}, {"limit": np.array(3, F)}), VECTORS),
    "sequence": (small([node("Relu", "x", "y"), node("SplitToSequence", "y", "parts", axis=0, keepdims=1), node("NonZero", "y", "where"),
                        node("Gather", "where first", "places", axis=1), node("Min", "places", "place"), node("Squeeze", "place", "at"),
                        node("SequenceAt", "parts at", "z")], X4, {"z": (FLOAT, [1])}, {"first": np.array([0])}), VECTORS[1:]),
    "twice": (small([node("Relu", "x", "y"), node("NonZero", "y", "z"), node("Transpose", "z", "zt", perm=[1, 0]),
                     node("GatherND", "y zt", "picked"), node("Greater", "picked one", "large"), node("Compress", "picked large", "w")],
                    X23, {"w": (FLOAT, ["n"]), "y": (FLOAT, [2, 3])}, {"one": np.array(1, F)}), MATRICES),
}

def found_boxes():
    """Nodes in front of heads of regions: non-maximum suppression leaves the boxes whose scores are above one half. Gives a feature map,
    the corners of the boxes, and the number of each box's image."""
    return [
        node("Conv", "image w_backbone", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "features"),
        node("NonMaxSuppression", "boxes scores most all half", "selected"), node("Gather", "selected box_column", "place", axis=1),
        node("Squeeze", "boxes zero", "boxes_of_image"), node("Gather", "boxes_of_image place", "corners", axis=0),
        node("Shape", "place", "count"), node("ConstantOfShape", "count", "images", value=numpy_helper.from_array(np.array([0]))),
        node("RoiAlign", "features corners images", "regions", output_height=4, output_width=4, sampling_ratio=2),
    ]


BOXES, CHANNELS, TOKENS = 70, 8, 70
BOX_INPUTS = {"image": (FLOAT, [1, 3, 16, 16]), "boxes": (FLOAT, [1, BOXES, 4]), "scores": (FLOAT, [1, 1, BOXES])}


def random_weights(seed, **shapes):
    generator = np.random.default_rng(seed)
    return {name: (generator.standard_normal(shape) * 0.2).astype(F) for name, shape in shapes.items()}


def box_weights():
    return random_weights(1, w_backbone=(CHANNELS, 3, 3, 3)) | {
        "most": np.array([1000]), "all": np.array([1.0], F), "half": np.array([0.5], F), "box_column": np.array(2), "zero": np.array([0])}


def box_head():
    """As the head of Faster R-CNN: two dense layers over all boxes, then classes and their boxes."""
    nodes = found_boxes() + [
        node("Flatten", "regions", "flat"), node("Gemm", "flat w6 b6", "fc6", transB=1), node("Relu", "fc6", "r6"),
        node("Gemm", "r6 w7 b7", "fc7", transB=1), node("Relu", "fc7", "r7"), node("Gemm", "r7 w_class b_class", "logits", transB=1),
        node("Softmax", "logits", "classes", axis=1), node("Gemm", "r7 w_box b_box", "offsets", transB=1),
        # A sum over all boxes has no rows.
        node("ReduceSum", "classes zero", "per_class", keepdims=0),
    ]
    weights = box_weights() | random_weights(2, w6=(48, CHANNELS * 16), b6=(48,), w7=(32, 48), b7=(32,), w_class=(5, 32), b_class=(5,),
                                             w_box=(20, 32), b_box=(20,))
    outputs = {"classes": (FLOAT, ["n", 5]), "offsets": (FLOAT, ["n", 20]), "per_class": (FLOAT, [5])}
    return model(nodes, BOX_INPUTS, outputs, weights)


def mask_head():
    """As the head of Mask R-CNN, with the sizes of a reshape computed as PyTorch writes them."""
    nodes = found_boxes() + [
        node("Conv", "regions w1 b1", "m1", pads=[1, 1, 1, 1]), node("Relu", "m1", "r1"), node("Conv", "r1 w2 b2", "m2", pads=[1, 1, 1, 1]),
        node("Relu", "m2", "r2"), node("ConvTranspose", "r2 w3 b3", "m3", strides=[2, 2]), node("Relu", "m3", "r3"),
        node("Conv", "r3 w4 b4", "m4"), node("Sigmoid", "m4", "masks"),
        node("Shape", "masks", "shape"), node("Gather", "shape first", "boxes_found", axis=0), node("Unsqueeze", "boxes_found zero", "head"),
        node("Concat", "head rest", "target", axis=0), node("Reshape", "masks target", "flat"), node("ReduceMax", "flat", "largest", axes=[1]),
    ]
    weights = box_weights() | random_weights(3, w1=(8, CHANNELS, 3, 3), b1=(8,), w2=(8, 8, 3, 3), b2=(8,), w3=(8, 4, 2, 2), b3=(4,),
                                             w4=(3, 4, 1, 1), b4=(3,)) | {"first": np.array(0), "rest": np.array([3 * 8 * 8])}
    return model(nodes, BOX_INPUTS, {"masks": (FLOAT, ["n", 3, 8, 8]), "largest": (FLOAT, ["n", 1])}, weights)


def detector_of_any_size():
    """One whose batch, height and width are the caller's; each box that is left is cut out of the features of its image."""
    weights = random_weights(11, w_backbone=(CHANNELS, 3, 3, 3), w_box=(4, CHANNELS, 1, 1), w_score=(2, CHANNELS, 1, 1),
                             w6=(48, CHANNELS * 16), b6=(48,), w7=(5, 48), b7=(5,))
    weights |= {"box_shape": np.array([0, 4, -1]), "score_shape": np.array([0, 2, -1]), "most": np.array([4]), "all": np.array([0.7], F),
                "image_and_box": np.array([0, 2]), "image_column": np.array(0), "sixteen": np.array(16, F)}
    nodes = [
        node("Conv", "image w_backbone", "c", pads=[1, 1, 1, 1], strides=[2, 2]), node("Relu", "c", "features"),
        node("Conv", "features w_box", "box_map"), node("Reshape", "box_map box_shape", "box_rows"), node("Sigmoid", "box_rows", "box_last"),
        node("Transpose", "box_last", "boxes", perm=[0, 2, 1]),
        node("Conv", "features w_score", "score_map"), node("Reshape", "score_map score_shape", "logits"), node("Sigmoid", "logits", "scores"),
        node("NonMaxSuppression", "boxes scores most all threshold", "selected"),
        node("Gather", "selected image_and_box", "places", axis=1), node("GatherND", "boxes places", "found"),
        node("Gather", "selected image_column", "images", axis=1), node("GatherND", "scores selected", "found_scores"),
        node("Mul", "found sixteen", "corners"),
        node("RoiAlign", "features corners images", "regions", output_height=4, output_width=4, sampling_ratio=2),
        node("Flatten", "regions", "flat"), node("Gemm", "flat w6 b6", "fc6", transB=1), node("Relu", "fc6", "r6"),
        node("Gemm", "r6 w7 b7", "fc7", transB=1), node("Softmax", "fc7", "classes", axis=1),
    ]
    inputs = {"image": (FLOAT, ["batch", 3, "height", "width"]), "threshold": (FLOAT, [1])}
    outputs = {"found": (FLOAT, ["n", 4]), "found_scores": (FLOAT, ["n"]), "images": (INT64, ["n"]), "classes": (FLOAT, ["n", 5])}
    return model(nodes, inputs, outputs, weights)


def image_of(shape, threshold=0.5):
    return {"image": np.random.default_rng(shape[0]).standard_normal(shape).astype(F), "threshold": vector(threshold)}


def dense_layers_of_some_rows():
    """Rows are chosen by an input; dense layers look at each. However many rows there are, the layers take the same types."""
    weights = random_weights(12, w_in=(12, 12), w1=(12, 64), b1=(64,), w2=(64, 7))
    nodes = [
        node("MatMul", "x w_in", "tokens"), node("Compress", "tokens chosen", "rows", axis=0), node("MatMul", "rows w1", "p1"),
        node("Add", "p1 b1", "a1"), node("Relu", "a1", "r1"), node("MatMul", "r1 w2", "y"),
    ]
    return model(nodes, {"x": (FLOAT, ["n", 12]), "chosen": (BOOL, ["n"])}, {"y": (FLOAT, ["m", 7])}, weights)


def rows_of(count, chosen):
    return {"x": np.random.default_rng(count).standard_normal((count, 12)).astype(F), "chosen": np.arange(count) < chosen}


def cut_in_one_profile():
    """Where the shape of the input decides which branch is taken, one profile is cut and another is not."""
    value = helper.make_tensor_value_info
    then = helper.make_graph([node("NonZero", "y", "places"), node("Cast", "places", "then_out", to=FLOAT)], "then", [],
                             [value("then_out", FLOAT, None)])
    other = helper.make_graph([node("Mul", "y y", "else_out")], "else", [], [value("else_out", FLOAT, None)])
    nodes = [node("Relu", "x", "y"), node("Shape", "x", "shape"), node("Gather", "shape last", "extent"), node("Greater", "extent three", "many"),
             helper.make_node("If", ["many"], ["z"], then_branch=then, else_branch=other), node("Sqrt", "z", "root")]
    return model(nodes, {"x": (FLOAT, [2, "n"])}, {"root": (FLOAT, [2, "m"])}, {"last": np.array(1), "three": np.array(3)})


def loop_in_front_of_the_cut():
    """As many turns as an element says, of a state whose type stays; behind them, what is not zero."""
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [node("Mul", "state half", "next"), node("Identity", "go_on", "go_on_out")], "body",
        [value("i", INT64, []), value("go_on", BOOL, []), value("state", FLOAT, ["n"])],
        [value("go_on_out", BOOL, []), value("next", FLOAT, ["n"])])
    nodes = [node("ReduceMax", "x", "turns", keepdims=0), node("Cast", "turns", "count", to=INT64),
             helper.make_node("Loop", ["count", "", "x"], ["last"], body=body), node("Floor", "last", "whole"), node("NonZero", "whole", "places")]
    return model(nodes, {"x": (FLOAT, ["n"])}, {"last": (FLOAT, ["n"]), "places": (INT64, [1, "m"])}, {"half": vector(0.5)})


def branch_of_known_types():
    """Control flow, and nothing behind it."""
    value = helper.make_tensor_value_info
    then = helper.make_graph([node("MatMul", "x w", "then_out")], "then", [], [value("then_out", FLOAT, None)])
    other = helper.make_graph([node("Neg", "x", "else_out")], "else", [], [value("else_out", FLOAT, None)])
    nodes = [node("ReduceSum", "x", "sum", keepdims=0), node("Greater", "sum zero", "positive"),
             helper.make_node("If", ["positive"], ["y"], then_branch=then, else_branch=other)]
    return model(nodes, {"x": (FLOAT, ["n", 6])}, {"y": (FLOAT, ["n", 6])}, random_weights(13, w=(6, 6)) | {"zero": np.array(0, F)})


def boxes_of(count, seed=0):
    generator = np.random.default_rng(seed)
    corner = generator.uniform(0, 8, (1, BOXES, 2))
    scores = np.where(np.arange(BOXES) < count, 0.9, 0.1) - np.arange(BOXES) * 1e-3
    return {"image": generator.standard_normal((1, 3, 16, 16)).astype(F), "scores": scores.astype(F).reshape(1, 1, BOXES),
            "boxes": np.concatenate([corner, corner + generator.uniform(1, 8, (1, BOXES, 2))], axis=2).astype(F)}


def mixture_of_experts():
    """Each token goes to one of two experts, which are told apart by where an input says so."""
    nodes, weights = [], {"zeros": np.zeros((TOKENS, 12), F), "flat": np.array([-1])}
    nodes.append(node("MatMul", "x w_in", "tokens"))
    weights |= random_weights(4, w_in=(12, 12))
    total = "zeros"
    for expert in range(2):
        e = str(expert)
        weights |= {"number" + e: np.array(expert)} | random_weights(5 + expert, **{"up" + e: (12, 48), "down" + e: (48, 12), "b" + e: (48,)})
        nodes += [
            node("Equal", f"route number{e}", "mine" + e), node("NonZero", "mine" + e, "where" + e), node("Reshape", f"where{e} flat", "at" + e),
            node("Gather", f"tokens at{e}", "rows" + e, axis=0), node("MatMul", f"rows{e} up{e}", "u" + e), node("Add", f"u{e} b{e}", "a" + e),
            node("Sigmoid", "a" + e, "s" + e), node("Mul", f"a{e} s{e}", "h" + e), node("MatMul", f"h{e} down{e}", "d" + e),
            node("Transpose", "where" + e, "places" + e, perm=[1, 0]), node("ScatterND", f"{total} places{e} d{e}", "y" + e),
        ]
        total = "y" + e
    return model(nodes, {"x": (FLOAT, [TOKENS, 12]), "route": (INT64, [TOKENS])}, {total: (FLOAT, [TOKENS, 12])}, weights)


def tokens_of(count):
    return {"x": np.random.default_rng(count).standard_normal((TOKENS, 12)).astype(F), "route": (np.arange(TOKENS) >= count).astype(np.int64)}


# Name: model, inputs for a number of rows, operators that must be placed.
ROWS = {
    "box_head": (box_head, boxes_of, {"vision.roi_align", "nn.softmax"}),
    "mask_head": (mask_head, boxes_of, {"vision.roi_align", "nn.conv2d"}),
    "mixture_of_experts": (mixture_of_experts, tokens_of, {"take", "nn.matmul"}),
}
# Name: model, shapes of each profile, and inputs of some runs, which go back and forth between the profiles.
PROFILES = {
    "detector": (detector_of_any_size, [["image=1x3x16x16"], ["image=2x3x24x16"], ["image=1x3x32x32"]],
                 [image_of(shape, threshold) for threshold in (0.5, 0.6, 2.0) for shape in ((2, 3, 24, 16), (1, 3, 16, 16), (1, 3, 32, 32))]),
    "layers": (dense_layers_of_some_rows, [["x=40x12", "chosen=40"], ["x=9x12", "chosen=9"]],
               [rows_of(40, 37), rows_of(9, 9), rows_of(9, 0), rows_of(40, 1)]),
    "cut_in_one": (cut_in_one_profile, [["x=2x3"], ["x=2x4"]],
                   [{"x": np.array(values, F)} for values in ([[1, 0, 2], [0, -1, 4]], [[1, 0, 2, 0], [0, -1, 4, 1]], [[0, 0, 0], [1, 1, 1]])]),
    "cut_in_the_other": (cut_in_one_profile, [["x=2x5"], ["x=2x2"]],
                         [{"x": np.array(values, F)} for values in ([[1, 2], [0, -1]], [[1, 0, 2, 0, 3], [0, -1, 4, 1, 0]])]),
    "loop": (loop_in_front_of_the_cut, [["x=4"], ["x=2"]], [{"x": vector(3, 8, 1, 0)}, {"x": vector(-1, 0)}, {"x": vector(2, 5)}]),
    "branch": (branch_of_known_types, [["x=2x6"], ["x=5x6"]], [{"x": np.full((rows, 6), sign, F)} for rows in (2, 5) for sign in (1, -1)]),
}
# None, one, as many as the smaller and the larger program take and one more, and all.
ROW_COUNTS = (0, 1, 4, 5, 32, 33, 70)


def shape_flags(profiles):
    return [word for profile in profiles for shape in profile for word in ("--shape", shape)]


def expected(proto, feed):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    return dict(zip([output.name for output in proto.graph.output], session.run(None, feed)))


class RemainderTest(InOneFolderTestCase):
    def collage(self, *words, code=0):
        return super().collage(*words, code=code)

    def save(self, name, proto):
        path = self.folder / (name + ".onnx")
        path.write_bytes(proto.SerializeToString())
        return path

    def compile(self, name, proto, *words):
        program = self.folder / (name + ".collage")
        budget = [] if "--cache-only" in words else ["--budget", "2s"]
        done = self.collage("compile", self.save(name, proto), "-o", program, "--cache", self.cache, *budget, "--threads", 1, *words)
        return program, done

    def assert_right(self, proto, file, feed, *words):
        np.savez(self.folder / "in.npz", **feed)
        output = self.folder / "out"
        self.collage("run", file, "--inputs", self.folder / "in.npz", "--output", output, *words)
        self.assert_equal(expected(proto, feed), {one.name: np.load(output / (one.name + ".npy")) for one in proto.graph.output})

    def assert_equal(self, wanted, found):
        for name, value in wanted.items():
            self.assertEqual(found[name].shape, value.shape, name)
            self.assertEqual(found[name].dtype, value.dtype, name)
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5, err_msg=name)

    def test_the_reference_executor_gives_what_onnxruntime_gives(self):
        for name, (proto, feeds) in CASES.items():
            for i, feed in enumerate(feeds):
                with self.subTest(model=name, run=i):
                    self.assert_right(proto, self.save(name, proto), feed, "--reference")

    def test_programs_give_what_onnxruntime_gives(self):
        for name, (proto, feeds) in CASES.items():
            program, _ = self.compile(name, proto)
            for i, feed in enumerate(feeds):
                with self.subTest(model=name, run=i):
                    self.assert_right(proto, program, feed)

    def test_a_detector_finds_what_onnxruntime_finds(self):
        for heavy_tail in (False, True):
            proto = detector(heavy_tail=heavy_tail)
            program, done = self.compile("detector", proto)
            counts = set()
            for threshold in THRESHOLDS:
                feed = {"x": image(), "threshold": vector(threshold)}
                with self.subTest(heavy_tail=heavy_tail, threshold=threshold):
                    counts.add(len(expected(proto, feed)["best_scores"]))
                    self.assert_right(proto, program, feed)
                    self.assert_right(proto, program, feed, "--recompile")
            self.assertTrue({0, 5} <= counts, counts)
            # The backbone is placed, and the report says what is not.
            report = json.loads(self.collage("explain", program, "--json").stdout)
            placed = {operator for entry in report["plan"] for operator in entry["operators"]}
            self.assertIn("nn.conv2d", placed)
            self.assertIn("NonMaxSuppression", report["remainder"])
            self.assertIn("behind the plan, on the reference kernels: ", done.stdout)

    def test_regions_of_rows_give_what_onnxruntime_gives(self):
        for name, (make, feed_of, operators) in ROWS.items():
            proto = make()
            program, done = self.compile(name, proto)
            with self.subTest(model=name):
                self.assertIn("rows, which run 32 or 4 rows at a time", done.stdout)
                report = json.loads(self.collage("explain", program, "--json").stdout)
                entries = [entry for entry in report["plan"] if entry["partition"].startswith("rows_")]
                placed = {operator for entry in entries for operator in entry["operators"]}
                self.assertTrue(operators <= placed, placed)
                self.assertTrue(any(entry["partition"].startswith("rows_0_by_4:") for entry in entries))
            for count in ROW_COUNTS:
                with self.subTest(model=name, rows=count):
                    self.assert_right(proto, program, feed_of(count))
                    self.assert_right(proto, self.folder / (name + ".onnx"), feed_of(count), "--reference")
            with self.subTest(model=name, machine_code="none"):
                self.assert_right(proto, program, feed_of(5), "--recompile")

    def test_steps_of_regions_are_timed(self):
        program, _ = self.compile("mask_head", mask_head())
        np.savez(self.folder / "in.npz", **boxes_of(33))
        done = self.collage("bench", program, "--iterations", 2, "--warmup", 0, "--inputs", self.folder / "in.npz", "--profile", "--json", "-")
        calls = {step["calls"] for step in json.loads(done.stdout)["profile"]}
        self.assertLessEqual({2}, calls)  # the head, or one block of 32 rows

    def test_nodes_of_regions_may_be_pinned(self):
        proto = box_head()
        for one in proto.graph.node:
            one.name = "node_" + one.output[0]
        program, _ = self.compile("pinned", proto, "--pin", "node_fc6=reference")
        report = json.loads(self.collage("explain", program, "--json").stdout)
        pinned = [entry for entry in report["plan"] if "node_fc6" in entry["nodes"]]
        self.assertEqual({entry["backend"] for entry in pinned}, {"reference"})
        self.assertEqual({entry["partition"].split(":")[0] for entry in pinned}, {"rows_0_by_32", "rows_0_by_4"})
        self.assert_right(proto, program, boxes_of(5))

    def test_a_model_without_such_extents_has_no_remainder(self):
        program, done = self.compile("relu", small([node("Relu", "x", "y")], X4, {"y": (FLOAT, [4])}))
        self.assertEqual(json.loads(self.collage("explain", program, "--json").stdout)["remainder"], "")
        self.assertNotIn("behind the plan", done.stdout)

    def test_bench_times_the_whole(self):
        program, _ = self.compile("detector", detector())
        done = self.collage("bench", program, "--iterations", 3, "--warmup", 1, "--random", 1)
        self.assertIn("3 iterations", done.stdout)

    def test_an_unknown_operator_behind_the_cut_is_an_error_of_the_compile(self):
        proto = small([node("NonZero", "x", "z"), helper.make_node("Nowhere", ["z"], ["w"], name="lost", domain="elsewhere")], X4,
                      {"w": (INT64, ["n"])})
        done = self.collage("compile", self.save("lost", proto), "-o", self.folder / "lost.collage", "--cache", self.cache, code=2)
        self.assertIn("node 'lost' (Nowhere, opset 17): this operator of the domain 'elsewhere' is not supported", done.stderr)

    def test_an_error_of_a_run_names_the_node(self):
        proto = small([node("NonZero", "x", "z"), node("Transpose", "z", "zt", perm=[1, 0]),
                       helper.make_node("Reshape", ["zt", "two"], ["w"], name="pair")], X4, {"w": (INT64, [2])}, {"two": np.array([2])})
        program, _ = self.compile("pair", proto)
        self.assert_right(proto, program, {"x": vector(1, 0, 0, 1)})
        np.savez(self.folder / "in.npz", x=vector(1, 1, 1, 1))
        done = self.collage("run", program, "--inputs", self.folder / "in.npz", code=2)
        self.assertIn("node 'pair' (Reshape, opset 17)", done.stderr)
        # What is compared runs to its end.
        done = self.collage("compare", program, program, "--inputs", self.folder / "in.npz", "--duration", 1, "--threads", 2, code=2)
        self.assertIn("node 'pair' (Reshape, opset 17)", done.stderr)

    def test_each_profile_gives_what_onnxruntime_gives(self):
        for name, (make, shapes, feeds) in PROFILES.items():
            proto = make()
            program, _ = self.compile(name, proto, *shape_flags(shapes))
            for i, feed in enumerate(feeds):
                with self.subTest(model=name, run=i):
                    self.assert_right(proto, program, feed)
                    self.assert_right(proto, program, feed, "--recompile")

    def test_the_report_says_of_each_profile_what_lies_behind_it(self):
        program, done = self.compile("detector", detector_of_any_size(), *shape_flags(PROFILES["detector"][1]))
        self.assertEqual(done.stdout.count("behind the plan, on the reference kernels: "), 3)
        profiles = json.loads(self.collage("explain", program, "--json").stdout)["profiles"]
        self.assertEqual([profile["inputs"]["image"] for profile in profiles], [[1, 3, 16, 16], [2, 3, 24, 16], [1, 3, 32, 32]])
        for profile in profiles:
            self.assertIn("NonMaxSuppression", profile["remainder"])
            self.assertTrue(any(entry["partition"].startswith("rows_0_by_32:") for entry in profile["plan"]))
        program, _ = self.compile("cut_in_one", cut_in_one_profile(), *shape_flags(PROFILES["cut_in_one"][1]))
        profiles = json.loads(self.collage("explain", program, "--json").stdout)["profiles"]
        self.assertEqual([bool(profile["remainder"]) for profile in profiles], [False, True])

    def test_profiles_share_the_programs_of_equal_regions_and_all_weights(self):
        proto = dense_layers_of_some_rows()
        program, _ = self.compile("layers", proto, *shape_flags(PROFILES["layers"][1]))
        profiles = json.loads(self.collage("explain", program, "--json").stdout)["profiles"]
        of_rows = [[entry for entry in profile["plan"] if entry["partition"].startswith("rows_0_by_")] for profile in profiles]
        self.assertTrue(of_rows[0])
        self.assertEqual(of_rows[0], of_rows[1])
        # Candidates of the regions are those of the first profile.
        self.assertLess(profiles[1]["candidates"]["found"], profiles[0]["candidates"]["found"])

    def test_the_steps_of_one_profile_are_timed(self):
        program, _ = self.compile("layers", dense_layers_of_some_rows(), *shape_flags(PROFILES["layers"][1]))
        np.savez(self.folder / "in.npz", **rows_of(9, 9))
        done = self.collage("bench", program, "--iterations", 2, "--warmup", 0, "--inputs", self.folder / "in.npz", "--profile", "--json", "-")
        report = json.loads(done.stdout)
        self.assertEqual(report["inputs"]["x"], [9, 12])
        self.assertTrue(report["profile"])

    def test_another_shape_lists_the_profiles_or_is_compiled_on_demand(self):
        proto = detector_of_any_size()
        program, _ = self.compile("detector", proto, *shape_flags(PROFILES["detector"][1][:2]))
        feed = image_of((1, 3, 24, 24))
        np.savez(self.folder / "in.npz", **feed)
        done = self.collage("run", program, "--inputs", self.folder / "in.npz", code=2)
        self.assertIn("image=1x3x16x16", done.stderr)
        words = ["--compile-on-demand", self.folder / "detector.onnx", "--target", "cpu -compiler=reference", "--cache", self.cache]
        for _ in range(2):
            self.assert_right(proto, program, feed, *words)
        self.assertEqual(len(list((self.folder / "detector.collage.profiles").glob("*.collage"))), 1)
        self.assert_right(proto, program, image_of((2, 3, 24, 16)), *words)
        self.assertEqual(len(list((self.folder / "detector.collage.profiles").glob("*.collage"))), 1)

    def test_the_same_model_gives_the_same_file(self):
        self.compile("detector", detector())
        first = self.compile("detector", detector(), "--cache-only")[0].read_bytes()
        second, _ = self.compile("detector", detector(), "--cache-only")
        self.assertEqual(first, second.read_bytes())


if __name__ == "__main__":
    main()
