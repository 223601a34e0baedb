"""Random but valid ONNX models of the operators that the reader knows, one a seed, small enough to compile in seconds."""

import numpy as np
from layer_operators import LayerOperators
from movement_operators import MovementOperators
from onnx import TensorProto, helper, numpy_helper
from pointwise_operators import PointwiseOperators


class ModelMaker(LayerOperators, PointwiseOperators, MovementOperators):
    """A whole model: inputs, operators, outputs."""

    def add_input(self):
        rank = self.random.choices([4, 3, 2], [8, 2, 2])[0]
        plane = [self.random.choice([1, 2, 5, 7, 8, 12, 14, 17, 20]) for _ in range(2)]
        channels = self.random.choice([1, 2, 3, 4, 6, 8, 9, 16, 20, 24])
        shape = {4: [self.batch, channels, *plane], 3: [self.batch, self.random.choice([5, 7, 16]), self.random.choice([8, 12, 33])],
                 2: [self.batch, self.random.choice([1, 10, 33, 64])]}[rank]
        name = self.name("input")
        self.inputs[name] = tuple(shape)
        self.shapes[name] = tuple(shape)

    def make(self):
        for _ in range(self.random.choice([1, 1, 1, 2, 3])):
            self.add_input()
        steps = {self.conv: 14, self.conv_transpose: 4, self.pool: 5, self.global_pool: 1, self.batch_norm: 3, self.other_norm: 3,
                 self.decomposed_layer_norm: 2, self.gelu: 2, self.activation: 8, self.binary: 8, self.where: 2, self.concat: 4,
                 self.split: 3,
                 self.slice: 3, self.pad: 3, self.transpose: 2, self.channel_shuffle: 2, self.reshape: 4, self.gather: 2, self.resize: 3,
                 self.other_movement: 2, self.gemm: 4, self.matmul: 5, self.softmax: 3, self.reduce: 3, self.dropout: 1}
        count = self.random.randint(1, 16)
        for _ in range(200):
            if len(self.nodes) >= count and len(self.shapes) > len(self.inputs):
                break
            self.random.choices(list(steps), list(steps.values()))[0]()
        return self.model()

    def outputs(self):
        read = {name for node in self.nodes for name in node.input}
        made = [name for name in self.shapes if name not in self.inputs]
        ends = [name for name in made if name not in read] or made[-1:]
        dead = [name for name in ends if len(ends) > 1 and self.chance(0.15)]
        outputs = [name for name in ends if name not in dead] or ends[:1]
        if self.chance(0.25) and made:
            outputs.append(self.random.choice(made))
        if self.chance(0.06):
            outputs.append(self.random.choice(list(self.inputs)))
        floats = [name for name, value in self.initializers.items() if value.dtype == np.float32 and value.size]
        if self.chance(0.06) and floats:
            outputs.append(self.random.choice(floats))
        return list(dict.fromkeys(outputs))

    def model(self):
        made_by_node = {name for node in self.nodes for name in node.output}
        initializers = {name: value for name, value in self.initializers.items() if name not in made_by_node}
        symbolic = self.chance(0.15)
        self.symbolic = symbolic
        values = []
        for name, shape in self.inputs.items():
            extents = ["batch" if symbolic and i == 0 else extent for i, extent in enumerate(shape)]
            values.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, extents))
        if self.chance(0.1):
            for name, value in initializers.items():
                values.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
        results = []
        for name in self.outputs():
            shape = self.shapes.get(name, self.initializers[name].shape if name in self.initializers else None)
            results.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None if symbolic or self.chance(0.2) else shape))
        graph = helper.make_graph(self.nodes, "random", values, results, [numpy_helper.from_array(v, n) for n, v in initializers.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8 if self.opset < 20 else 10)

    def shape_flags(self):
        if not self.symbolic:
            return []
        return [word for name, shape in self.inputs.items() for word in ("--shape", f"{name}={'x'.join(map(str, shape))}")]

    def random_inputs(self):
        return {name: self.numbers.standard_normal(shape).astype(np.float32) for name, shape in self.inputs.items()}
