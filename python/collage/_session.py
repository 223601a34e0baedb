"""Running a program, in the words of ONNX Runtime."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from collage import _collage
from collage._compile import Model, checked_model, compile, words
from collage._errors import ArgumentError
from collage._on_demand import OnDemand, Shapes, beside_file
from collage._onnxruntime import IOBinding, ModelMetadata, OrtValue, SessionOptions, get_available_providers, onnx_type
from collage._report import Report, session_html
from collage._signature import Signature

_log = logging.getLogger("collage")
# Of a compile that is given none, seconds (collage compile --help).
_DEFAULT_BUDGET = 300
# What every compiled file begins with (collage/runtime/container.h).
_MAGIC = b"\x89COLLAGE"


class NodeArg(NamedTuple):
    """An input or output: its type as ONNX Runtime writes it, "tensor(float)". An extent is None where only a run tells it, or the name that
    a model gives it, and the shape is None where not even the rank is known."""

    name: str
    type: str
    shape: list[int | str | None] | None


class Step(NamedTuple):
    """A step of a program and the time of one run."""

    kind: str
    name: str
    backend: str
    microseconds: float


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
        path_or_model: Model | None = None,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Any] | None = None,
        compile_on_demand: str | os.PathLike | None = None,
        *,
        path_or_bytes: Model | None = None,
        **compile_options: Any,
    ) -> None:
        """`providers` and `provider_options` are taken and mean nothing here; `path_or_bytes` is ONNX Runtime's name for the first argument.
        `compile_options` are those of `collage.compile`. Of those a compiled file takes `processors`, for its CPUs beside the host, in place
        of the ones that it was compiled with.

        A model is compiled here, which takes up to its budget, five minutes unless one is given: whoever wants that once keeps the file that
        `collage.compile` writes. Where the model leaves extents of its inputs open, and neither `shapes` nor `sess_options` gives them, it is
        compiled when a run first has inputs of such shapes, once for each.

        `compile_on_demand`: the file of the model that a compiled file was made of. A run whose shapes the file has no profile of compiles
        one, with `compile_options`, and keeps it in FILE.profiles beside the file, where every later session finds it. `progress` hears of
        these compiles; they take the threads of `sess_options`."""
        model = checked_model(path_or_model if path_or_bytes is None else path_or_bytes)
        self._sess_options = sess_options or SessionOptions()
        self._signature: Signature | None = None  # of a model
        self._on_demand: OnDemand | None = None
        # None while nothing is compiled: the shapes of a model are those of the runs.
        self._compiled: _collage.Program | None = None
        if _starts_like_program(model):
            self._load(model, compile_on_demand, compile_options)
        elif isinstance(model, (str, os.PathLike)) and os.fspath(model).endswith(".collage"):
            self._take(_collage.load(os.fspath(model), "{}"))  # which says what is wrong with it
        elif compile_on_demand is not None:
            raise ArgumentError("compile_on_demand: is of compiled files, and this is a model")
        else:
            self._compile(model, compile_options)

    def _load(self, model: Model, compile_on_demand: str | os.PathLike | None, compile_options: dict[str, Any]) -> None:
        threads = self._sess_options.intra_op_num_threads
        options: dict[str, Any] = {"threads": threads} if threads else {}
        if "processors" in compile_options:
            options["processors"] = words(compile_options.pop("processors"))
        if compile_on_demand is not None:
            if isinstance(model, bytes):
                raise ArgumentError("compile_on_demand: profiles are kept beside a file, and these are bytes")
            self._on_demand = beside_file(os.fspath(model), compile_on_demand, options, **compile_options)
        elif compile_options:
            raise ArgumentError(f"{sorted(compile_options)[0]}: is an option of compiling, and this is compiled already")
        load = _collage.load_bytes if isinstance(model, bytes) else _collage.load
        self._take(load(model if isinstance(model, bytes) else os.fspath(model), json.dumps(options)))

    def _compile(self, model: Model, options: dict[str, Any]) -> None:
        """Or leaves that to the runs, which tell shapes."""
        if self._sess_options.intra_op_num_threads:
            options.setdefault("threads", self._sess_options.intra_op_num_threads)
        name = os.path.basename(os.fspath(model)) if isinstance(model, (str, os.PathLike)) else "a model"

        def made(shapes: Shapes | None) -> _collage.Program:
            of_shapes = f" for {', '.join(f'{input} {shape}' for input, shape in shapes.items())}" if shapes else ""
            _log.warning("compiling %s%s, which takes up to %g s; a file that collage.compile has written is only loaded", name, of_shapes,
                         options.get("budget") or _DEFAULT_BUDGET)
            return compile(model, **(options | {"shapes": shapes} if shapes else options))._program

        self._signature = Signature.of(model, options.get("constants")).with_extents(self._sess_options._extents)
        if options.get("shapes"):
            self._take(made(None))
            return
        if not self._signature.is_open():
            self._take(made(self._signature.shapes() if self._sess_options._extents else None))
            return
        self._on_demand = OnDemand(made)
        self._inputs, self._outputs, self._profiles, self._is_plain = self._signature.inputs, self._signature.outputs, [], False

    def _take(self, program: _collage.Program) -> None:
        self._compiled = program
        self._inputs = {name: (type, shape) for name, type, shape in program.inputs}
        self._outputs = {name: (type, shape) for name, type, shape in program.outputs}
        self._profiles = [{name: tuple(shape or ()) for name, _, shape in inputs} for inputs in program.profiles]
        # NumPy has no name of its own for some types; they cross the border as unsigned integers.
        self._is_plain = all(_is_numpy_type(type) for type, _ in [*self._inputs.values(), *self._outputs.values()])

    @property
    def _program(self) -> _collage.Program:
        program = self._compiled or (self._on_demand and self._on_demand.last)
        if not program:
            raise ArgumentError("nothing is compiled yet: the model leaves extents open, and a run has to tell them")
        return program

    def get_inputs(self) -> list[NodeArg]:
        return [_node_arg(name, *rest) for name, rest in self._inputs.items()]

    def get_outputs(self) -> list[NodeArg]:
        return [_node_arg(name, *rest) for name, rest in self._outputs.items()]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """None: initializers are constants of what is compiled."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says of itself."""
        if self._signature is not None:
            return self._signature.metadata
        said = self.report.get("model_metadata")
        if said is None:
            raise ArgumentError("get_modelmeta: this file was compiled by a Collage that did not keep what a model says of itself")
        return ModelMetadata(**said)

    def get_session_options(self) -> SessionOptions:
        return self._sess_options

    def get_providers(self) -> list[str]:
        return get_available_providers()

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: {} for name in get_available_providers()}

    def set_providers(self, providers: Sequence[Any] | None = None, provider_options: Sequence[Any] | None = None) -> None:
        """Means nothing here."""

    def enable_fallback(self) -> None:
        """Means nothing here."""

    def disable_fallback(self) -> None:
        """Means nothing here."""

    @property
    def is_compiled(self) -> bool:
        """False for a model that leaves extents open, before the first run."""
        return bool(self._compiled or (self._on_demand and self._on_demand.last))

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
        if not isinstance(input_feed, dict):
            raise ArgumentError(f"input_feed is a dict of arrays by the names of inputs, not of type {type(input_feed).__name__}")
        program = self._program if self._on_demand is None else self._program_for(input_feed)
        if self._is_plain:
            return program.run(output_names, input_feed)
        if isinstance(output_names, str):
            raise ArgumentError("output_names is a list of names, not one name")
        names = list(output_names or self._outputs)
        return [self._as_named(name, array) for name, array in zip(names, program.run(names, self._as_carried(input_feed)))]

    def run_async(self, output_names: Sequence[str] | None, input_feed: dict[str, Any],
                  callback: Callable[[list[np.ndarray], Any, str], Any], user_data: Any = None, run_options: Any = None) -> None:
        """In a thread of its own; `callback` is called there with the results, `user_data` and the message of an error, or ""."""

        def work() -> None:
            try:
                results, message = self.run(output_names, input_feed), ""
            except Exception as error:
                results, message = [], str(error)
            callback(results, user_data, message)

        threading.Thread(target=work, name="collage.run_async", daemon=True).start()

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: dict[str, OrtValue],
                            run_options: Any = None) -> list[OrtValue]:
        feed = {name: value.numpy() for name, value in input_dict_ort_values.items()}
        return [OrtValue(result) for result in self.run(output_names, feed)]

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Any = None) -> None:
        iobinding.run()

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
        if self._compiled is None and self._on_demand and self._signature:
            return self._on_demand.program(self._signature.shapes_of(feed))
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


def _node_arg(name: str, type: str, shape: list[int | str | None] | None) -> NodeArg:
    return NodeArg(name, onnx_type(type), shape)
