"""onnx.backend.base: ONNX's own runner drives the package on some of its nodes, and the interface itself."""

import functools
import unittest

import models
import numpy as np
import onnx.backend.test
from onnx import helper

import collage.onnx_backend

QUICK = {"budget": 1, "threads": 2, "cache": models.CACHE.name}


class QuickBackend(collage.onnx_backend.CollageBackend):
    """The runner has no options to pass on."""

    @classmethod
    def prepare(cls, model, device="CPU", **options):
        return super().prepare(model, device, **{**QUICK, **options})


runner = onnx.backend.test.BackendTest(QuickBackend, __name__)
# One of each: element-wise, a product, a reduction, two outputs, control flow, sequences in and out, no value, strings.
NAMES = ["relu", "matmul_2d", "reduce_max_default_axes_keepdim_example", "split_equal_parts_1d_opset13", "if", "sequence_insert_at_back",
         "split_to_sequence_1", "optional_has_element_empty_optional_input", "string_concat"]
for name in NAMES:
    runner.include(rf"^test_{name}_cpu$")
globals().update(runner.test_cases)


class InterfaceTest(unittest.TestCase):
    def test_the_runner_has_these_tests(self):
        there = dir(runner.test_cases["OnnxBackendNodeModelTest"])
        self.assertEqual([name for name in NAMES if f"test_{name}_cpu" not in there], [])

    def test_a_model_and_a_node_run(self):
        x = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32)
        run_model = functools.partial(collage.onnx_backend.run_model, models.perceptron(), **QUICK)
        outputs = run_model([x])
        self.assertEqual(outputs._fields, ("hidden", "sums"))
        np.testing.assert_allclose(outputs.hidden.sum(axis=1), outputs.sums, rtol=1e-4)
        # Another compile may take other kernels, which add in another order.
        np.testing.assert_allclose(run_model({"x": x}).sums, outputs.sums, rtol=1e-5)
        (y,) = collage.onnx_backend.run_node(helper.make_node("Tanh", ["a"], ["b"]), [x], **QUICK)
        np.testing.assert_allclose(y, np.tanh(x), rtol=1e-5, atol=1e-6)

    def test_an_absent_optional_is_absent_in_branches_too(self):
        type = helper.make_optional_type_proto(helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [2]))
        bool_of = functools.partial(helper.make_tensor_value_info, elem_type=onnx.TensorProto.BOOL, shape=[])
        asks = helper.make_graph([helper.make_node("OptionalHasElement", ["x"], ["has"])], "asks", [], [bool_of("has")])
        denies = helper.make_graph([helper.make_node("Not", ["c"], ["not"])], "denies", [], [bool_of("not")])
        node = helper.make_node("If", ["c"], ["y"], then_branch=asks, else_branch=denies)
        graph = helper.make_graph([node], "branches", [bool_of("c"), helper.make_value_info("x", type)], [bool_of("y")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
        for x, expected in ((None, False), (np.ones(2, np.float32), True)):
            (y,) = collage.onnx_backend.run_model(model, {"c": np.array(True), "x": x}, **QUICK)
            self.assertEqual(y, expected)

    def test_there_is_only_the_processor(self):
        self.assertTrue(collage.onnx_backend.supports_device("CPU"))
        self.assertFalse(collage.onnx_backend.supports_device("CUDA:1"))


if __name__ == "__main__":
    unittest.main()
