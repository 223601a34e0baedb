"""The graph of a random model while it grows."""

import math
import random

import numpy as np
from onnx import TensorProto, helper, numpy_helper, shape_inference

OPSETS = list(range(11, 22))
STRANGE_NAMES = ["{}:0", "a/b/{}", "{} with space", "{}.weight", "größe_{}", "{}\"quoted\"", "%{}", "{}-1",
                  "@{}", "é{}'", "{}(x)", "{}[0]", "$ {};"]


class GraphMaker:
    """A graph that grows by random operators; every shape in it is known."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.opset = self.random.choice(OPSETS)
        self.batch = self.random.choice([1, 1, 1, 2, 3, 4])
        self.strange = self.random.random() < 0.2
        self.nodes, self.initializers, self.inputs = [], {}, {}
        self.shapes = {}  # of the float32 values that operators may read
        self.others = {}  # type and shape of every value that a node gives
        self.bounded = set()  # values of magnitude 1 or less
        self.counter = 0

    def chance(self, probability):
        return self.random.random() < probability

    def name(self, stem):
        self.counter += 1
        plain = f"{stem}{self.counter}"
        return self.random.choice(STRANGE_NAMES).format(plain) if self.strange else plain

    def constant(self, array, stem="w"):
        array = np.asarray(array)
        name = self.name(stem)
        if self.chance(0.15):
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        self.initializers[name] = array
        return name

    def weights(self, shape, scale=1.0, stem="w"):
        if self.chance(0.1):
            alike = [name for name, value in self.initializers.items() if value.shape == tuple(shape) and value.dtype == np.float32]
            if alike:
                return self.random.choice(alike)
        return self.constant((self.numbers.standard_normal(shape) * scale).astype(np.float32), stem)

    def ints(self, values):
        return self.constant(np.array(values, np.int64), "ints")

    def add(self, op, inputs, outputs=1, bounded=False, **attributes):
        """The names of the outputs, or None where the operator does not fit or its result is empty or large."""
        names = [self.name(op.lower()) for _ in range(outputs)]
        node = helper.make_node(op, inputs, names, name=self.name("node") if self.chance(0.7) else "", **attributes)
        types = self.infer(node)
        for name in names:
            if name not in types or any(extent < 1 for extent in types[name][1]) or math.prod(types[name][1]) > 60000:
                return None
        self.nodes.append(node)
        for name in names:
            if types[name][0] == TensorProto.FLOAT:
                self.shapes[name] = tuple(types[name][1])
                if bounded:
                    self.bounded.add(name)
        return names[0] if outputs == 1 else names

    def infer(self, node):
        values, constants = [], []
        for name in dict.fromkeys(node.input):
            if name in self.initializers:
                constants.append(numpy_helper.from_array(self.initializers[name], name))
            elif name:
                kind, shape = self.kind_of(name)
                values.append(helper.make_tensor_value_info(name, kind, shape))
        results = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in node.output]
        graph = helper.make_graph([node], "one", values, results, constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        try:
            model = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        except (shape_inference.InferenceError, ValueError, RuntimeError):
            return {}
        types = {}
        for value in list(model.graph.output) + list(model.graph.value_info):
            tensor = value.type.tensor_type
            if not tensor.HasField("shape") or any(not extent.HasField("dim_value") for extent in tensor.shape.dim):
                return {}
            types[value.name] = (tensor.elem_type, [extent.dim_value for extent in tensor.shape.dim])
            self.others[value.name] = types[value.name]
        return types

    def kind_of(self, name):
        if name in self.shapes:
            return TensorProto.FLOAT, self.shapes[name]
        return self.others[name]

    def pick(self, rank=None, least=0, last_ones=True):
        names = [name for name, shape in self.shapes.items() if (rank is None or len(shape) == rank) and len(shape) >= least]
        if not names:
            return None
        if last_ones and self.chance(0.75):
            names = names[-2:]
        return self.random.choice(names)
