"""Workers that Ray starts. Usage: ray_test.py BINARY SIMULATED_BACKEND, with the Python package in PYTHONPATH"""

import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from simulated import BACKEND, BRANCHES, SETTINGS, VARIANTS, accept_all_machines, compile_words, environment_of_compile, make_model
from postgresql_server import Server

# Ray's own processes have these too, and so have workers.
os.environ.update(SETTINGS)

import ray
import collage.fleet

WORKERS = 4


class RayTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server())
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="ray_", dir="/tmp")))
        # A machine of four processors, whatever this one has.
        ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, _temp_dir=str(folder))
        cls.addClassCleanup(ray.shutdown)

    def setUp(self):
        self.server.query("DROP SCHEMA IF EXISTS collage CASCADE")
        accept_all_machines(self.server)

    def wait(self, condition, what):
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def wait_for(self, workers):
        self.wait(lambda: len(self.living()) == workers, f"{workers} workers")

    def living(self):
        """Processes of living workers."""
        rows = self.server.query("SELECT process FROM collage.worker WHERE number IN (SELECT objid::bigint FROM pg_locks WHERE locktype='advisory' AND objsubid=2)")
        return [int(process) for (process,) in rows]

    def test_a_cluster_measures_and_a_killed_worker_is_replaced(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        make_model(folder / "model.onnx")
        with collage.fleet.Workers(self.server.url, threads=1, plugins=[BACKEND], per_machine=WORKERS) as workers:
            self.assertEqual(len(workers), WORKERS)
            self.wait_for(WORKERS)
            done = subprocess.run(compile_words(folder, self.server.url, "--eager"), env=environment_of_compile(), capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            finished = [int(count) for (count,) in self.server.query("SELECT finished FROM collage.worker WHERE taken>0")]
            self.assertEqual((len(finished), sum(finished)), (WORKERS, BRANCHES * VARIANTS))
            self.assertEqual(workers.failures(), [])
            (victim, *others) = self.living()
            os.kill(victim, signal.SIGKILL)
            self.wait(lambda: victim not in self.living() and len(self.living()) == WORKERS, "another worker")
            self.assertLess(set(others), set(self.living()))
        self.wait_for(0)

    def test_a_dead_server_is_said(self):
        with collage.fleet.Workers("postgresql://me@127.0.0.1:1/none", threads=1) as workers:
            end = time.monotonic() + 60
            while not workers.failures():
                self.assertLess(time.monotonic(), end)
                time.sleep(0.1)
            self.assertIn("collage: cache postgresql://me@127.0.0.1:1/none: ", workers.failures()[0])
        with self.assertRaises(collage.ArgumentError):
            collage.fleet.Workers(self.server.url, per_machine=0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
