"""Installs a build into an empty folder, moves that, and uses it as somebody does who has nothing else.

Usage: install_test.py --build BUILD --program FOLDER --examples FOLDER --compiler C++"""

import argparse
import json
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def run(*words, cwd=None, environment=None):
    done = subprocess.run([*map(str, words)], cwd=cwd, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}"
    return done.stdout


def write_model(path, weight, bias):
    """y = Relu(Gemm(x, weight, bias))."""
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "weight", "bias"], ["product"]), helper.make_node("Relu", ["product"], ["y"])],
        "outside",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, weight.shape[0]])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, "weight"), numpy_helper.from_array(bias, "bias")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())


class InstallTest:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        written = folder / "written"
        run("cmake", "--install", options.build, "--prefix", written)
        self.prefix = folder / "moved" / "collage"
        self.prefix.parent.mkdir()
        shutil.move(written, self.prefix)
        (self.library,) = {path.parent for path in self.prefix.rglob("libcollage_cpp_support.so")}
        self.binary = self.prefix / "bin" / "collage"

    def check_that_nothing_needs_the_build(self):
        """What it links lies in it or outside of the build, and all of it is found."""
        linked = [self.binary, *self.library.glob("*.so"), *(self.library / "collage").iterdir()]
        assert len(linked) > 20, linked
        for path in linked:
            needs = run("ldd", path)
            assert "not found" not in needs, f"{path}:\n{needs}"
            assert str(self.options.build) not in needs, f"{path}:\n{needs}"

    def check_that_the_runtime_is_small(self):
        """It reaches no search, no reader of models and no driver, and says how large it is."""
        needs = {line.split()[0]: line.split()[2] for line in run("ldd", self.library / "libcollage_runtime.so").splitlines() if "=>" in line}
        ours = sorted(name for name in needs if name.startswith("libcollage"))
        assert "libcollage_cpp_lower.so" in ours, ours
        compiling = [name for name in ours if any(f"cpp_{part}." in name for part in ("search", "decide", "driver", "onnx", "measure", "pricing"))]
        assert not compiling, compiling
        size = sum((self.library / name).stat().st_size for name in [*ours, "libcollage_runtime.so"])
        print(f"libcollage_runtime and the {len(ours)} libraries of ours that it loads: {size / 2**20:.1f} MiB, without backends")

    def check_that_backends_are_found(self):
        """The same ones as in the build, and the worker, without which nothing can be measured."""
        assert run(self.binary, "backends") == run(self.options.build / "bin" / "collage", "backends")
        run(self.binary, "--version")

    def compile_model(self):
        generator = np.random.default_rng(1)
        weight, bias, self.input = (generator.standard_normal(shape).astype(np.float32) for shape in ((64, 32), (32,), (4, 64)))
        self.expected = np.maximum(self.input @ weight + bias, 0)
        model, self.program = self.folder / "model.onnx", self.folder / "model.collage"
        write_model(model, weight, bias)
        np.save(self.folder / "x.npy", self.input)
        self.input.tofile(self.folder / "x.bin")
        run(self.binary, "compile", model, "-o", self.program, "--cache", self.folder / "prices", "--budget", "2s", "--threads", 1)

    def check_outputs_of(self, program, given="x.npy", compiled=None):
        """Run in an environment that says nothing of where things are."""
        values = run(program, compiled or self.program, self.folder / given, environment={"PATH": "/usr/bin:/bin"}).split()
        np.testing.assert_allclose(np.array(values, np.float32).reshape(self.expected.shape), self.expected, rtol=1e-4, atol=1e-4)

    def check_find_package(self):
        build = self.folder / "outside"
        run("cmake", "-S", self.options.program, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_CXX_COMPILER={self.options.compiler}")
        run("cmake", "--build", build)
        self.check_outputs_of(build / "run_program")

    def check_examples(self):
        """C and C++ against the C interface, found by CMake: run, and compile."""
        build = self.folder / "examples"
        run("cmake", "-S", self.options.examples, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_CXX_COMPILER={self.options.compiler}")
        run("cmake", "--build", build)
        for example in ("run_in_c", "run_in_cpp"):
            self.check_outputs_of(build / example, "x.bin")
        # What the program has of the header must not stand in for a class of the libraries.
        symbols = run("nm", "--demangle", "--defined-only", build / "run_in_cpp").splitlines()
        assert any("collage::wrapper::" in line for line in symbols), symbols
        assert not [line for line in symbols if " collage::" in line and "collage::wrapper::" not in line], symbols
        compiled = self.folder / "in_c.collage"
        run(build / "compile_in_c", self.folder / "model.onnx", compiled, json.dumps({"budget": 2, "cache": str(self.folder / "prices")}))
        self.check_outputs_of(build / "run_in_c", "x.bin", compiled)

    def check_pkg_config(self):
        if not shutil.which("pkg-config"):
            print("no pkg-config here: collage.pc was not tried")
            return
        search = {"PKG_CONFIG_PATH": str(self.library / "pkgconfig"), "PATH": "/usr/bin:/bin"}
        for package, source, given in [
            ("collage", self.options.program / "run_program.cc", "x.npy"),
            ("libcollage_runtime", self.options.examples / "run.cpp", "x.bin"),
            ("libcollage", self.options.examples / "run.cpp", "x.bin"),
        ]:
            flags = run("pkg-config", "--cflags", "--libs", package, environment=search).split()
            program = self.folder / f"by_{package}"
            run(self.options.compiler, "-std=c++20", source, "-o", program, *flags, f"-Wl,-rpath,{self.library}")
            self.check_outputs_of(program, given)

    def check_that_headers_need_nothing_else(self):
        """All of them together, with nothing of the checkout in sight."""
        headers = sorted(path.relative_to(self.prefix / "include") for path in (self.prefix / "include").rglob("*.h"))
        assert len(headers) > 50, headers
        everything = self.folder / "everything.cc"
        everything.write_text("".join(f"#include <{header}>\n" for header in headers))
        run(self.options.compiler, "-std=c++20", "-fsyntax-only", f"-I{self.prefix / 'include'}", everything)


def options(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--examples", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", required=True)
    return parser.parse_args()


def main():
    with tempfile.TemporaryDirectory() as folder:
        test = InstallTest(options(__doc__), pathlib.Path(folder))
        test.check_that_nothing_needs_the_build()
        test.check_that_the_runtime_is_small()
        test.check_that_backends_are_found()
        test.check_that_headers_need_nothing_else()
        test.compile_model()
        test.check_find_package()
        test.check_examples()
        test.check_pkg_config()


if __name__ == "__main__":
    main()
