"""Scripts for ONNX Runtime, run with both libraries: only the import differs."""

import logging
import pathlib
import tempfile
import threading
import unittest

import models
import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import collage

LIBRARIES = (onnxruntime, collage)


def open_product():
    """x (N, 8) -> y (N, 4) = x W."""
    weight = np.random.default_rng(6).standard_normal((8, 4)).astype(np.float32)
    model = models.model([helper.make_node("MatMul", ["x", "weight"], ["y"])], [("x", TensorProto.FLOAT, ["N", 8])],
                         [("y", TensorProto.FLOAT, ["N", 4])], [("weight", weight)])
    model.producer_name, model.domain, model.model_version, model.doc_string = "tests", "example", 3, "a product"
    helper.set_model_props(model, {"names": "cat, dog"})
    return model, weight


def numbers(*shape):
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


class DropInTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        logging.getLogger("collage").setLevel(logging.ERROR)  # what it says of each compile
        cls.model, cls.weight = open_product()

    def session(self, library, options=None, **compile_options):
        if library is collage:
            compile_options = {"budget": 1.5, "cache": models.CACHE.name, **compile_options}
        return library.InferenceSession(self.model.SerializeToString(), options, providers=["CPUExecutionProvider"], **compile_options)

    def test_extents_that_a_model_leaves_open_are_those_of_each_run(self):
        for library in LIBRARIES:
            session = self.session(library)
            self.assertEqual([(one.name, one.type, one.shape) for one in session.get_inputs()], [("x", "tensor(float)", ["N", 8])])
            self.assertEqual([(one.name, one.type, one.shape) for one in session.get_outputs()], [("y", "tensor(float)", ["N", 4])])
            for count in (3, 1, 3):
                x = numbers(count, 8)
                np.testing.assert_allclose(session.run(None, {"x": x})[0], x @ self.weight, rtol=1e-5, atol=1e-5)
            for wrong in ({"x": numbers(2, 7)}, {"x": numbers(2, 8).astype(np.float64)}, {}, {"x": numbers(2, 8), "z": numbers(1)}):
                with self.assertRaises(Exception):
                    session.run(None, wrong)

    def test_wrong_inputs_are_said_before_anything_is_compiled(self):
        session = self.session(collage)
        for feed, said in [({"x": numbers(2, 7)}, r"float32 \(2, 7\), expected float32 \(N, 8\)"), ({}, "'x' .* is missing"),
                           ({"x": numbers(2, 8), "z": numbers(1)}, "no input 'z'"), ({"x": np.zeros((2, 8))}, "is float64")]:
            with self.assertRaisesRegex(collage.ArgumentError, said):
                session.run(None, feed)
        self.assertFalse(session.is_compiled)
        with self.assertRaisesRegex(collage.ArgumentError, "nothing is compiled yet"):
            session.report  # noqa: B018
        self.assertIn("N × 8", session._repr_html_())
        session.run(None, {"x": numbers(2, 8)})
        self.assertTrue(session.is_compiled)
        self.assertIn("plan", session.report)

    def test_threads_that_want_the_same_shapes_compile_them_once(self):
        session = self.session(collage)
        compiled = []
        session._on_demand._make = lambda shapes, make=session._on_demand._make: compiled.append(shapes) or make(shapes)
        x = numbers(5, 8)
        results = []
        threads = [threading.Thread(target=lambda: results.append(session.run(None, {"x": x})[0])) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(compiled, [{"x": (5, 8)}])
        for result in results:
            np.testing.assert_allclose(result, x @ self.weight, rtol=1e-5, atol=1e-5)

    def test_options_name_extents_and_the_others_are_kept(self):
        for library in LIBRARIES:
            options = library.SessionOptions()
            options.graph_optimization_level = library.GraphOptimizationLevel.ORT_ENABLE_ALL
            options.execution_mode = library.ExecutionMode.ORT_SEQUENTIAL
            options.log_severity_level = 3
            options.inter_op_num_threads = 1
            options.add_session_config_entry("session.use_env_allocators", "1")
            options.add_free_dimension_override_by_name("N", 2)
            session = self.session(library, options)
            self.assertEqual(session.get_inputs()[0].shape, [2, 8])
            self.assertEqual(session.get_session_options().log_severity_level, 3)
            self.assertEqual(options.get_session_config_entry("session.use_env_allocators"), "1")
            x = numbers(2, 8)
            np.testing.assert_allclose(session.run(["y"], {"x": x}, library.RunOptions())[0], x @ self.weight, rtol=1e-5, atol=1e-5)

    def test_what_the_model_says_of_itself(self):
        for library in LIBRARIES:
            meta = self.session(library).get_modelmeta()
            said = (meta.producer_name, meta.graph_name, meta.domain, meta.description, meta.version, meta.custom_metadata_map)
            self.assertEqual(said, ("tests", "small", "example", "a product", 3, {"names": "cat, dog"}))
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "product.collage"
            for shapes in ({"x": (2, 8)}, [{"x": (2, 8)}, {"x": (3, 8)}]):
                collage.compile(self.model.SerializeToString(), output=file, shapes=shapes, budget=2, cache=models.CACHE.name)
                self.assertEqual(collage.InferenceSession(file).get_modelmeta(), meta)

    def test_lists_numbers_and_other_byte_orders_are_inputs_too(self):
        x = numbers(2, 8)
        for library in LIBRARIES:
            session = self.session(library, **({"shapes": {"x": (2, 8)}} if library is collage else {}))
            for given in (x.tolist(), tuple(map(tuple, x.tolist()))) if library is collage else (x.tolist(),):
                np.testing.assert_allclose(session.run([], {"x": given})[0], x @ self.weight, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(session.run(None, {"x": x.astype(">f4")})[0], x @ self.weight, rtol=1e-5, atol=1e-5)
        with self.assertRaisesRegex(collage.ArgumentError, "of type list"):
            session.run(None, {"x": [[1.0], [1.0, 2.0]]})
        with self.assertRaisesRegex(collage.ArgumentError, "a list of names"):
            session.run("y", {"x": x})
        with self.assertRaisesRegex(collage.ArgumentError, "dict of arrays"):
            session.run(None, [x])

    def test_arrays_that_are_bound_once(self):
        x = numbers(2, 8)
        for library in LIBRARIES:
            session = self.session(library)
            result = library.OrtValue.ortvalue_from_shape_and_type([2, 4], np.float32, "cpu", 0)
            for bound in (result, None):
                binding = session.io_binding()
                binding.bind_cpu_input("x", x)
                if bound:
                    binding.bind_ortvalue_output("y", bound)
                else:
                    binding.bind_output("y")
                session.run_with_iobinding(binding)
                np.testing.assert_allclose(binding.copy_outputs_to_cpu()[0], x @ self.weight, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(result.numpy(), x @ self.weight, rtol=1e-5, atol=1e-5)
            self.assertEqual((list(result.shape()), result.data_type(), result.device_name()), ([2, 4], "tensor(float)", "cpu"))
            value = library.OrtValue.ortvalue_from_numpy(x)
            np.testing.assert_array_equal(session.run_with_ort_values(["y"], {"x": value})[0].numpy(), result.numpy())

    def test_buffers_that_are_bound_by_their_addresses(self):
        for element_type in (np.float32, TensorProto.FLOAT):
            for library in LIBRARIES:
                session = self.session(library)
                x, y = numbers(2, 8), np.zeros((2, 4), np.float32)
                binding = session.io_binding()
                binding.bind_input("x", "cpu", 0, element_type, (2, 8), x.ctypes.data)
                binding.bind_output("y", "cpu", 0, element_type, (2, 4), y.ctypes.data)
                for factor in (1, 3):  # what is written there between runs counts
                    x *= factor
                    session.run_with_iobinding(binding)
                    np.testing.assert_allclose(y, x @ self.weight, rtol=1e-5, atol=1e-5)
        binding = self.session(collage).io_binding()
        for wrong, said in [(("cuda", 0, np.float32, (2, 8), 8), "not 'cuda'"), (("cpu", 0, None, (2, 8), 8), "element type"),
                            (("cpu", 0, np.float32, (2, 8), 0), "address 0"), (("cpu", 0, np.object_, (2, 8), 8), "numbers are expected")]:
            with self.assertRaisesRegex(collage.ArgumentError, said):
                binding.bind_input("x", *wrong)
        x, y = numbers(2, 8), np.zeros((1, 4), np.float32)
        binding.bind_cpu_input("x", x)
        binding.bind_output("y", "cpu", 0, np.float32, (1, 4), y.ctypes.data)
        with self.assertRaisesRegex(collage.ArgumentError, r"'y' is float32 \(1, 4\), expected a writable, dense float32 \(2, 4\)"):
            binding.run()

    def test_a_run_beside_the_caller(self):
        x = numbers(2, 8)
        for library in LIBRARIES:
            heard = []
            ended = threading.Event()
            session = self.session(library)
            session.run_async(["y"], {"x": x}, lambda results, data, error, heard=heard, ended=ended: (heard.append((results, data, error)), ended.set()),
                              "data")
            self.assertTrue(ended.wait(60))
            self.assertEqual(heard[0][1:], ("data", ""))
            np.testing.assert_allclose(heard[0][0][0], x @ self.weight, rtol=1e-5, atol=1e-5)

    def test_names_of_the_module_and_of_a_session(self):
        for library in LIBRARIES:
            self.assertIn("CPUExecutionProvider", library.get_available_providers())
            self.assertIn("CPU", library.get_device())
            library.set_default_logger_severity(3)
            session = library.InferenceSession(path_or_bytes=self.model.SerializeToString(), **({"budget": 1} if library is collage else {}))
            session.disable_fallback()
            self.assertEqual(session.get_overridable_initializers(), [])
            self.assertIn("CPUExecutionProvider", session.get_provider_options())
        with self.assertRaisesRegex(collage.ArgumentError, "0 to 4"):
            collage.set_default_logger_severity(7)

    def test_a_compile_inside_of_a_session_is_no_silence(self):
        self.addCleanup(logging.getLogger("collage").setLevel, logging.ERROR)
        logging.getLogger("collage").setLevel(logging.WARNING)
        with self.assertLogs("collage", logging.WARNING) as logs:
            self.session(collage, shapes={"x": (2, 8)})
        self.assertIn("takes up to 1.5 s", logs.output[0])


if __name__ == "__main__":
    unittest.main()
