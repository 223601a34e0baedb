"""Random activations and broadcasting arithmetic."""

import numpy as np
from graph_maker import GraphMaker

UNARY = ["Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Softsign", "Softplus", "Elu", "Selu", "Erf", "Sin", "Cos", "LeakyRelu", "HardSigmoid",
         "Identity", "ThresholdedRelu"]


class PointwiseOperators(GraphMaker):
    """Each method adds an operator to values of the graph that fit, or nothing where none does."""

    def activation(self, x=None):
        x = x or self.pick()
        if x is None:
            return
        choice = self.random.random()
        if choice < 0.45:
            op = self.random.choice(["Relu", "Relu", *UNARY])
            attributes = {"alpha": self.random.choice([0.01, 0.2, 0.5])} if op in ("LeakyRelu", "Elu") and self.chance(0.7) else {}
            self.add(op, [x], bounded=op in ("Sigmoid", "Tanh", "Sin", "Cos", "Erf", "HardSigmoid", "Softsign"), **attributes)
        elif choice < 0.6:
            low, high = self.random.choice([(0, 6), (-1, 1), (0.0, None), (None, 0.5), (-0.5, 0.25)])
            bounds = ["" if bound is None else self.constant(np.float32(bound), "bound") for bound in (low, high)]
            self.add("Clip", [x, *bounds] if bounds[1] else [x, bounds[0]])
        elif choice < 0.75:
            shape = self.shapes[x]
            slope = self.random.choice([[1], [shape[1]] + [1] * (len(shape) - 2) if len(shape) > 1 else [1], list(shape)])
            self.add("PRelu", [x, self.weights(slope, 0.3, "slope")])
        elif choice < 0.9:
            if self.opset >= 14 and self.chance(0.3):
                self.add("HardSwish", [x])
                return
            gate = self.random.choice(["sigmoid", "hard", "relu6"])
            if gate == "sigmoid":
                factor = self.add("Sigmoid", [x])
            elif gate == "hard":
                factor = self.add("HardSigmoid", [x], alpha=1 / 6, beta=0.5)
            else:
                shifted = self.add("Add", [x, self.constant(np.float32(3))])
                bounds = [self.constant(np.float32(0)), self.constant(np.float32(6))]
                factor = self.add("Div", [self.add("Clip", [shifted, *bounds]), self.constant(np.float32(6))])
            self.add("Mul", [x, factor] if self.chance(0.5) else [factor, x])
        elif self.bounded and self.chance(0.7):
            self.add("Exp", [self.random.choice(sorted(self.bounded))])
        else:
            self.add("Sqrt", [self.add("Abs", [x])])

    def broadcast_partner(self, shape):
        cut = self.random.randint(0, len(shape)) if self.chance(0.4) else 0
        return [1 if self.chance(0.4) else extent for extent in shape[cut:]]

    def residual(self, x):
        partners = [name for name, shape in self.shapes.items() if shape == self.shapes[x] and name != x]
        if partners and self.chance(0.7):
            other = self.random.choice(partners)
        else:
            other = self.weights(self.broadcast_partner(self.shapes[x]))
        pair = [x, other]
        self.random.shuffle(pair)
        return self.add("Add", pair)

    def binary(self):
        x = self.pick()
        if x is None:
            return
        if self.chance(0.3):
            self.residual(x)
            return
        fitting = [name for name, shape in self.shapes.items() if self.broadcasts(shape, self.shapes[x])]
        other = self.random.choice(fitting) if self.chance(0.5) else self.weights(self.broadcast_partner(self.shapes[x]))
        pair = [x, other]
        self.random.shuffle(pair)
        op = self.random.choice(["Add", "Sub", "Mul", "Max", "Min", "Sum", "Mean", "Div"])
        if op == "Div":
            pair[1] = self.add("Add", [self.add("Abs", [pair[1]]), self.constant(np.float32(0.7))]) if pair[1] in self.shapes else pair[1]
            if pair[1] in self.initializers:
                pair[1] = self.constant(self.numbers.uniform(0.5, 2, self.initializers[pair[1]].shape).astype(np.float32))
        if op in ("Sum", "Max", "Mean") and self.chance(0.4):
            pair.append(self.random.choice(pair))
        if pair[1] is not None:
            self.add(op, pair)

    @staticmethod
    def broadcasts(a, b):
        return all(x == y or 1 in (x, y) for x, y in zip(reversed(a), reversed(b)))

    def where(self):
        x = self.pick()
        if x is None:
            return
        shape = self.shapes[x]
        if self.chance(0.5):
            condition = self.constant(self.numbers.random(self.broadcast_partner(shape)) < 0.5, "mask")
        else:
            condition = self.add("Greater", [self.pick_input_like(shape), self.constant(np.float32(0.1))])
        if condition is not None:
            self.add("Where", [condition, x, self.weights(self.broadcast_partner(shape))] if self.chance(0.5) else
                     [condition, self.constant(np.float32(-0.5)), x])

    def pick_input_like(self, shape):
        """Comparing computed values would turn rounding errors into whole differences."""
        fitting = [name for name, other in self.inputs.items() if self.broadcasts(other, shape)]
        return self.random.choice(fitting) if fitting else self.weights(shape)
