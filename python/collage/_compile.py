"""Compiling a model."""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from collage import _collage

if TYPE_CHECKING:
    from collage._session import InferenceSession

# A file, its bytes, or an onnx.ModelProto (anything with SerializeToString).
Model = Union[str, os.PathLike, bytes, Any]


def compile(
    model: Model,
    output: str | os.PathLike | None = None,
    *,
    targets: Sequence[str] | None = None,
    shapes: Mapping[str, Sequence[int]] | Sequence[Mapping[str, Sequence[int]]] | None = None,
    budget: float | None = None,
    cache: str | os.PathLike | None = None,
    threads: int | None = None,
    progress: Callable[[str, int, int, str], Any] | None = None,
    tune: float | None = None,
    cache_only: bool = False,
    eager: bool = False,
    pin: Sequence[str] = (),
    forbid: Sequence[str] = (),
) -> InferenceSession:
    """Places a model by measurement, and loads the result.

    output: where the compiled file is written; None: it is kept in memory only.
    targets: such as "cpu -compiler=dnnl"; None: everything that is present.
    shapes: of inputs with symbolic dimensions; a list of such mappings makes a program of several profiles.
    budget: seconds for the whole compile; None: five minutes.
    cache: the file that keeps prices; None: that of the command line.
    threads: for all backends together; None: all processors of this process.
    progress: called with (stage, done, total, detail) several times a second; when it answers true, the compile ends with the best
        plan of what was measured so far. Ctrl-C does the same; pressed again it raises KeyboardInterrupt.
    tune, cache_only, eager, pin, forbid: as the options of `collage compile`.

    Raises ArgumentError, CompileError, and what `progress` raises. Other threads run meanwhile."""
    from collage._session import InferenceSession

    options: dict[str, Any] = {"pin": list(pin), "forbid": list(forbid), "cache_only": cache_only, "eager": eager}
    given = {"targets": targets and list(targets), "budget": budget, "threads": threads, "tune": tune, "cache": cache and os.fspath(cache)}
    options.update({name: value for name, value in given.items() if value is not None})
    if shapes:
        profiles = [shapes] if isinstance(shapes, Mapping) else shapes
        options["shapes"] = [{name: [int(extent) for extent in shape] for name, shape in profile.items()} for profile in profiles]
    with tempfile.TemporaryDirectory(prefix="collage.") as folder:
        source = pathlib.Path(folder) / "model.onnx"
        if isinstance(model, (str, os.PathLike)):
            source = pathlib.Path(model)
        else:
            source.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
        program = os.fspath(output) if output is not None else os.path.join(folder, "model.collage")
        _collage.compile(os.fspath(source), program, json.dumps(options), progress)
        # It stays mapped when the folder goes.
        return InferenceSession(program)
