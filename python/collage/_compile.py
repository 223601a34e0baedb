"""Compiling a model."""

from __future__ import annotations

import contextlib
import json
import math
import os
import pathlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from collage import _backend, _collage
from collage._errors import ArgumentError, Error
from collage._report import Report

if TYPE_CHECKING:
    from collage._placement import Form, Function, Program, Rule
    from collage._session import InferenceSession

# A file, its bytes, or an onnx.ModelProto (anything with SerializeToString).
Model = Union[str, os.PathLike, bytes, Any]
# Is given a function and a target ("cpu -compiler=dnnl"), and answers seconds, or None where it cannot say.
Estimator = Callable[["Function", str], "float | None"]
# By the name that a target's -partition_rule gives: a tree of collage.rules, or one in JSON's form.
PartitionRules = Mapping[str, "Rule | Mapping[str, Any]"]
# Of collage.forms, or in JSON's form.
Forms = Sequence["Form | Mapping[str, Any]"]


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
    processors: Sequence[str] = (),
    choose_devices: bool = False,
    precision: str | None = None,
    search: str | None = None,
    partition_rules: PartitionRules | None = None,
    forms: Forms = (),
    estimator: Estimator | None = None,
    constants: str | os.PathLike | None = None,
) -> InferenceSession:
    """Places a model by measurement, and loads the result. A model is ONNX, or the file of a program in Relay's text.

    output: where the compiled file is written; None: it is kept in memory only.
    targets: such as "cpu -compiler=dnnl"; None: everything that is present.
    shapes: of inputs with symbolic dimensions; a list of such mappings makes a program of several profiles.
    budget: seconds for the whole compile; None: five minutes.
    cache: the file that keeps prices, or the URL of a PostgreSQL database; None: that of the command line.
    threads: for all backends together; None: all processors of this process.
    progress: called with (stage, done, total, detail) several times a second; when it answers true, the compile ends with the best
        plan of what was measured so far. Ctrl-C does the same; pressed again it raises KeyboardInterrupt.
    tune, cache_only, eager, pin, forbid: as the options of `collage compile`.
    processors: of CPUs beside the host, "cpu:1=2-3"; targets and pins may name them then, and the host, cpu:0, has those that are left.
    choose_devices: as the option of `collage compile`: the device of everything that no pin fixes is chosen, too.
    precision: "bf16", or "bf16=0.02": kernels may compute numbers of float32 so where that is faster, and the whole program may differ
        from the float32 reference by that share of an output's largest value. "int8-weights", or with a tolerance behind it: they may keep
        constant weights of products as integers of 8 bits, with a scale for each channel. None: all is float32.
    search: "sweep", "exact", "op-level", "evolutionary" or "greedy"; None: "sweep", which finds the cheapest plan.
    partition_rules: what "-partition_rule=NAME" of a target may name, instead of the rules of its backend.
    forms: other ways to compute parts of a model, as collage.forms makes them; they are offered beside those that Collage knows.
    estimator: prices instead of measurements. Nothing is timed then, and the plan depends on no machine.
    constants: the .npz archive with the constants of a program in Relay's text; None: what lies beside it under its name.

    Raises ArgumentError, CompileError, and what `progress` raises. Other threads run meanwhile.

    A compile is a process of its own, which no kernel that crashes gets out of. With backends of Python, trees of collage.rules,
    forms of collage.forms or an estimator it is in this process; kernels of other backends then are still priced in a worker, and whole
    plans run here."""
    from collage._session import InferenceSession

    options = options_of_compile(targets=targets, budget=budget, threads=threads, tune=tune, cache=cache, pin=pin, forbid=forbid,
                                 cache_only=cache_only, eager=eager, choose_devices=choose_devices, search=search, precision=precision,
                                 constants=constants)
    options.update(_given(shapes=_profiles(shapes)), processors=words(processors))
    trees, options["partition_rules"] = _split(partition_rules or {})
    built, options["forms"] = _split_forms(forms)
    with model_file(model) as source, tempfile.TemporaryDirectory(prefix="collage.") as folder:
        program = os.fspath(output) if output is not None else os.path.join(folder, "model.collage")
        if trees or built or estimator is not None or _backend.has_backends():
            from collage import _placement

            _placement.compile(source, program, json.dumps(options), trees, built, estimator, progress)
        else:
            _collage.compile(source, program, json.dumps(options), progress)
        # It stays mapped when the folder goes.
        return InferenceSession(program)


class Placement(NamedTuple):
    """Where a model's operators would run."""

    report: Report  # as InferenceSession.report
    text: str  # the partitioned program as Relay text

    @property
    def plan(self) -> list[dict[str, Any]]:
        """Its partitions: backend, operators, nodes, cost_us and the rest."""
        return self.report["plan"]

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


def place(
    model: Model | Program,
    *,
    estimator: Estimator,
    targets: Sequence[str] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    search: str | None = None,
    partition_rules: PartitionRules | None = None,
    forms: Forms = (),
    threads: int | None = None,
    pin: Sequence[str] = (),
    forbid: Sequence[str] = (),
) -> Placement:
    """The plan of a model at an estimator's prices, with the options of `collage.compile`. No kernel is made, run or timed."""
    from collage import _placement

    options: dict[str, Any] = {"pin": words(pin), "forbid": words(forbid)}
    options.update(_given(targets=targets and words(targets), search=search, threads=threads))
    trees, options["partition_rules"] = _split(partition_rules or {})
    built, options["forms"] = _split_forms(forms)
    report, text = _placement.place(read(model, shapes=shapes), json.dumps(options), trees, built, estimator)
    return Placement(Report(json.loads(report)), text)


def read(model: Model | Program, *, shapes: Mapping[str, Sequence[int]] | None = None,
         constants: str | os.PathLike | None = None) -> Program:
    """A model as backends see it: read, and simplified by the passes that come before placement."""
    from collage import _placement

    if isinstance(model, _placement.Program):
        return model
    with model_file(model) as path:
        return _placement.read(path, json.dumps(_given(shapes=_profiles(shapes), constants=constants and os.fspath(constants))))


def parse(text: str) -> Program:
    """A program from Relay text; constants that the text does not hold are random."""
    from collage import _placement

    return _placement.parse(text)


def options_of_compile(
    *,
    targets: Sequence[str] | None = None,
    budget: float | None = None,
    cache: str | os.PathLike | None = None,
    threads: int | None = None,
    tune: float | None = None,
    cache_only: bool = False,
    eager: bool = False,
    pin: Sequence[str] = (),
    forbid: Sequence[str] = (),
    choose_devices: bool = False,
    precision: str | None = None,
    search: str | None = None,
    constants: str | os.PathLike | None = None,
) -> dict[str, Any]:
    """Those of `compile` that concern no shapes, processors or placement of one's own, as the library takes them."""
    options: dict[str, Any] = {"pin": words(pin), "forbid": words(forbid), "cache_only": cache_only, "eager": eager,
                               "choose_devices": choose_devices}
    given = {"targets": targets and words(targets), "budget": _seconds("budget", budget), "threads": threads,
             "tune": _seconds("tune", tune), "cache": cache and os.fspath(cache), "constants": constants and os.fspath(constants)}
    return options | _given(**given, search=search, precision=precision)


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _profiles(shapes: Mapping[str, Sequence[int]] | Sequence[Mapping[str, Sequence[int]]] | None) -> list[dict[str, list[int]]] | None:
    if not shapes:
        return None
    profiles = [shapes] if isinstance(shapes, Mapping) else shapes
    return [{name: _extents(name, shape) for name, shape in profile.items()} for profile in profiles]


def _extents(name: str, shape: Sequence[int] | str) -> list[int]:
    """(1, 3), or "1x3" as the command line takes it."""
    try:
        return [int(extent) for extent in (shape.split("x") if isinstance(shape, str) else shape)]
    except (TypeError, ValueError):
        raise ArgumentError(f"shapes: of '{name}' extents are expected, such as (1, 3, 224, 224), not {shape!r}") from None


def words(given: Sequence[str] | str) -> list[str]:
    """A list of words, or one that stands alone."""
    return [given] if isinstance(given, str) else list(given)


def _seconds(name: str, seconds: float | None) -> float | None:
    if seconds is not None and not math.isfinite(seconds):
        raise ArgumentError(f"{name}: a number of seconds is expected, not {seconds}")
    return seconds


def _split(rules: PartitionRules) -> tuple[dict[str, Rule], dict[str, Any]]:
    """Trees of C++, and those in JSON's form."""
    in_json = {name: rule for name, rule in rules.items() if isinstance(rule, Mapping)}
    return {name: rule for name, rule in rules.items() if name not in in_json}, in_json


def _split_forms(forms: Forms) -> tuple[list[Form], list[dict[str, Any]]]:
    """Those of C++, and those in JSON's form."""
    in_json = [dict(form) for form in forms if isinstance(form, Mapping)]
    return [form for form in forms if not isinstance(form, Mapping)], in_json


def checked_model(model: Any) -> Model:
    """Errors on what is no model; other bytes become bytes."""
    if isinstance(model, (bytearray, memoryview)):
        return bytes(model)
    if not isinstance(model, (str, os.PathLike, bytes)) and not hasattr(model, "SerializeToString"):
        raise ArgumentError(f"a path, the bytes of a model or an onnx.ModelProto is expected, not {model!r:.80}")
    return model


@contextlib.contextmanager
def model_file(model: Model) -> Iterator[str]:
    """The path of a model. What is no file is one meanwhile, and errors call it "the model"."""
    model = checked_model(model)
    if isinstance(model, (str, os.PathLike)):
        yield os.fspath(model)
        return
    with tempfile.TemporaryDirectory(prefix="collage.") as folder:
        path = os.path.join(folder, "model.onnx")
        pathlib.Path(path).write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
        try:
            yield path
        except Error as error:
            raise type(error)(str(error).replace(path, "the model")) from None
