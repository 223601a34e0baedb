"""Workers of a fleet (`collage worker`) on the machines of a Ray cluster. Needs `pip install collage[ray]`.

    import collage, collage.fleet

    prices = "postgresql://me@host/prices"
    with collage.fleet.Workers(prices):
        collage.compile("model.onnx", "model.collage", cache=prices)

Collage has to be installed on the machines. Ray would tell its makers of its use; that is turned off (a setting of
RAY_USAGE_STATS_ENABLED stays)."""

from __future__ import annotations

import ctypes
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
import ray  # noqa: E402
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: E402

from collage._errors import ArgumentError  # noqa: E402


def _command() -> str:
    """The command line of this installation, or of this build."""
    package = pathlib.Path(__file__).resolve().parent
    for folder in (package, package.parent.parent):
        if (folder / "bin" / "collage").is_file():
            return str(folder / "bin" / "collage")
    raise ArgumentError(f"{package}: there is no command line beside this package")


def _end_with_parent() -> None:
    """Where Ray's process is killed, nobody would ever end its worker (prctl(2), PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def _said(worker: subprocess.Popen[str]) -> str:
    """What it has said when it ends. Ray's exception waits for the next instruction of Python, so none may take long."""
    while True:
        try:
            return worker.communicate(timeout=0.2)[0]
        except subprocess.TimeoutExpired:
            continue


def _work(words: Sequence[str]) -> str:
    """Runs a worker to its end, another one where it is killed, and gives what the last one has said."""
    while True:
        worker = subprocess.Popen(
            [_command(), "worker", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=_end_with_parent
        )
        try:
            said = _said(worker)
        except BaseException:
            # Ray cancels a task by an exception. The worker ends when its measurement does.
            worker.terminate()
            worker.communicate()
            raise
        if worker.returncode == 0:
            return said
        if worker.returncode > 0:
            raise RuntimeError(said.strip())
        # The system may have lacked memory; whatever it was, it should not be tried a thousand times.
        time.sleep(1)


class Workers:
    """Workers that live as long as this does: use it in `with`.

    cache: URL of the database, that of the compiles.
    threads: kernels of more threads are left to others; None: all processors of a machine.
    plugins: shared objects of further backends, by their paths on the machines.
    per_machine: more than one on a machine disturb each other's measurements. For trying things out.

    Ray gives each of them its share of the machine's processors, so that none of its other tasks disturbs them. One that is killed
    is started again, elsewhere where its machine is gone. A Ray that is not initialised is: with what `ray.init()` finds, RAY_ADDRESS or this machine."""

    def __init__(self, cache: str, *, threads: int | None = None, plugins: Sequence[str] = (), per_machine: int = 1) -> None:
        if per_machine < 1:
            raise ArgumentError("per_machine is at least 1")
        if not ray.is_initialized():
            ray.init(log_to_driver=False)
        words = ["--cache", cache]
        words += [] if threads is None else ["--threads", str(threads)]
        for plugin in plugins:
            words += ["--plugin", os.fspath(plugin)]
        self._tasks: list[Any] = []
        for machine in ray.nodes():
            processors = machine["Resources"].get("CPU", 0)
            if not machine["Alive"] or not processors:
                continue
            share = processors / per_machine
            task = ray.remote(_work).options(
                # Ray takes fractions of one only.
                num_cpus=int(share) if share > 1 else share,
                max_retries=-1,
                scheduling_strategy=NodeAffinitySchedulingStrategy(machine["NodeID"], soft=True),
            )
            self._tasks += [task.remote(words) for _ in range(per_machine)]

    def __len__(self) -> int:
        """How many have been started."""
        return len(self._tasks)

    def failures(self) -> list[str]:
        """Why workers have ended by themselves: their database does not answer, say."""
        ended, _ = ray.wait(self._tasks, num_returns=len(self._tasks), timeout=0)
        reasons = []
        for task in ended:
            try:
                ray.get(task)
            except ray.exceptions.RayError as error:
                reasons.append(str(getattr(error, "cause", None) or error))
        return reasons

    def stop(self) -> None:
        """Ends them, each after its measurement."""
        for task in self._tasks:
            ray.cancel(task, force=False)
        ray.wait(self._tasks, num_returns=len(self._tasks), timeout=None)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
