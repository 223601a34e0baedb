"""A fleet of local workers around a PostgreSQL server. Usage: workers_test.py BINARY SIMULATED_BACKEND [unittest arguments]"""

import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from simulated import BACKEND, BINARY, BRANCHES, VARIANTS, accept_all_machines, compile_words, environment, environment_of_compile, make_model
from postgresql_server import Server


class Worker:
    def __init__(self, url, *words, **settings):
        self.process = subprocess.Popen(
            [BINARY, "worker", "--plugin", BACKEND, "--cache", url, "--threads", "1", *words],
            env=environment(**settings),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def stop(self):
        """Gives the exit code and what it has printed."""
        self.process.terminate()
        output, errors = self.process.communicate(timeout=60)
        return self.process.returncode, output + errors


class FleetTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server())
        cls.url = cls.server.url

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        make_model(self.folder / "model.onnx")
        self.forget()

    def forget(self):
        self.server.query("DROP SCHEMA IF EXISTS collage CASCADE")
        accept_all_machines(self.server)

    def start(self, count, *words, **settings):
        workers = [Worker(self.url, *words, **settings) for _ in range(count)]
        for worker in workers:
            self.addCleanup(worker.kill)
        self.wait(lambda: self.living() == count, f"{count} workers")
        return workers

    def living(self):
        return int(self.server.query("SELECT count(*) FROM pg_locks WHERE locktype='advisory' AND objsubid=2")[0][0])

    def wait(self, condition, what):
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.1)

    def compile(self, *words, url=None):
        report = self.folder / "report.json"
        done = subprocess.run(compile_words(self.folder, url or self.url, "--json", report, *words), env=environment_of_compile(), capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(report.read_text())

    def counts(self):
        """Of all workers together: jobs that were taken, and that were finished."""
        return tuple(int(number) for number in self.server.query("SELECT sum(taken), sum(finished) FROM collage.worker")[0])

    def kernels(self):
        return int(self.server.query("SELECT count(*) FROM collage.kernel WHERE backend='simulated'")[0][0])

    def seconds_of_pricing(self, workers):
        """From the first job in the queue to the last one out of it."""
        self.forget()
        started = self.start(workers)
        compile = threading.Thread(target=self.compile, args=["--eager"])
        compile.start()
        jobs = lambda: int(self.server.query("SELECT count(*) FROM collage.job")[0][0])
        self.wait(jobs, "jobs")
        start = time.monotonic()
        self.wait(lambda: not jobs(), "an empty queue")
        seconds = time.monotonic() - start
        compile.join()
        self.assertEqual(self.counts(), (BRANCHES * VARIANTS, BRANCHES * VARIANTS))
        for worker in started:
            code, printed = worker.stop()
            self.assertEqual(code, 0, printed)
            self.assertIn("kernels timed", printed)
        return seconds

    def test_four_workers_price_two_and_a_half_times_as_fast_as_one(self):
        one = self.seconds_of_pricing(1)
        four = self.seconds_of_pricing(4)
        print(f"{BRANCHES * VARIANTS} kernels: {one:.2f} s by one worker, {four:.2f} s by four: {one / four:.2f} times as fast", file=sys.stderr)
        self.assertGreaterEqual(one / four, 2.5)

    def test_the_plan_is_that_of_one_machine(self):
        self.start(4)
        fleet = self.compile()
        alone = self.compile(url=str(self.folder / "prices.sqlite"))
        chosen = lambda report: sorted((partition["backend"], partition["variant"]) for partition in report["plan"])
        self.assertEqual(chosen(fleet), [("simulated", "1")] * BRANCHES)
        self.assertEqual(chosen(fleet), chosen(alone))
        self.assertGreaterEqual(self.counts()[1], BRANCHES)
        # A second compile asks nobody.
        before = self.counts()
        self.compile()
        self.assertEqual(self.counts(), before)

    def test_a_killed_worker_loses_one_measurement_at_most(self):
        workers = self.start(4)
        compile = threading.Thread(target=self.compile, args=["--eager"])
        compile.start()
        killed = 0
        for worker in workers[:3]:
            busy = f"SELECT count(*) FROM collage.job JOIN collage.worker w ON job.worker=w.number WHERE w.process={worker.process.pid}"
            self.wait(lambda: self.server.query(busy) == [["1"]], "a worker at work")
            worker.kill()
            killed += 1
        compile.join()
        taken, finished = self.counts()
        print(f"{killed} of 4 workers killed: {taken} jobs taken, {finished} finished", file=sys.stderr)
        self.assertEqual(finished, BRANCHES * VARIANTS)
        self.assertEqual(self.kernels(), BRANCHES * VARIANTS)
        self.assertLessEqual(taken - finished, killed)

    def test_where_all_workers_die_the_compile_measures_by_itself(self):
        (worker,) = self.start(1)
        compile = threading.Thread(target=self.compile, args=["--eager"])
        compile.start()
        self.wait(lambda: self.living() and self.counts()[1] >= 2, "two prices")
        worker.kill()
        compile.join()
        self.assertEqual(self.kernels(), BRANCHES * VARIANTS)
        self.assertEqual(self.server.query("SELECT count(*) FROM collage.job"), [["0"]])

    def test_what_ends_every_worker_is_given_up(self):
        self.start(1)[0].kill()
        self.compile("--eager")
        # A kernel that three workers have died of, as if it had taken the memory of their machines.
        columns = "function_hash, backend, backend_version, variant, device, threads, protocol"
        self.server.query(f"INSERT INTO collage.job({columns}, message, worker, attempts) SELECT {columns}, '', 1, 3 FROM collage.kernel WHERE backend='simulated' LIMIT 1")
        self.start(1)
        self.wait(lambda: self.server.query("SELECT count(*) FROM collage.job") == [["0"]], "a job that is given up")
        self.assertEqual(self.server.query("SELECT invalid_reason FROM collage.kernel WHERE invalid_reason LIKE 'ended 3 workers%'"), [["ended 3 workers that were timing it"]])

    def test_workers_take_only_what_suits_them(self):
        worker = Worker(self.url, COLLAGE_BACKENDS="")
        self.addCleanup(worker.kill)
        self.wait(lambda: self.living() == 1, "a worker")
        # Another version of the backend has other prices.
        self.server.query("UPDATE collage.worker_backend SET backend_version='other' WHERE backend='simulated'")
        self.compile()
        self.assertEqual(self.counts(), (0, 0))
        self.assertGreaterEqual(self.kernels(), BRANCHES)

    def test_machines_that_disagree_are_told_apart(self):
        slow = self.start(1)[0]
        # As if the first machine had been far slower than this one.
        self.server.query("UPDATE collage.machine SET low_picoseconds=1000000000000000, high_picoseconds=2000000000000000")
        fast = Worker(self.url, COLLAGE_LOG="warning")
        self.addCleanup(fast.kill)
        self.wait(lambda: self.living() == 2, "two workers")
        of_living = "number IN (SELECT objid::bigint FROM pg_locks WHERE locktype='advisory' AND objsubid=2)"
        (first,), (second,) = self.server.query(f"SELECT device FROM collage.worker WHERE {of_living} ORDER BY number")
        self.assertEqual(second, first + "#2")
        self.server.query(f"UPDATE collage.machine SET low_picoseconds=1, high_picoseconds={10**14} WHERE type=2")
        # A compile on the second machine asks that one only.
        self.compile("--eager")
        finished = self.server.query("SELECT process, finished FROM collage.worker WHERE finished>0")
        self.assertEqual(finished, [[str(fast.process.pid), str(BRANCHES * VARIANTS)]])
        devices = self.server.query("SELECT DISTINCT split_part(device, '/', 1) FROM collage.kernel WHERE backend='simulated'")
        self.assertEqual(devices, [[second]])
        self.assertIn(f"its prices are kept apart, under {second}", fast.stop()[1])
        self.assertNotIn("apart", slow.stop()[1])

    def test_an_interrupted_server_loses_nothing_that_was_written(self):
        workers = self.start(2)
        compile = subprocess.Popen(compile_words(self.folder, self.url, "--eager"), env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.wait(lambda: self.living() == 2 and self.counts()[1] >= 5, "five prices")
        self.server.stop()
        _, errors = compile.communicate(timeout=60)
        self.assertEqual(compile.returncode, 2, errors)
        self.assertIn(f"collage: cache {self.url}: ", errors)
        for worker in workers:
            _, printed = worker.process.communicate(timeout=60)
            self.assertEqual(worker.process.returncode, 2, printed)
            self.assertIn(f"collage: cache {self.url}: ", printed)
        self.server.start()
        self.assertGreaterEqual(self.kernels(), 5)
        self.assertEqual(self.counts()[1], self.kernels())
        self.start(2)
        self.compile("--eager")
        self.assertEqual(self.kernels(), BRANCHES * VARIANTS)
        verified = subprocess.run([BINARY, "cache", "verify", "--cache", self.url], capture_output=True, text=True, timeout=60)
        self.assertEqual((verified.returncode, verified.stdout), (0, f"{self.url}: whole\n"))

    def test_the_cache_command_takes_the_url(self):
        self.compile()
        file = self.folder / "prices.sqlite"
        cache = lambda *words: subprocess.run([BINARY, "cache", *words], capture_output=True, text=True, timeout=60)
        exported = cache("export", "--cache", self.url, self.folder / "prices.jsonl")
        self.assertEqual(exported.returncode, 0, exported.stderr)
        self.assertEqual(cache("import", "--cache", file, self.folder / "prices.jsonl").returncode, 0)
        of_url, of_file = (json.loads(cache("stats", "--cache", name, "--json", "-").stdout) for name in (self.url, file))
        for field in ("entries", "samples", "backends", "facts", "devices", "schema"):
            self.assertEqual(of_url[field], of_file[field])
        # What the file was given is all that a compile needs.
        self.compile("--cache-only", url=str(file))
        self.compile("--cache-only")
        pruned = cache("prune", "--cache", self.url, "--backend", "simulated")
        self.assertEqual(pruned.returncode, 0, pruned.stderr)
        self.assertEqual(self.kernels(), 0)

    def test_errors_name_the_database(self):
        for words in (["cache", "stats", "--cache", "postgresql://me:secret@127.0.0.1:1/none"], ["worker", "--cache", "postgresql://me:secret@127.0.0.1:1/none"]):
            done = subprocess.run([BINARY, *words], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertTrue(done.stderr.startswith("collage: cache postgresql://me@127.0.0.1:1/none: "), done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
        done = subprocess.run([BINARY, "worker", "--cache", self.folder / "prices.sqlite"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("a fleet needs the URL of a PostgreSQL database", done.stderr)
        self.server.query("DROP SCHEMA collage CASCADE")
        done = subprocess.run([BINARY, "cache", "stats", "--cache", self.url], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("holds no cache", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
