#!/usr/bin/env python3
"""Writes small models of If, Loop and Scan: with what ONNX Runtime computes on them, or NAME.error with what the reader must say."""

import os
import shutil
import sys

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.helper import make_function, make_graph, make_node, make_opsetid, make_tensor_value_info

from case import CaseFolder, make_model

F = np.float32
I = np.int64
GENERATOR = np.random.default_rng(20261122)
OPSETS = (11, 13, 16, 19, 21)


def data(*shape):
    return GENERATOR.standard_normal(shape).astype(F)


def info(name, kind=TensorProto.FLOAT, shape=None):
    return make_tensor_value_info(name, kind, shape)


def body(nodes, inputs, outputs, constants=None):
    """A graph whose inputs are names, or infos; shapes of outputs are left open."""
    inputs = [info(value) if isinstance(value, str) else value for value in inputs]
    outputs = [info(value) if isinstance(value, str) else value for value in outputs]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    return make_graph(nodes, "body", inputs, outputs, tensors)


def branch(*nodes, outputs=("r",), constants=None):
    return body(list(nodes), [], list(outputs), constants)


def loop_body(nodes, states, outputs, scalar_shape=(), constants=None, condition="go"):
    inputs = [info("i", TensorProto.INT64, scalar_shape), info("c", TensorProto.BOOL, scalar_shape), *states]
    return body(nodes, inputs, [info(condition, TensorProto.BOOL), *outputs], constants)


KEEP = make_node("Identity", ["c"], ["go"])


def conditionals(cases):
    x = data(3, 4)
    add = make_node("Add", ["x", "w"], ["r"])
    multiply = make_node("Mul", ["x", "v"], ["s"])
    nodes = [
        make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        make_node("Greater", ["sum", "zero"], ["p"]),
        make_node("If", ["p"], ["y"], then_branch=branch(add), else_branch=branch(multiply, outputs=("s",))),
    ]
    constants = {"zero": np.array(0, F), "w": data(4), "v": data(4)}
    for opset in OPSETS:
        for name, value in (("positive", np.abs(x)), ("negative", -np.abs(x))):
            cases.add("if_" + name, opset, nodes, {"x": value}, constants)
    one = make_node("Split", ["x"], ["a", "b"], axis=0, num_outputs=2)
    two = make_node("Split", ["w"], ["a", "b"], axis=0, num_outputs=2)
    both = make_node("If", ["p"], ["y", "z"], then_branch=branch(one, outputs=("a", "b")), else_branch=branch(two, outputs=("a", "b")))
    cases.add("if_two_outputs", 19, [both], {"p": np.array(False), "x": data(4, 2), "w": data(4, 2)}, {}, ("y", "z"))
    passed = make_node("If", ["p"], ["y"], then_branch=branch(outputs=("x",)), else_branch=branch(outputs=("e",)))
    cases.add("if_outer_value", 16, [make_node("Exp", ["x"], ["e"]), passed], {"p": np.array([True]), "x": x})
    inner = make_node("If", ["q"], ["r"], then_branch=branch(make_node("Neg", ["x"], ["n"]), outputs=("n",)), else_branch=branch(make_node("Relu", ["x"], ["n"]), outputs=("n",)))
    outer = make_node("If", ["p"], ["y"], then_branch=branch(inner), else_branch=branch(make_node("Abs", ["x"], ["r"])))
    for p in (False, True):
        for q in (False, True):
            cases.add(f"if_nested_{p}_{q}", 13, [outer], {"p": np.array(p), "q": np.array(q), "x": x})
    shape = make_node("If", ["p"], ["y"], then_branch=branch(make_node("Concat", ["x", "x"], ["r"], axis=0)), else_branch=branch(make_node("Relu", ["x"], ["r"])))
    # As exporters write a model of two sampling rates: shapes of inputs fit one branch.
    rate = make_node("Equal", ["rate", "r16"], ["p"])
    fits = [make_node("MatMul", ["x", "w8"], ["m"]), make_node("Relu", ["m"], ["r"])]
    other = [make_node("MatMul", ["x", "w6"], ["n"]), make_node("Abs", ["n"], ["s"])]
    weights = {"w8": data(8, 5), "w6": data(6, 5), "r16": np.array(16000, I)}
    one = make_node("If", ["p"], ["y"], "rates", then_branch=branch(*fits), else_branch=branch(*other, outputs=("s",)))
    cases.add("if_one_branch_fits", 16, [rate, one], {"x": data(2, 8), "rate": np.array(16000, I)}, weights)
    two = make_node("If", ["p"], ["y", "z"], then_branch=branch(*other, outputs=("n", "s")), else_branch=branch(*fits, outputs=("m", "r")))
    cases.add("if_one_branch_fits_two_outputs", 16, [rate, two], {"x": data(2, 8), "rate": np.array(8000, I)}, weights, ("y", "z"))
    around = make_node("If", ["q"], ["o"], then_branch=branch(one, outputs=("y",)), else_branch=branch(make_node("MatMul", ["x", "w8"], ["r"])))
    cases.add("if_one_branch_fits_inside", 16, [rate, around], {"x": data(2, 8), "rate": np.array(16000, I), "q": np.array(False)}, weights, ("o",))
    cases.add("if_constant", 13, [shape], {"x": x}, {"p": np.array(True)})


def loops(cases):
    step = [KEEP, make_node("MatMul", ["h", "w"], ["m"]), make_node("Tanh", ["m"], ["n"])]
    states = [info("h", TensorProto.FLOAT, [2, 4])]
    constants = {"w": data(4, 4), "trips": np.array(5, I), "true": np.array(True)}
    inputs = {"x": data(2, 4)}
    for opset in OPSETS:
        loop = make_node("Loop", ["trips", "true", "x"], ["y"], body=loop_body(step, states, ["n"]))
        cases.add("loop_state", opset, [loop], inputs, constants)
        loop = make_node("Loop", ["trips", "", "x"], ["y", "all"], body=loop_body(step, states, ["n", "m"], scalar_shape=(1,)))
        cases.add("loop_scan_output", opset, [loop], inputs, constants, ("y", "all"))
    loop = make_node("Loop", ["trips", "true", "x"], ["y"], body=loop_body(step, states, ["n"]))
    for trips in (0, 1, 3, 7):
        cases.add(f"loop_variable_trips_{trips}", 13, [loop], {"x": data(2, 4), "trips": np.array(trips, I)}, {"w": data(4, 4), "true": np.array(True)})
    for trips in (0, 1):
        cases.add(f"loop_constant_trips_{trips}", 13, [make_node("Loop", ["trips", "", "x"], ["y", "all"], body=loop_body(step, states, ["n", "m"]))], {"x": data(2, 4)}, {**constants, "trips": np.array(trips, I)}, ("y", "all"))
    double = [make_node("Add", ["h", "h"], ["n"]), make_node("ReduceSum", ["n"], ["s"], keepdims=0), make_node("Less", ["s", "limit"], ["go"])]
    loop = make_node("Loop", ["", "true", "x"], ["y"], body=loop_body(double, states, ["n"]))
    limit = {"limit": np.array(1000, F), "true": np.array(True)}
    cases.add("loop_while", 13, [loop], {"x": np.abs(data(2, 4))}, limit)
    loop = make_node("Loop", ["trips", "true", "x"], ["y"], body=loop_body(double, states, ["n"]))
    cases.add("loop_bounded_while", 13, [loop], {"x": np.abs(data(2, 4)), "trips": np.array(3, I)}, limit)
    cases.add("loop_first_condition", 13, [loop], {"x": np.abs(data(2, 4)), "true": np.array(False)}, {"limit": limit["limit"], "trips": np.array(3, I)})
    loop = make_node("Loop", ["trips", "", "x"], ["y"], body=loop_body(double, states, ["n"]))
    cases.add("loop_condition_of_body_only", 13, [loop], {"x": np.full((2, 4), 300, F)}, {**limit, "trips": np.array(3, I)})
    number = [KEEP, make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT), make_node("Add", ["h", "f"], ["n"])]
    loop = make_node("Loop", ["trips", "true", "x"], ["y", "all"], body=loop_body(number, states, ["n", "f"]))
    cases.add("loop_number", 13, [loop], inputs, constants, ("y", "all"))
    two = [KEEP, make_node("Add", ["a", "b"], ["n"]), make_node("Identity", ["a"], ["m"])]
    loop = make_node("Loop", ["trips", "true", "x", "x"], ["y", "z"], body=loop_body(two, ["a", "b"], ["n", "m"]))
    cases.add("loop_fibonacci", 13, [loop], inputs, constants, ("y", "z"))
    grow = [KEEP, make_node("Concat", ["h", "x"], ["n"], axis=0)]
    loop = make_node("Loop", ["trips", "true", "x"], ["y"], body=loop_body(grow, ["h"], ["n"]))
    cases.add("loop_grows", 13, [loop], inputs, constants)
    count = [make_node("Add", ["k", "one"], ["l"]), make_node("Less", ["l", "six"], ["go"]), make_node("Add", ["h", "h"], ["n"])]
    inner = loop_body(count, [info("k", TensorProto.INT64, []), "h"], [info("l", TensorProto.INT64), "n", "h"], constants={"one": np.array(1, I), "six": np.array(6, I)})
    loop = make_node("Loop", ["", "true", "zero", "x"], ["k_end", "y", "all"], body=inner)
    cases.add("loop_constant_counter", 13, [loop], inputs, {"true": np.array(True), "zero": np.array(0, I)}, ("k_end", "y", "all"))


def nested(cases):
    choose = make_node("If", ["even"], ["r"], then_branch=branch(make_node("MatMul", ["h", "w"], ["t"]), outputs=("t",)), else_branch=branch(make_node("Add", ["h", "b"], ["t"]), outputs=("t",)))
    nodes = [KEEP, make_node("Mod", ["i", "two"], ["rest"]), make_node("Equal", ["rest", "zero"], ["even"]), choose, make_node("Tanh", ["r"], ["n"])]
    constants = {"w": data(4, 4), "b": data(4), "two": np.array(2, I), "zero": np.array(0, I), "trips": np.array(6, I), "true": np.array(True)}
    loop = make_node("Loop", ["trips", "true", "x"], ["y", "all"], body=loop_body(nodes, ["h"], ["n", "r"]))
    for opset in OPSETS:
        cases.add("if_in_loop", opset, [loop], {"x": data(2, 4)}, constants, ("y", "all"))
    inner_body = body([make_node("Identity", ["d"], ["on"]), make_node("Add", ["g", "scaled"], ["k"])], [info("j", TensorProto.INT64, []), info("d", TensorProto.BOOL, []), "g"], [info("on", TensorProto.BOOL), "k"])
    inner = make_node("Loop", ["inner_trips", "true", "h"], ["n"], body=inner_body)
    outer = loop_body([KEEP, make_node("Mul", ["h", "x"], ["scaled"]), inner], ["h"], ["n", "scaled"])
    loop = make_node("Loop", ["trips", "true", "x"], ["y", "all"], body=outer)
    cases.add("loop_in_loop", 13, [loop], {"x": data(2, 4), "inner_trips": np.array(3, I)}, {"trips": np.array(4, I), "true": np.array(True)}, ("y", "all"))
    guarded = make_node("If", ["p"], ["y"], then_branch=branch(make_node("Loop", ["trips", "true", "x"], ["r"], body=loop_body([KEEP, make_node("Mul", ["h", "x"], ["n"])], ["h"], ["n"]))), else_branch=branch(make_node("Neg", ["x"], ["r"])))
    for p in (False, True):
        cases.add(f"loop_in_if_{p}", 13, [guarded], {"x": data(2, 4), "p": np.array(p)}, {"trips": np.array(4, I), "true": np.array(True)})
    function = make_function("own", "Power", ["a", "n"], ["r"], [
        make_node("Constant", [], ["yes"], value=numpy_helper.from_array(np.array(True))),
        make_node("Loop", ["n", "yes", "a"], ["r"], body=body([make_node("Identity", ["c"], ["go"]), make_node("Mul", ["h", "a"], ["m"])], [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), "h"], [info("go", TensorProto.BOOL), "m"])),
    ], [make_opsetid("", 13)])
    calls = [make_node("Power", ["x", "trips"], ["z"], domain="own"), make_node("Power", ["z", "trips"], ["y"], domain="own")]
    cases.add("loop_in_function", 13, calls, {"x": data(2, 4)}, {"trips": np.array(3, I)}, ("y",), (function,))


def scans(cases):
    nodes = [make_node("Add", ["h", "e"], ["n"]), make_node("Mul", ["n", "f"], ["o"]), make_node("Identity", ["n"], ["n2"])]
    step = body(nodes, ["h", "e", "f"], ["n", "o", "n2"])
    for opset in (9, *OPSETS):
        scan = make_node("Scan", ["h0", "x", "w"], ["last", "y", "z"], body=step, num_scan_inputs=2)
        cases.add("scan", opset, [scan], {"h0": data(3), "x": data(5, 3), "w": data(5, 3)}, {}, ("last", "y", "z"))
    scan = make_node("Scan", ["h0", "x", "w"], ["last", "y", "z"], body=step, num_scan_inputs=2, scan_input_directions=[1, 0], scan_output_directions=[0, 1])
    cases.add("scan_backward", 11, [scan], {"h0": data(3), "x": data(5, 3), "w": data(5, 3)}, {}, ("last", "y", "z"))
    scan = make_node("Scan", ["h0", "x", "w"], ["last", "y", "z"], body=step, num_scan_inputs=2, scan_input_axes=[1, -1], scan_output_axes=[1, -1], scan_input_directions=[0, 1], scan_output_directions=[1, 1])
    cases.add("scan_axes", 11, [scan], {"h0": data(3, 2), "x": data(3, 5, 2), "w": data(3, 2, 5)}, {}, ("last", "y", "z"))
    scan = make_node("Scan", ["h0", "x", "w"], ["last", "y", "z"], body=step, num_scan_inputs=2, scan_input_axes=[-2, 2], scan_output_axes=[-2, 0])
    cases.add("scan_axes_negative", 13, [scan], {"h0": data(3, 2), "x": data(3, 5, 2), "w": data(3, 2, 5)}, {}, ("last", "y", "z"))
    gates = [make_node("MatMul", ["e", "w"], ["a"]), make_node("MatMul", ["h", "u"], ["b"]), make_node("Add", ["a", "b"], ["s"]), make_node("Tanh", ["s"], ["n"]), make_node("Identity", ["n"], ["o"])]
    scan = make_node("Scan", ["h0", "x"], ["last", "y"], body=body(gates, ["h", "e"], ["n", "o"]), num_scan_inputs=1)
    cases.add("scan_recurrent", 13, [scan], {"h0": data(2, 4), "x": data(6, 2, 3)}, {"w": data(3, 4), "u": data(4, 4)}, ("last", "y"))
    distances = body([make_node("Sub", ["x", "row"], ["d"]), make_node("Mul", ["d", "d"], ["q"]), make_node("ReduceMean", ["q"], ["r"], axes=[1], keepdims=0)], ["row"], ["r"])
    scan = make_node("Scan", ["x"], ["y"], body=distances, num_scan_inputs=1, scan_output_axes=[1])
    cases.add("scan_without_state", 11, [scan], {"x": data(4, 3)})
    batched = make_node("Scan", ["", "h0", "x", "w"], ["last", "y", "z"], body=step, num_scan_inputs=2, directions=[1, 0])
    cases.add("scan_batched", 8, [batched], {"h0": data(2, 3), "x": data(2, 5, 3), "w": data(2, 5, 3)}, {}, ("last", "y", "z"))
    long = make_node("Scan", ["h0", "x"], ["last"], body=body([make_node("Add", ["h", "e"], ["n"])], ["h", "e"], ["n"]), num_scan_inputs=1)
    cases.add("scan_long", 13, [long], {"h0": data(2), "x": data(20000, 2)}, {}, ("last",))


class Refusals:
    """Writes NAME.onnx with NAME.error."""

    def __init__(self, folder):
        self.folder = folder

    def add(self, name, message, nodes, inputs, constants=None, outputs=("y",), opset=13):
        path = os.path.join(self.folder, name)
        onnx.save(make_model(opset, nodes, inputs, constants or {}, outputs), path + ".onnx")
        with open(path + ".error", "w", encoding="utf-8") as file:
            file.write(message)


def refusals(cases):
    x = data(2, 4)
    true = {"true": np.array(True)}
    trips = {"x": x, "trips": np.array(3, I)}
    step = [KEEP, make_node("Neg", ["h"], ["n"])]
    loop = make_node("Loop", ["trips", "true", "x"], ["z", "y"], "x", body=loop_body(step, ["h"], ["n", "n"]))
    cases.add("scan_output_of_unknown_extent", "node 'x' (Loop, opset 13): scan output 1 has an extent that depends on the trip count, which is not a constant", [loop], trips, true)
    grow = [KEEP, make_node("Concat", ["h", "h"], ["n"], axis=0)]
    loop = make_node("Loop", ["trips", "true", "x"], ["y"], "grow", body=loop_body(grow, ["h"], ["n"]))
    cases.add("state_that_grows", "node 'grow' (Loop, opset 13): state 0 is Tensor[(2, 4), float32] before an iteration and Tensor[(4, 4), float32] after it", [loop], trips, true)
    part = [KEEP, make_node("Neg", ["h"], ["n"]), make_node("Slice", ["x", "i", "ends", "axes"], ["p"]), make_node("Reshape", ["p", "flat"], ["f"])]
    loop = make_node("Loop", ["trips", "true", "x"], ["z", "y"], "parts", body=loop_body(part, ["h"], ["n", "f"], scalar_shape=(1,)))
    constants = {**true, "trips": np.array(3, I), "ends": np.array([4], I), "axes": np.array([1], I), "flat": np.array([8], I)}
    cases.add("iteration_that_cannot_be_read", "node 'parts' (Loop, opset 13): node 3 giving 'f' (Reshape, opset 13): cannot view (2, 3) as (8,)", [loop], {"x": x}, constants)
    uneven = make_node("If", ["p"], ["y"], "uneven", then_branch=branch(make_node("Neg", ["x"], ["r"])), else_branch=branch(make_node("ReduceSum", ["x"], ["r"])))
    cases.add("branches_of_two_types", "node 'uneven' (If, opset 13): output 0 is Tensor[(2, 4), float32] in then_branch and Tensor[(1, 1), float32] in else_branch", [uneven], {"x": x, "p": np.array(True)})
    inside = make_node("If", ["p"], ["y"], "outer", then_branch=branch(make_node("Unheard", ["x"], ["r"], "inner")), else_branch=branch(make_node("Neg", ["x"], ["r"])))
    cases.add("unknown_operator_inside", "node 'outer' (If, opset 13): then_branch: node 'inner' (Unheard, opset 13): this operator is not supported", [inside], {"x": x, "p": np.array(True)})
    missing = make_node("If", ["p"], ["y"], "outer", then_branch=branch(make_node("Neg", ["nowhere"], ["r"], "inner")), else_branch=branch(make_node("Neg", ["x"], ["r"])))
    cases.add("unknown_value_inside", "then_branch: node 'inner' (Neg, opset 13): reads 'nowhere', which no input", [missing], {"x": x, "p": np.array(True)})
    misfit = make_node("Reshape", ["x", "seven"], ["r"], "misfit")
    neither = make_node("If", ["p"], ["y"], "outer", then_branch=branch(misfit), else_branch=branch(misfit))
    cases.add("no_branch_fits", "node 'outer' (If, opset 13): then_branch: node 'misfit' (Reshape, opset 13): cannot view (2, 4) as (7,)", [neither], {"x": x, "p": np.array(True)}, {"seven": np.array([7], I)})
    cases.add("no_branch", "attribute 'else_branch' is required and absent", [make_node("If", ["p"], ["y"], then_branch=branch(make_node("Neg", ["x"], ["r"])))], {"x": x, "p": np.array(True)})
    cases.add("body_inputs", "its body has 3 inputs and 2 outputs, expected 2 inputs and at least 1 outputs", [make_node("Loop", ["trips", "true"], ["y"], body=loop_body(step, ["h"], ["n"]))], trips, true)
    cases.add("scan_counts", "attribute 'num_scan_inputs' is 3, expected 1 to 1", [make_node("Scan", ["x"], ["y"], body=body([make_node("Neg", ["e"], ["o"])], ["e"], ["o"]), num_scan_inputs=3)], {"x": x})
    two = body([make_node("Add", ["e", "f"], ["o"])], ["e", "f"], ["o"])
    cases.add("scan_lengths", "scan input 1 is 3 long, the first one 2", [make_node("Scan", ["x", "w"], ["y"], body=two, num_scan_inputs=2)], {"x": x, "w": data(3, 4)})
    cases.add("scan_axis", "axis 5 is outside a tensor of 2 dimensions", [make_node("Scan", ["x"], ["y"], body=body([make_node("Neg", ["e"], ["o"])], ["e"], ["o"]), num_scan_inputs=1, scan_input_axes=[5])], {"x": x})
    cases.add("scan_lens", "input 0 (sequence_lens) is Tensor[(3,), int64]; an int64 for each of 2 sequences is right", [make_node("Scan", ["lens", "x"], ["y"], body=body([make_node("Neg", ["e"], ["o"])], ["e"], ["o"]), num_scan_inputs=1)], {"x": x, "lens": np.array([1, 1, 1], I)}, opset=8)
    cases.add("condition_of_many", "the condition is Tensor[(2,), bool], expected one element", [make_node("If", ["p"], ["y"], then_branch=branch(make_node("Neg", ["x"], ["r"])), else_branch=branch(make_node("Neg", ["x"], ["r"])))], {"x": x, "p": np.array([True, True])})
    huge = make_node("Loop", ["trips", "true", "x"], ["z", "y"], body=loop_body(step, ["h"], ["n", "n"]))
    cases.add("huge_scan_output", "is too large", [huge], {"x": x}, {**true, "trips": np.array(1 << 40, I)})


def scans_of_lengths(cases):
    """Opset 8: sequences of a batch end by themselves."""
    step = body([make_node("Add", ["h", "e"], ["n"]), make_node("Mul", ["n", "n"], ["o"])], ["h", "e"], ["n", "o"])
    lengths = {"lens": np.array([5, 3, 1], I)}
    values = {"h0": data(3, 4), "x": data(3, 5, 4)}
    for name, directions in (("forward", [0]), ("backward", [1])):
        scan = make_node("Scan", ["lens", "h0", "x"], ["last", "y"], body=step, num_scan_inputs=1, directions=directions)
        cases.add(f"scan_{name}_of_lengths", 8, [scan], {**lengths, **values}, {}, ("last", "y"))
        cases.add(f"scan_{name}_of_known_lengths", 8, [scan], values, lengths, ("last", "y"))


def main():
    folder = sys.argv[1]
    shutil.rmtree(folder, ignore_errors=True)
    cases = CaseFolder(folder)
    for family in (conditionals, loops, nested, scans, scans_of_lengths):
        family(cases)
    refusals(Refusals(folder))
    print(f"{cases.count} cases")


if __name__ == "__main__":
    main()
