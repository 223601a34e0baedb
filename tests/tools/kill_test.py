"""Kills compiles at seeded random moments; the cache must stay whole, the next compile must go on, and no partial file may remain.

Usage: kill_test.py BINARY MODEL [--moments N] [--seed N]"""

import argparse
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time


def run(*words):
    return subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=120)


def entries(binary, cache):
    """Lines of the export: every measurement with its samples."""
    done = run(binary, "cache", "export", "--cache", cache)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines())


def wait_for_group(group, seconds=20):
    """Whatever the killed process had started must end by itself."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    raise AssertionError(f"processes of the killed compile (group {group}) are still there after {seconds} s")


class KillTest:
    def __init__(self, folder, options):
        self.folder, self.options = folder, options
        self.cache, self.output = folder / "prices.sqlite", folder / "out.collage"
        self.words = [options.binary, "compile", options.model, "-o", self.output, "--cache", self.cache, "--budget", options.budget, "--threads", 1]

    def check_files(self):
        """Only the cache with its journals, and a program that can be read."""
        known = {self.cache.name, self.cache.name + "-wal", self.cache.name + "-shm", self.output.name}
        found = {path.name for path in self.folder.iterdir()}
        assert found <= known, f"left behind: {sorted(found - known)}"
        if self.output.exists():
            done = run(self.options.binary, "explain", self.output)
            assert done.returncode == 0, done.stderr
            self.output.unlink()

    def start_and_kill(self, seconds):
        """Gives whether the compile was still running."""
        process = subprocess.Popen([*map(str, self.words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        was_running = process.poll() is None
        process.send_signal(signal.SIGKILL)
        code = process.wait()
        assert was_running or code == 0, f"a compile ended with {code}"
        wait_for_group(process.pid)
        return was_running

    def one_moment(self, seconds):
        known = entries(self.options.binary, self.cache) if self.cache.exists() else set()
        killed = self.start_and_kill(seconds)
        self.check_files()
        if not self.cache.exists():
            return killed, 0
        verified = run(self.options.binary, "cache", "verify", "--cache", self.cache)
        assert verified.returncode == 0, f"after {seconds:.3f} s: {verified.stdout}{verified.stderr}"
        after = entries(self.options.binary, self.cache)
        # Prices of kernels in context gain rounds, and what was verified is marked; nothing else changes, and nothing is lost.
        assert len(after) >= len(known), f"after {seconds:.3f} s: {len(known)} entries became {len(after)}"
        return killed, len(after) - len(known)

    def finish(self):
        """The next compile goes on from what the killed ones left."""
        done = run(*self.words)
        assert done.returncode == 0, done.stderr
        self.check_files()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("model")
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", default="3s")
    options = parser.parse_args()
    generator = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        test = KillTest(pathlib.Path(name), options)
        start = time.monotonic()
        test.finish()
        whole = time.monotonic() - start
        killed = gained = 0
        while killed < options.moments:
            # From nothing again: the table's creation and the first measurements are moments too.
            for path in test.folder.iterdir():
                path.unlink()
            was_running = True
            for _ in range(5):
                was_running, more = test.one_moment(generator.uniform(0, whole))
                killed, gained = killed + was_running, gained + more
                if not was_running:  # it went on to its end
                    break
            if was_running:
                test.finish()
        print(f"{killed} compiles of {whole:.1f} s killed while running, {gained} entries survived kills")
        assert gained > 0, "no killed compile left anything to go on from"


if __name__ == "__main__":
    os.environ.setdefault("COLLAGE_LOG", "error")
    main()
