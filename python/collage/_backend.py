"""Backends that are written in Python."""

from __future__ import annotations

import atexit
import hashlib
import threading
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collage._errors import ArgumentError

if TYPE_CHECKING:
    from collage._placement import Function, Match, Pattern

# Is given a function that its pattern has matched, and gives what computes it.
KernelMaker = Callable[["Function"], Callable[..., Any]]
# Is given a match, and answers True, False, or a reason why not.
Check = Callable[["Match"], Any]


class _Rule(NamedTuple):
    pattern: Pattern
    check: Check | None
    make: KernelMaker
    into: bool


class Backend:
    """Made by `collage.register_backend`."""

    def __init__(self, name: str, version: str | None) -> None:
        self.name = name
        self._version = version
        self._rules: dict[str, _Rule] = {}

    def kernel(self, label: str, pattern: Pattern, *, check: Check | None = None, into: bool = False) -> Callable[[KernelMaker], KernelMaker]:
        """What `pattern` matches, and `check` accepts, may run here; the decorated function makes its kernels.

        It is given the function (operators with their attributes, types, constants) and returns a callable. That is called with arrays of
        NumPy, one for each input, and returns an array for each output, or anything that speaks DLPack. With `into` it is called with the
        list of inputs and the list of outputs, and writes those. Arrays are valid during the call. What either raises is the reason for
        which this kernel is not taken. Rules that come first are tried first."""

        from collage._placement import Pattern as PatternType

        if not isinstance(pattern, PatternType):
            raise ArgumentError(f"kernel '{label}': a pattern of collage.pattern is expected, not {pattern!r:.80}")

        def add(make: KernelMaker) -> KernelMaker:
            if label in self._rules:
                raise ArgumentError(f"backend '{self.name}' has a kernel '{label}' already")
            if not label:
                raise ArgumentError("a kernel needs a label")
            self._rules[label] = _Rule(pattern, check, make, into)
            return make

        return add

    @property
    def version(self) -> str:
        """Prices are those of a version. Unless one was given, it changes with the code of kernels and checks."""
        if self._version is not None:
            return self._version
        digest = hashlib.sha256()
        for label, rule in self._rules.items():
            digest.update(repr((label, rule.into)).encode())
            for function in (rule.make, rule.check):
                _hash_code(getattr(function, "__code__", None) or repr(function), digest)
        return digest.hexdigest()[:12]

    def __repr__(self) -> str:
        return f"<collage.Backend {self.name}: {', '.join(self._rules) or 'no kernels'}>"


_registered: dict[str, Backend] = {}
_lock = threading.Lock()


def register_backend(name: str, *, version: str | None = None) -> Backend:
    """A backend of this process, to which `kernel` adds what it can run. It takes part in every compile of this process whose targets
    name it ("cpu -compiler=NAME"), or name none, and its kernels run in this process.

    They are timed here too, and not in a worker: one that crashes takes the process with it. A program that holds such kernels names the
    backend, and can be loaded where one of that name is registered."""
    if not name.isidentifier():
        raise ArgumentError(f"a backend's name is a word of letters, digits and underscores, not {name!r}")
    from collage import _placement

    backend = Backend(name, version)
    with _lock:
        _placement.add_backend(name)
        _registered[name] = backend
    return backend


def unregister_backend(name: str) -> None:
    """Sessions that have kernels of it keep them."""
    from collage import _placement

    with _lock:
        if _registered.pop(name, None) is None:
            raise ArgumentError(f"there is no backend '{name}' of Python")
        _placement.remove_backend(name)


def has_backends() -> bool:
    return bool(_registered)


def _hash_code(code: Any, digest: Any) -> None:
    """Whatever decides what a function does, apart from what it refers to by name."""
    if not isinstance(code, types.CodeType):
        digest.update(repr(code).encode())
        return
    digest.update(code.co_code)
    digest.update(repr(code.co_names).encode())
    for constant in code.co_consts:
        _hash_code(constant, digest)


# Asked by the module in C++ (python/placement/backend.cc).


def rules_of(name: str) -> list[tuple[str, Pattern, Check | None]]:
    backend = _registered.get(name)
    rules = backend._rules if backend else {}
    return [(f"{name}.{label}", rule.pattern, rule.check) for label, rule in rules.items()]


def version_of(name: str) -> str:
    backend = _registered.get(name)
    return backend.version if backend else ""


def kernel_of(name: str, function: Function) -> Callable[[list[np.ndarray], list[np.ndarray]], None]:
    """Runs on lists of arrays, the outputs being written."""
    label = function.label.removeprefix(f"{name}.")
    backend = _registered.get(name)
    if backend is None or label not in backend._rules:
        raise ArgumentError(f"backend '{name}' has no kernel '{label}' in this process")
    rule = backend._rules[label]
    return _Kernel(rule.make(function), rule.into)


class _Kernel:
    """What the kernel in C++ calls."""

    def __init__(self, run: Callable[..., Any], into: bool) -> None:
        self.run: Callable[..., Any] | None = run
        self._into = into
        _kernels.add(self)

    def __call__(self, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
        if self.run is None:
            raise RuntimeError("the interpreter ends")
        if self._into:
            self.run(inputs, outputs)
        else:
            _write(self.run(*inputs), outputs)


_kernels: weakref.WeakSet[_Kernel] = weakref.WeakSet()


@atexit.register
def _let_go() -> None:
    # A session holds kernels, they their script, and that the session: a circle through C++, which no collector sees.
    for kernel in list(_kernels):
        kernel.run = None
    _registered.clear()


def _write(results: Any, outputs: list[np.ndarray]) -> None:
    results = results if isinstance(results, (tuple, list)) else (results,)
    if len(results) != len(outputs):
        raise ValueError(f"gave {len(results)} results, expected {len(outputs)}")
    for result, output in zip(results, outputs):
        array = result if isinstance(result, np.ndarray) or not hasattr(result, "__dlpack__") else np.from_dlpack(result)
        array = np.asarray(array)
        if array.shape != output.shape or array.dtype != output.dtype:
            raise ValueError(f"gave {array.dtype} {array.shape}, expected {output.dtype} {output.shape}")
        np.copyto(output, array)
