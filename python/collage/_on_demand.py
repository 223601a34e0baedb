"""Programs for the shapes that runs have: compiled when they are first wanted, and kept."""

from __future__ import annotations

import inspect
import json
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from collage import _collage
from collage._compile import options_of_compile
from collage._errors import ArgumentError

# By name of an input.
Shapes = Mapping[str, tuple[int, ...]]


class OnDemand:
    """Makes a program for each shapes of inputs once. Raises as what makes them does."""

    def __init__(self, make: Callable[[Shapes], _collage.Program]) -> None:
        self._make = make
        self._programs: dict[frozenset[tuple[str, tuple[int, ...]]], _collage.Program] = {}
        self._lock = threading.Lock()

    def program(self, shapes: Shapes) -> _collage.Program:
        key = frozenset(shapes.items())
        if key in self._programs:  # while another thread compiles, for minutes perhaps
            return self._programs[key]
        with self._lock:  # threads that want the same one wait for it
            if key not in self._programs:
                self._programs[key] = self._make(shapes)
            return self._programs[key]

    @property
    def last(self) -> _collage.Program | None:
        """That of the newest shapes."""
        return next(reversed(self._programs.values()), None)


def beside_file(
    path: str,
    model: str | os.PathLike,
    load_options: Mapping[str, Any],
    progress: Callable[[str, int, int, str], Any] | None = None,
    **compile_options: Any,
) -> OnDemand:
    """The programs of a compiled file, and those that are kept beside it: other shapes of its model are compiled."""
    # A program that is added to a file has the threads of the file, or the session's.
    known = set(inspect.signature(options_of_compile).parameters) - {"threads"}
    unknown = sorted(set(compile_options) - known)
    if unknown:
        raise ArgumentError(f"{unknown[0]}: is no option of compiling on demand")
    options = {**load_options, "compile_on_demand": os.fspath(model), "compile": options_of_compile(**compile_options)}

    def make(shapes: Shapes) -> _collage.Program:
        of_shapes = {"shapes": {name: list(shape) for name, shape in shapes.items()}}
        return _collage.load_or_compile(path, json.dumps({**options, **of_shapes}), progress)

    return OnDemand(make)
