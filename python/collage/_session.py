"""Running a program, in the words of ONNX Runtime."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from collage import _collage
from collage._compile import Model, compile
from collage._errors import ArgumentError
from collage._on_demand import OnDemand
from collage._report import Report, session_html

# How ONNX Runtime writes element types; the others are as NumPy's.
_ONNX_NAMES = {"float32": "float", "float64": "double"}
# What every compiled file begins with (collage/runtime/container.h).
_MAGIC = b"\x89COLLAGE"


class NodeArg(NamedTuple):
    """An input or output: its type as ONNX Runtime writes it, "tensor(float)". An extent is None where only a run tells it, and so is the
    shape where not even the rank is known."""

    name: str
    type: str
    shape: list[int | None] | None


class Step(NamedTuple):
    """A step of a program and the time of one run."""

    kind: str
    name: str
    backend: str
    microseconds: float


class SessionOptions:
    """As ONNX Runtime's; of its options only the number of threads means something here. 0: all processors, or what a file was made for."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0


def _starts_like_program(model: Model) -> bool:
    if isinstance(model, bytes):
        return model.startswith(_MAGIC)
    if not isinstance(model, (str, os.PathLike)):
        return False
    try:
        with open(model, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False  # whoever opens it next says why not


class InferenceSession:
    """A compiled file (its path, or its bytes), or a model, which is compiled first: a path, bytes or an onnx.ModelProto.

    May be used by any number of threads at once; each runs with state of its own, and the weights are shared where the libraries permit
    that. The interpreter's lock is not held while kernels run."""

    def __init__(
        self,
        path_or_model: Model,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Any] | None = None,
        compile_on_demand: str | os.PathLike | None = None,
        **compile_options: Any,
    ) -> None:
        """`providers` and `provider_options` are taken and mean nothing here; `compile_options` are those of `collage.compile`. Of those a
        compiled file takes `processors`, for its CPUs beside the host, in place of the ones that it was compiled with.

        `compile_on_demand`: the file of the model that a compiled file was made of. A run whose shapes the file has no profile of compiles
        one, with `compile_options`, and keeps it in FILE.profiles beside the file, where every later session finds it. `progress` hears of
        these compiles; they take the threads of `sess_options`."""
        threads = sess_options.intra_op_num_threads if sess_options else 0
        self._on_demand: OnDemand | None = None
        if _starts_like_program(path_or_model):
            options: dict[str, Any] = {"threads": threads} if threads else {}
            if "processors" in compile_options:
                options["processors"] = list(compile_options.pop("processors"))
            if compile_on_demand is not None:
                if isinstance(path_or_model, bytes):
                    raise ArgumentError("compile_on_demand: profiles are kept beside a file, and these are bytes")
                self._on_demand = OnDemand(os.fspath(path_or_model), compile_on_demand, options, **compile_options)
            elif compile_options:
                raise ArgumentError(f"{sorted(compile_options)[0]}: is an option of compiling, and this is compiled already")
            load = _collage.load_bytes if isinstance(path_or_model, bytes) else _collage.load
            self._program = load(path_or_model if isinstance(path_or_model, bytes) else os.fspath(path_or_model), json.dumps(options))
        elif isinstance(path_or_model, (str, os.PathLike)) and os.fspath(path_or_model).endswith(".collage"):
            self._program = _collage.load(os.fspath(path_or_model), "{}")  # which says what is wrong with it
        else:
            if compile_on_demand is not None:
                raise ArgumentError("compile_on_demand: is of compiled files, and this is a model")
            if threads:
                compile_options.setdefault("threads", threads)
            self._program = compile(path_or_model, **compile_options)._program
        self._inputs = {name: (type, shape) for name, type, shape in self._program.inputs}
        self._outputs = {name: (type, shape) for name, type, shape in self._program.outputs}
        self._profiles = [{name: tuple(shape or ()) for name, _, shape in inputs} for inputs in self._program.profiles]
        # NumPy has no name of its own for some types; they cross the border as unsigned integers.
        self._is_plain = all(_is_numpy_type(type) for type, _ in [*self._inputs.values(), *self._outputs.values()])

    def get_inputs(self) -> list[NodeArg]:
        return [_node_arg(name, *rest) for name, rest in self._inputs.items()]

    def get_outputs(self) -> list[NodeArg]:
        return [_node_arg(name, *rest) for name, rest in self._outputs.items()]

    def get_providers(self) -> list[str]:
        return ["CPUExecutionProvider"]

    @property
    def threads(self) -> int:
        """With which kernels run."""
        return self._program.threads

    @property
    def report(self) -> Report:
        """What the compile has to say: the plan, its prices, the race. A dict, which a notebook shows as tables."""
        return Report(json.loads(self._program.report))

    def _repr_html_(self) -> str:
        return session_html(self)

    def run(self, output_names: Sequence[str] | None, input_feed: dict[str, Any], run_options: Any = None) -> list[np.ndarray]:
        """New arrays, one for each name; all outputs for None. Inputs are arrays of NumPy or of anything that speaks DLPack, of exactly the
        right type. Dense ones at multiples of 64 bytes are read where they are; the library copies others."""
        program = self._program if self._on_demand is None else self._program_for(input_feed)
        if self._is_plain:
            return program.run(output_names, input_feed)
        names = list(self._outputs) if output_names is None else list(output_names)
        return [self._as_named(name, array) for name, array in zip(names, program.run(names, self._as_carried(input_feed)))]

    def run_into(self, input_feed: dict[str, Any], results: dict[str, Any]) -> None:
        """Computes all outputs into arrays of the caller's, by name: writable and dense, of NumPy or by DLPack; of objects for strings."""
        texts = {name: array for name, array in results.items() if name in self._outputs and self._outputs[name][0] == "string"}
        numbers = {name: np.empty(np.shape(array), np.uint64) for name, array in texts.items()}
        others = {name: array for name, array in results.items() if name not in texts}
        self._program_for(input_feed).run_into(self._as_carried(input_feed), {**self._as_carried(others), **numbers})
        for name, array in texts.items():
            array[...] = _texts_of_numbers(numbers[name])

    def profile(self, input_feed: dict[str, Any]) -> list[Step]:
        """Runs once, and says how long each step took."""
        return [Step(*step) for step in self._program_for(input_feed).profile(self._as_carried(input_feed))]

    def _program_for(self, feed: Mapping[str, Any]) -> _collage.Program:
        """What has a profile of these inputs. Where that is none, or an input is missing, the file's program says so."""
        if self._on_demand is None or feed.keys() != self._inputs.keys():
            return self._program
        shapes = {name: tuple(np.shape(value)) for name, value in feed.items()}
        return self._program if shapes in self._profiles else self._on_demand.program(shapes)

    def _as_carried(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        types = {**self._inputs, **self._outputs}
        carried = dict(feed)
        for name, value in feed.items():
            if name in types and types[name][0] == "string":
                carried[name] = _numbers_of_texts(name, value)
            elif name in types and not _is_numpy_type(types[name][0]) and getattr(value, "dtype", None) == _extended(types[name][0]):
                # ml_dtypes leaves the upper bits of its narrow integers zero, and the library has them as those of int8.
                is_signed = name in self._inputs and types[name][0] in ("int2", "int4")
                carried[name] = value.astype(np.int8).view(np.uint8) if is_signed else value.view(f"u{value.dtype.itemsize}")
        return carried

    def _as_named(self, name: str, array: np.ndarray) -> np.ndarray:
        type = self._outputs[name][0]
        if type == "string":
            return _texts_of_numbers(array)
        return array if _is_numpy_type(type) else array.view(_extended(type))


def _is_numpy_type(type: str) -> bool:
    return hasattr(np, type)


def _extended(type: str) -> np.dtype:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, type))


def _numbers_of_texts(name: str, value: Any) -> np.ndarray:
    """Of an array of str or bytes, whichever way NumPy keeps them. Bytes that are no UTF-8 become texts and bytes again as os.fsdecode does."""
    array = np.asarray(value)
    numbers = np.empty(array.shape, np.uint64)
    for index, text in np.ndenumerate(array):
        if not isinstance(text, (str, bytes)):
            raise ArgumentError(f"input '{name}' holds {text} of type {type(text).__name__}, expected texts (str or bytes)")
        numbers[index] = _collage.string_number(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
    return numbers


def _texts_of_numbers(numbers: np.ndarray) -> np.ndarray:
    """Objects of str, as ONNX Runtime gives."""
    texts = np.empty(numbers.shape, object)
    for index, number in np.ndenumerate(numbers):
        texts[index] = _collage.string_text(int(number)).decode("utf-8", "surrogateescape")
    return texts


def _node_arg(name: str, type: str, shape: list[int | None] | None) -> NodeArg:
    return NodeArg(name, f"tensor({_ONNX_NAMES.get(type, type)})", shape)
