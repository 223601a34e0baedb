"""Installs the checkout by pip into an empty virtual environment, and runs the README's Python example there. Takes the whole C++ build, so
it is no part of the tests: `make wheel`. Packages that it needs come from where pip gets them.

Usage: wheel_test.py --checkout FOLDER"""

import argparse
import ctypes.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import venv

import numpy as np
from onnx import TensorProto, helper, numpy_helper

# By the names that CMake finds where nobody says anything: another name is another compiler for ccache.
COMPILERS = {"CC": "cc", "CXX": "c++"}
# Another language is another compile for ccache, too. The rest says where packages come from, and where compiled objects are.
KEPT = ("LANG", "LC_", "PIP_", "CCACHE_")
# Those that the wheel leaves out (cmake/CollageInstall.cmake).
OF_EVERY_SYSTEM = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s))\.so")


def run(*words, cwd=None):
    # Nothing else of the environment of whoever calls: no PYTHONPATH, no library path.
    kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(pathlib.Path.home()), **COMPILERS, **kept}
    done = subprocess.run([*map(str, words)], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout[-8000:]}{done.stderr[-8000:]}"
    return done.stdout


def readme_example(checkout):
    """The first Python block that imports collage."""
    blocks = re.findall(r"^```python\n(.*?)^```", (checkout / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    (example,) = [block for block in blocks if "import collage" in block]
    return example


def write_model(path):
    """scores = Relu(input W)."""
    weight = np.random.default_rng(1).standard_normal((64, 10)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["input", "weight"], ["product"]), helper.make_node("Relu", ["product"], ["scores"])],
        "small",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, [4, 64])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [4, 10])],
        [numpy_helper.from_array(weight, "weight")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return weight


def check_libraries(package, checkout):
    """Each finds what it needs in the package or beside it, but for what every system has; only the module that speaks to PostgreSQL needs
    what the system has to have for it (cmake/CollageInstall.cmake)."""
    libraries = [*package.glob("*.so"), *package.glob("lib/*.so"), *package.glob("lib/collage/*.so")]
    assert len(libraries) > 20, libraries
    for library in libraries:
        needs = run("ldd", library)
        if library.name == "libcollage_postgresql.so":
            assert "libpq.so" in needs, needs
            continue
        assert "not found" not in needs, f"{library}:\n{needs}"
        found = [pathlib.Path(path) for path in re.findall(r" => (/\S+)", needs)]
        strange = [path for path in found if not path.resolve().is_relative_to(package.resolve().parent) and not OF_EVERY_SYSTEM.match(path.name)]
        assert not strange, f"{library} needs {strange}"
    return len(libraries)


def check_server(binary):
    """Where libpq is, nothing but the server is missing; else the error says what to install."""
    done = subprocess.run([binary, "cache", "stats", "--cache", "postgresql://nobody@127.0.0.1:1/none"], capture_output=True, text=True)
    wanted = "127.0.0.1" if ctypes.util.find_library("pq") else "libpq5"
    assert done.returncode == 2 and wanted in done.stderr, done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkout", type=pathlib.Path, required=True)
    checkout = parser.parse_args().checkout.resolve()
    with tempfile.TemporaryDirectory(prefix="wheel.") as name:
        folder = pathlib.Path(name)
        venv.create(folder / "empty", with_pip=True)
        python = folder / "empty" / "bin" / "python"
        start = time.monotonic()
        # As the preset ci compiles, so that its objects are found where there is ccache.
        as_ci = "--config-settings=cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=ON"
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", as_ci, checkout)
        print(f"pip install .: {time.monotonic() - start:.0f} s")
        weight = write_model(folder / "model.onnx")
        image = np.random.default_rng(2).standard_normal((4, 64)).astype(np.float32)
        np.save(folder / "image.npy", image)
        script = "import numpy\nimage = numpy.load('image.npy')\n" + readme_example(checkout) + "\nnumpy.save('scores.npy', scores)\nprint(collage.__file__)\n"
        (folder / "example.py").write_text(script)
        package = pathlib.Path(run(python, "example.py", cwd=folder).splitlines()[-1]).parent
        assert folder in package.parents, package
        np.testing.assert_allclose(np.load(folder / "scores.npy"), np.maximum(image @ weight, 0), rtol=1e-4, atol=1e-4)
        print(f"the README's example runs; {check_libraries(package, checkout)} libraries, all found")
        check_server(package / "bin" / "collage")
        print(run(folder / "empty" / "bin" / "collage", "backends"), end="")


if __name__ == "__main__":
    sys.exit(main())
