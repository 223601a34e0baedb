"""What the tests of fleets share: simulated kernels, which sleep. So two processors measure for many workers, and what is best is known."""

import os
import pathlib
import subprocess
import sys

from onnx import TensorProto, helper

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))

BINARY, BACKEND = sys.argv[1:3]
del sys.argv[1:3]
# Of its four variants the first is the fastest.
VARIANTS = 4
BRANCHES = 8
SETTINGS = {"COLLAGE_SIMULATED_COMPILE_MS": "150", "COLLAGE_SIMULATED_RUN_MS": "1", "COLLAGE_LOG": "error"}


def make_model(path):
    """y0 = Relu(x0), y1 = Relu(x1), ...: no two of one shape, so that each has a price of its own."""
    shapes = [[1, 100 + branch] for branch in range(BRANCHES)]
    graph = helper.make_graph(
        [helper.make_node("Relu", [f"x{i}"], [f"y{i}"], name=f"relu{i}") for i in range(BRANCHES)],
        "branches",
        [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, shape) for i, shape in enumerate(shapes)],
        [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, shape) for i, shape in enumerate(shapes)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())


def compile_words(folder, cache, *words):
    """Of a compile of folder/model.onnx by these kernels alone."""
    return [BINARY, "compile", folder / "model.onnx", "-o", folder / "model.collage", "--plugin", BACKEND, "--target", "cpu -compiler=simulated",
            "--cache", cache, "--threads", "1", *words]


def accept_all_machines(server):
    """Makes the tables, and every machine one of the first kind, however busy this one is while it is told."""
    done = subprocess.run([BINARY, "worker", "--cache", server.url, "--most-idle", "0.01s"], env=environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    server.query(f"UPDATE collage.machine SET low_picoseconds=1, high_picoseconds={10**18}")


def environment(**settings):
    return {**os.environ, **SETTINGS, **settings}


def environment_of_compile():
    """Kernels take their time to be made where workers price them, which is what is tested. A compile makes them again for each program that it times."""
    return environment(COLLAGE_SIMULATED_COMPILE_MS="0")
