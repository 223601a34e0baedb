"""A detector of three heads, as PyTorch's exporter writes it."""

import numpy as np

from exported_graph import ExportedGraph

SIZE = 640
STRIDES = (8, 16, 32)
CLASSES = 80
# A side of a box is the expectation over so many distances, in steps of the stride.
DISTANCES = 16
# Places then differ in their boxes and classes, without being certain of one.
HEAD_VARIANCE = 2.0


def _conv(g, data, features, kernel, stride=1):
    return g.silu(g.conv(data, features, kernel, stride))


def _split_block(g, data, features, repetitions, has_shortcut=True):
    """Half of the features as they are and half through bottlenecks, whose results are all kept."""
    half = features // 2
    parts = g.split(_conv(g, data, features, 1), [half, half], axis=1)
    for _ in range(repetitions):
        inner = _conv(g, _conv(g, parts[-1], half, 3), half, 3)
        parts.append(g.same("Add", [parts[-1], inner]) if has_shortcut else inner)
    return _conv(g, g.concat(parts), features, 1)


def _pyramid_pool(g, data, features):
    parts = [_conv(g, data, features // 2, 1)]
    for _ in range(3):
        parts.append(g.max_pool(parts[-1], 5, 1, 2))
    return _conv(g, g.concat(parts), features, 1)


def _upsample(g, data):
    sizes = {"coordinate_transformation_mode": "asymmetric", "mode": "nearest", "nearest_mode": "floor"}
    return g.same("Resize", [data, "", g.doubling], **sizes)


def _backbone(g, data):
    """The planes of strides 8, 16 and 32."""
    planes = []
    data = _conv(g, data, 16, 3, 2)
    for features, repetitions in ((32, 1), (64, 2), (128, 2), (256, 1)):
        data = _split_block(g, _conv(g, data, features, 3, 2), features, repetitions)
        planes.append(data)
    return planes[1], planes[2], _pyramid_pool(g, data, 256)


def _neck(g, fine, middle, coarse):
    """Down from coarse to fine and up again, so that each plane knows of the others."""
    middle = _split_block(g, g.concat([_upsample(g, coarse), middle]), 128, 1, has_shortcut=False)
    fine = _split_block(g, g.concat([_upsample(g, middle), fine]), 64, 1, has_shortcut=False)
    middle = _split_block(g, g.concat([_conv(g, fine, 64, 3, 2), middle]), 128, 1, has_shortcut=False)
    coarse = _split_block(g, g.concat([_conv(g, middle, 128, 3, 2), coarse]), 256, 1, has_shortcut=False)
    return fine, middle, coarse


def _head(g, data):
    """Distances of the four sides, and classes, of each place of a plane."""
    boxes = g.conv(_conv(g, _conv(g, data, 64, 3), 64, 3), 4 * DISTANCES, 1, scale=HEAD_VARIANCE)
    classes = g.conv(_conv(g, _conv(g, data, CLASSES, 3), CLASSES, 3), CLASSES, 1, scale=HEAD_VARIANCE)
    return g.concat([boxes, classes])


def _centers():
    """The middles of all places in units of their stride, [1, 2, places], and the strides, [1, places]."""
    middles, strides = [], []
    for stride in STRIDES:
        side = np.arange(SIZE // stride, dtype=np.float32) + 0.5
        y, x = np.meshgrid(side, side, indexing="ij")
        middles.append(np.stack([x.ravel(), y.ravel()]))
        strides.append(np.full([1, side.size**2], stride, np.float32))
    return np.concatenate(middles, axis=1)[None], np.concatenate(strides, axis=1)


def _boxes(g, distances, places):
    """Middle, width and height in pixels, from the distributions of distances."""
    split = g.reshape(distances, [1, 4, DISTANCES, places])
    weighed = g.node("Softmax", [g.transpose(split, [0, 2, 1, 3])], axis=1)
    steps = g.initializer("distances.weight", np.arange(DISTANCES, dtype=np.float32).reshape(1, DISTANCES, 1, 1))
    sizes = {"dilations": [1, 1], "kernel_shape": [1, 1], "pads": [0, 0, 0, 0], "strides": [1, 1]}
    sides = g.reshape(g.node("Conv", [weighed, steps], group=1, **sizes), [1, 4, places])
    before, behind = g.split(sides, [2, 2], axis=1)
    middles, strides = _centers()
    middles = g.initializer("middles", middles)
    low, high = g.node("Sub", [middles, before]), g.node("Add", [middles, behind])
    middle = g.node("Div", [g.node("Add", [low, high]), g.scalar(2)])
    joined = g.node("Concat", [middle, g.node("Sub", [high, low])], axis=1)
    return g.node("Mul", [joined, g.initializer("strides", strides)])


def yolov8n(seed):
    """YOLOv8n (Jocher et al. 2023) on 640x640 images: boxes and scores of all 8400 places, before overlaps are suppressed."""
    g = ExportedGraph(seed, "yolov8n")
    g.doubling = g.initializer("doubling", np.array([1, 1, 2, 2], np.float32))
    planes = _neck(g, *_backbone(g, g.input("images", [1, 3, SIZE, SIZE])))
    outputs = 4 * DISTANCES + CLASSES
    flat = [g.reshape(_head(g, plane), [1, outputs, (SIZE // stride) ** 2]) for plane, stride in zip(planes, STRIDES)]
    places = sum((SIZE // stride) ** 2 for stride in STRIDES)
    distances, classes = g.split(g.node("Concat", flat, axis=2), [4 * DISTANCES, CLASSES], axis=1)
    g.node("Concat", [_boxes(g, distances, places), g.node("Sigmoid", [classes])], "output0", axis=1)
    return g.exported_model({"output0": [1, 4 + CLASSES, places]})


BUILDERS = {"yolov8n": yolov8n}
