"""Shapes that a compiled file has no profile of: compiled once, and kept beside it."""

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
    """Loads a file's programs by the shapes of a run's inputs."""

    def __init__(
        self,
        path: str,
        model: str | os.PathLike,
        load_options: Mapping[str, Any],
        progress: Callable[[str, int, int, str], Any] | None = None,
        **compile_options: Any,
    ) -> None:
        # A program that is added to a file has the threads of the file, or the session's.
        known = set(inspect.signature(options_of_compile).parameters) - {"threads"}
        unknown = sorted(set(compile_options) - known)
        if unknown:
            raise ArgumentError(f"{unknown[0]}: is no option of compiling on demand")
        self._path = path
        options = {"compile_on_demand": os.fspath(model), "compile": options_of_compile(**compile_options)}
        self._options = {**load_options, **options}
        self._progress = progress
        self._programs: dict[frozenset[tuple[str, tuple[int, ...]]], _collage.Program] = {}
        self._lock = threading.Lock()

    def program(self, shapes: Shapes) -> _collage.Program:
        """Raises as collage.compile does."""
        key = frozenset(shapes.items())
        if key in self._programs:  # while another thread compiles, for minutes perhaps
            return self._programs[key]
        with self._lock:  # threads that want the same one wait for it
            if key not in self._programs:
                options = {**self._options, "shapes": {name: list(shape) for name, shape in shapes.items()}}
                self._programs[key] = _collage.load_or_compile(self._path, json.dumps(options), self._progress)
            return self._programs[key]
