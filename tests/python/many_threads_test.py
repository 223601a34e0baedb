"""Many threads on one session: every result has the bits of a serial run.

Usage: many_threads_test.py [--seconds 3] [--threads 16] [--program FILE]"""

import argparse
import threading
import time

import models
import numpy as np

import collage

FEEDS = 8


def random_feed(session, seed):
    generator = np.random.default_rng(seed)
    inputs = session.get_inputs()
    assert all(one.type == "tensor(float)" for one in inputs), inputs
    return {one.name: generator.standard_normal(one.shape, dtype=np.float32) for one in inputs}


def run_for(session, seconds, count):
    """How often each thread ran, and the first differences."""
    feeds = [random_feed(session, seed) for seed in range(FEEDS)]
    expected = [session.run(None, feed) for feed in feeds]
    runs, problems = [0] * count, []
    end = time.monotonic() + seconds

    def work(thread):
        try:
            # Each begins with another input, and goes through all of them even when the time is over at once.
            while runs[thread] < FEEDS or (time.monotonic() < end and not problems):
                which = (thread + runs[thread]) % FEEDS
                for i, (result, wanted) in enumerate(zip(session.run(None, feeds[which]), expected[which], strict=True)):
                    if result.tobytes() != wanted.tobytes():
                        problems.append(f"thread {thread}, run {runs[thread]}, input {which}: output {i} differs")
                runs[thread] += 1
        except Exception as error:
            problems.append(f"thread {thread}: {error}")

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return runs, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--program", help="a compiled file with inputs of float32; default: three convolutions, compiled now")
    options = parser.parse_args()
    session = collage.InferenceSession(options.program) if options.program else models.compile_quickly(models.convolutions())
    runs, problems = run_for(session, options.seconds, options.threads)
    print(f"{options.threads} threads, {options.seconds:g} s: {sum(runs)} runs, {min(runs)} to {max(runs)} a thread, {len(problems)} differ")
    assert not problems, problems[:5]


if __name__ == "__main__":
    main()
