"""Builds the backend of examples/backend against an installation, in an empty folder, and uses it as its author would.

Usage: backend_test.py --build BUILD --program FOLDER --examples FOLDER --compiler C++"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np
from install_test import InstallTest, options, run
from onnx import TensorProto, helper, numpy_helper

FACTOR = np.float32(0.125)


def write_model(path):
    """y = Softmax(x * weight * 0.125), as attention has it."""
    weight = np.random.default_rng(2).standard_normal((64, 48)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "weight"], ["product"]),
            helper.make_node("Mul", ["product", "factor"], ["scaled"]),
            helper.make_node("Softmax", ["scaled"], ["y"], axis=-1),
        ],
        "attention",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [32, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, "weight"), numpy_helper.from_array(np.array(FACTOR), "factor")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return weight


def refused(*words, environment=None):
    """Exit code and what is said."""
    done = subprocess.run([*map(str, words)], env=environment, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout + done.stderr


class BackendTest(InstallTest):
    def __init__(self, options, folder):
        super().__init__(options, folder)
        self.conformance = self.prefix / "bin" / "collage-conformance"
        self.plugin = self.build_plugin("plugin", lambda source: source)
        self.plain = {name: value for name, value in os.environ.items() if name != "COLLAGE_BACKENDS"}

    def build_plugin(self, name, change):
        source = self.folder / name
        shutil.copytree(self.options.examples / "backend", source)
        code = source / "rowwise.cc"
        text = change(code.read_text())
        code.write_text(text)
        run("cmake", "-S", source, "-B", source / "build", "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_CXX_COMPILER={self.options.compiler}")
        run("cmake", "--build", source / "build")
        return source / "build" / "libcollage_backend_rowwise.so"

    def backends(self, *words, environment=None):
        listed = json.loads(run(self.binary, "backends", "--json", "-", *words, environment=environment or self.plain))["backends"]
        return {backend["name"]: backend for backend in listed}

    def check_that_it_is_found(self):
        """By the command line, by a variable, and in the installation."""
        assert "rowwise" not in self.backends()
        assert self.backends("--plugin", self.plugin)["rowwise"]["version"].startswith("1.0+")
        for place in (self.plugin, self.plugin.parent):
            assert self.backends(environment={**self.plain, "COLLAGE_BACKENDS": str(place)})["rowwise"]["present"], place
        plugins = self.library / "collage" / "plugins"
        plugins.mkdir()
        shutil.copy(self.plugin, plugins)
        assert self.backends()["rowwise"]["present"]
        shutil.rmtree(plugins)

    def check_that_a_program_uses_it(self):
        model, self.program = self.folder / "attention.onnx", self.folder / "attention.collage"
        weight = write_model(model)
        x = np.random.default_rng(3).standard_normal((32, 64)).astype(np.float32)
        scaled = x @ weight * FACTOR
        exponentials = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
        self.expected = exponentials / exponentials.sum(axis=-1, keepdims=True)
        np.save(self.folder / "x.npy", x)
        np.savez(self.folder / "x.npz", x=x)
        said = run(self.binary, "compile", model, "-o", self.program, "--cache", self.folder / "prices", "--budget", "20s", "--threads", 1, "--plugin",
                   self.plugin, "--pin", "nn.softmax=rowwise", environment=self.plain)
        assert "rowwise" in said, said
        plan = run(self.binary, "explain", self.program, environment=self.plain)
        lines = [line for line in plan.splitlines() if "rowwise" in line and "softmax" in line]
        assert lines, plan
        print(lines[0])
        outputs = self.folder / "outputs"
        run(self.binary, "run", self.program, "--plugin", self.plugin, "--inputs", self.folder / "x.npz", "--output", outputs,
            environment=self.plain)
        np.testing.assert_allclose(np.load(outputs / "y.npy"), self.expected, rtol=1e-4, atol=1e-5)
        run(self.binary, "run", model, "--reference", "--inputs", self.folder / "x.npz", "--output", outputs, environment=self.plain)
        np.testing.assert_allclose(np.load(outputs / "y.npy"), self.expected, rtol=1e-4, atol=1e-5)

    def check_that_programs_of_others_find_it(self):
        """run_program, in C++, by the variable; without it, it says what is missing."""
        build = self.folder / "outside"
        run("cmake", "-S", self.options.program, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_CXX_COMPILER={self.options.compiler}")
        run("cmake", "--build", build)
        environment = {"PATH": "/usr/bin:/bin"}
        code, said = refused(build / "run_program", self.program, self.folder / "x.npy", environment=environment)
        assert code != 0 and "unknown backend 'rowwise'" in said and "COLLAGE_BACKENDS" in said, said
        environment["COLLAGE_BACKENDS"] = str(self.plugin)
        values = run(build / "run_program", self.program, self.folder / "x.npy", environment=environment).split()
        np.testing.assert_allclose(np.array(values, np.float32).reshape(self.expected.shape), self.expected, rtol=1e-4, atol=1e-5)

    def check_that_another_contract_is_refused(self):
        """As any later Collage would meet this one's backends: only the first number of the entry is read."""
        source, other = self.folder / "other.c", self.folder / "other.so"
        source.write_text("struct { int contract; void* rest[8]; } collage_backend_entry = {40, {0}};\n")
        run("cc", "-shared", "-fPIC", source, "-o", other)
        code, said = refused(self.binary, "backends", "--plugin", other)
        assert code == 2 and f"{other} was built for contract 40 of backends, this is 1;" in said, (code, said)
        code, said = refused(self.binary, "run", self.program, "--plugin", self.folder / "nowhere.so")
        assert code == 2 and "nowhere.so: there is no such file" in said, (code, said)

    def check_conformance(self):
        """The example conforms; copies with a fault in them do not, whether they compute wrongly or crash."""
        said = run(self.conformance, "--plugin", self.plugin, "--target", "rowwise", environment=self.plain)
        print(said.splitlines()[-1])
        assert "passed   softmax" in said and ", 0 failed" in said, said
        faults = {
            "forgets the factor": ("std::exp(factor * x[i] - largest)", "std::exp(x[i] - largest)"),
            "writes behind the row": ("result[i] /= sum;", "result[i] /= sum;\n  result[width] = 0;"),
            "crashes": ("float sum = 0;", "float sum = 0; if (width > 1) __builtin_trap();"),
        }
        for name, (right, wrong) in faults.items():
            plugin = self.build_plugin(name.replace(" ", "_"), lambda source: source.replace(right, wrong))
            code, said = refused(self.conformance, "--plugin", plugin, "--target", "rowwise", "--cases", "softmax", environment=self.plain)
            assert code == 1 and "failed   " in said and ", 0 failed" not in said, (name, code, said)
            assert ("crashed (signal" in said) == (name == "crashes"), (name, said)
        code, said = refused(self.conformance, "--target", "rowwise", environment=self.plain)
        assert code == 2 and "--target rowwise: there is no backend 'rowwise'" in said, (code, said)


def main():
    with tempfile.TemporaryDirectory() as folder:
        test = BackendTest(options(__doc__), pathlib.Path(folder))
        test.check_that_it_is_found()
        test.check_that_a_program_uses_it()
        test.check_that_programs_of_others_find_it()
        test.check_that_another_contract_is_refused()
        test.check_conformance()


if __name__ == "__main__":
    main()
