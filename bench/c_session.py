"""A compiled program through the C interface (collage/c/collage.h), by ctypes: nothing of ours but the library is needed."""

import ctypes
import json

import numpy as np

ALIGNMENT = 64  # buffers at its multiples are used where they are


class Error(Exception):
    """What the C interface says."""


class _TensorInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("rank", ctypes.c_size_t), ("bytes", ctypes.c_size_t)]


class _Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class _Step(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_char_p), ("name", ctypes.c_char_p), ("backend", ctypes.c_char_p), ("calls", ctypes.c_uint64),
                ("microseconds", ctypes.c_double)]


_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_size_t
# Results and arguments of what is used.
_FUNCTIONS = {
    "collage_error_message": (ctypes.c_char_p, [_POINTER]),
    "collage_error_free": (None, [_POINTER]),
    "collage_program_load": (_POINTER, [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(_POINTER)]),
    "collage_program_free": (None, [_POINTER]),
    "collage_program_input_count": (_SIZE, [_POINTER]),
    "collage_program_output_count": (_SIZE, [_POINTER]),
    "collage_program_input": (_TensorInfo, [_POINTER, _SIZE, _SIZE]),
    "collage_program_output": (_TensorInfo, [_POINTER, _SIZE, _SIZE]),
    "collage_session_create": (_POINTER, [_POINTER, ctypes.POINTER(_POINTER)]),
    "collage_session_free": (None, [_POINTER]),
    "collage_session_run": (_POINTER, [_POINTER, ctypes.POINTER(_Buffer), _SIZE, ctypes.POINTER(_Buffer), _SIZE]),
    "collage_session_set_profiling": (None, [_POINTER, ctypes.c_int]),
    "collage_session_step_count": (_SIZE, [_POINTER]),
    "collage_session_step": (_Step, [_POINTER, _SIZE]),
}


def aligned(shape, dtype):
    """An array of no values yet at a multiple of ALIGNMENT."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    return memory[begin:begin + size].view(dtype).reshape(shape)


class Library:
    """libcollage_runtime, opened."""

    def __init__(self, path):
        self.c = ctypes.CDLL(str(path))
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(self.c, name)
            function.restype, function.argtypes = result, arguments

    def check(self, error):
        if error:
            message = self.c.collage_error_message(error).decode()
            self.c.collage_error_free(error)
            raise Error(message)


class Session:
    """A program of one profile with buffers bound. Each run reads the arrays of `inputs`; `outputs` has what came out."""

    def __init__(self, library, path, inputs, threads=None):
        self._library = library
        self._program, self._session = _POINTER(), _POINTER()
        options = json.dumps({"threads": threads} if threads else {}).encode()
        c = library.c
        library.check(c.collage_program_load(str(path).encode(), options, ctypes.byref(self._program)))
        library.check(c.collage_session_create(self._program, ctypes.byref(self._session)))
        read = [c.collage_program_input(self._program, 0, i) for i in range(c.collage_program_input_count(self._program))]
        given = [c.collage_program_output(self._program, 0, i) for i in range(c.collage_program_output_count(self._program))]
        self.inputs = {info.name.decode(): inputs[info.name.decode()] for info in read}
        self.outputs = {info.name.decode(): aligned(info.shape[:info.rank], info.type.decode()) for info in given}
        self._read, self._written = self._buffers(self.inputs), self._buffers(self.outputs)

    @staticmethod
    def _buffers(arrays):
        return (_Buffer * len(arrays))(*(_Buffer(array.ctypes.data, array.nbytes) for array in arrays.values()))

    def run(self):
        c = self._library.c
        self._library.check(c.collage_session_run(self._session, self._read, len(self._read), self._written, len(self._written)))

    def profile(self, runs):
        """Microseconds of one run, by kind of step and backend. A profiled run waits after each step, so together they are
        more than a run."""
        c = self._library.c
        self.run()  # threads wake up
        c.collage_session_set_profiling(self._session, 1)
        try:
            for _ in range(runs):
                self.run()
            steps = [c.collage_session_step(self._session, i) for i in range(c.collage_session_step_count(self._session))]
            shares = {}
            for step in steps:
                name = f"{step.kind.decode()} {step.backend.decode()}".strip()
                shares[name] = shares.get(name, 0.0) + step.microseconds / runs
        finally:
            c.collage_session_set_profiling(self._session, 0)
        return shares

    def close(self):
        self._library.c.collage_session_free(self._session)
        self._library.c.collage_program_free(self._program)
        self._program, self._session = _POINTER(), _POINTER()
