"""What else scripts for ONNX Runtime name: options that mean nothing here are kept as they are set."""

from __future__ import annotations

import ctypes
import enum
import logging
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collage._errors import ArgumentError

if TYPE_CHECKING:
    from collage._session import InferenceSession


class GraphOptimizationLevel(enum.IntEnum):
    """A compile always does all."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """What runs side by side was measured."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions:
    """As ONNX Runtime's. `intra_op_num_threads` is the number of threads (0: all processors, or what a file was made for), and
    `add_free_dimension_override_by_name` gives extents that a model leaves open. All others mean nothing here."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.profile_file_prefix = ""
        self.use_deterministic_compute = False
        self._entries: dict[str, str] = {}
        self._extents: dict[str, int] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, extent: int) -> None:
        self._extents[name] = int(extent)


class RunOptions:
    """Mean nothing here."""

    def __init__(self) -> None:
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.terminate = False
        self._entries: dict[str, str] = {}

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        return self._entries[key]


class ModelMetadata(NamedTuple):
    """What a model says of itself."""

    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str]


class OrtValue:
    """An array of the host's memory, as ONNX Runtime wraps it."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: np.ndarray, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        _check_device(device_type)
        return OrtValue(np.array(numpy_obj, order="C"))

    @staticmethod
    def ortvalue_from_shape_and_type(shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        _check_device(device_type)
        return OrtValue(np.zeros(shape, element_type))

    def numpy(self) -> np.ndarray:
        return self._array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def shape(self) -> list[int]:
        return list(self._array.shape)

    def data_type(self) -> str:
        return onnx_type(self._array.dtype.name)

    def device_name(self) -> str:
        return "cpu"

    def has_value(self) -> bool:
        return True

    def is_tensor(self) -> bool:
        return True

    def update_inplace(self, np_arr: np.ndarray) -> None:
        if np.shape(np_arr) != self._array.shape:
            raise ArgumentError(f"an array of shape {np.shape(np_arr)} does not fit into one of {self._array.shape}")
        np.copyto(self._array, np_arr)


class IOBinding:
    """Inputs and outputs of runs that are the same arrays each time."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._bound: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        self._inputs[name] = arr_on_cpu

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int) -> None:
        """`buffer_ptr` is the address of a dense array of `shape`, which has to live until the last run, as that of a tensor of PyTorch."""
        _check_device(device_type)
        self._inputs[name] = _array_at(name, element_type, shape, buffer_ptr)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._inputs[name] = ortvalue.numpy()

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        """With `buffer_ptr` as in `bind_input`, results are written there; else to a new array in each run."""
        _check_device(device_type)
        self._bound[name] = None if buffer_ptr is None else OrtValue(_array_at(name, element_type, shape, buffer_ptr))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        self._bound[name] = ortvalue

    def synchronize_inputs(self) -> None:
        """Arrays are the host's."""

    def synchronize_outputs(self) -> None:
        """Arrays are the host's."""

    def get_outputs(self) -> list[OrtValue]:
        return self._results

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        return [result.numpy() for result in self._results]

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._bound.clear()

    def run(self) -> None:
        names = list(self._bound)
        arrays = {name: value.numpy() for name, value in self._bound.items() if value is not None}
        if len(arrays) == len(names) and arrays.keys() == {output.name for output in self._session.get_outputs()}:
            self._session.run_into(self._inputs, arrays)
            self._results = [value for value in self._bound.values() if value is not None]
            return
        results = dict(zip(names, self._session.run(names, self._inputs))) if names else {}
        self._results = []
        for name, bound in self._bound.items():
            if bound is not None:
                bound.update_inplace(results[name])
            self._results.append(bound if bound is not None else OrtValue(results[name]))


def onnx_type(name: str) -> str:
    """How ONNX Runtime writes a tensor of such elements."""
    return f"tensor({_ONNX_NAMES.get(name, name)})"


# The others are as NumPy's.
_ONNX_NAMES = {"float32": "float", "float64": "double"}


def get_available_providers() -> list[str]:
    return ["CPUExecutionProvider"]


get_all_providers = get_available_providers


def get_device() -> str:
    return "CPU"


def set_default_logger_severity(severity: int) -> None:
    """0 to 4, from everything to what is fatal; of what Python's logger "collage" tells."""
    levels = [logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL]
    if not 0 <= severity < len(levels):
        raise ArgumentError(f"a severity is a number from 0 to {len(levels) - 1}, not {severity}")
    logging.getLogger("collage").setLevel(levels[severity])


def _array_at(name: str, element_type: Any, shape: Sequence[int] | None, address: int) -> np.ndarray:
    """What lies at the address; `element_type` as NumPy names it, or the number of ONNX."""
    if shape is None or element_type is None:
        raise ArgumentError(f"'{name}' is bound to a buffer: its element type and its shape are expected")
    if isinstance(element_type, int):
        from onnx import helper

        element_type = helper.tensor_dtype_to_np_dtype(element_type)
    dtype, extents = np.dtype(element_type), tuple(map(int, shape))
    if dtype.hasobject:
        raise ArgumentError(f"'{name}' is bound to a buffer: numbers are expected, not {dtype}")
    if 0 in extents:
        return np.empty(extents, dtype)
    if not address:
        raise ArgumentError(f"'{name}' is bound to the address 0")
    memory = (ctypes.c_char * (math.prod(extents) * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype).reshape(extents)


def _check_device(name: str) -> None:
    if name != "cpu":
        raise ArgumentError(f"arrays of sessions are the host's: a device 'cpu' is expected, not '{name}'")
