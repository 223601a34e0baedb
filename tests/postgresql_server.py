#!/usr/bin/env python3
"""A PostgreSQL server in a temporary folder, reached through a socket there.

As a module: `with Server() as server:` and `server.url`. As a program it runs a command that finds the URL in COLLAGE_TEST_POSTGRESQL:
    postgresql_server.py COMMAND [WORD ...]"""

import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile

VARIABLE = "COLLAGE_TEST_POSTGRESQL"


def _programs():
    """The folder of the newest server's programs; Debian keeps them off the PATH."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    initdb = shutil.which("initdb")
    assert initdb, "there is no PostgreSQL server (Debian package `postgresql`)"
    return pathlib.Path(initdb).resolve().parent


class Server:
    def __init__(self):
        self.programs = _programs()
        # The server refuses to run as root.
        self.user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}

    def _run(self, program, *words):
        # Of a server that goes on, a pipe would never end.
        log = self.folder / "commands.log"
        with open(log, "ab") as output:
            done = subprocess.run([self.programs / program, "-D", self.folder / "data", *words], cwd=self.folder, stdout=output, stderr=output, timeout=120, **self.user)
        assert done.returncode == 0, log.read_text()

    def __enter__(self):
        # A short path: that of a socket has 107 bytes at most.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="collage_pg_", dir="/tmp"))
        try:
            if self.user:
                owner = pwd.getpwnam("postgres")
                os.chown(self.folder, owner.pw_uid, owner.pw_gid)
            self._run("initdb", "--username=collage", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
            self.start()
        except BaseException:
            shutil.rmtree(self.folder)
            raise
        self.url = f"postgresql://collage@/postgres?host={self.folder}"
        return self

    def start(self):
        # Without fsync: what is tested survives the end of processes, not that of the machine.
        self._run("pg_ctl", "-w", "-l", self.folder / "server.log", "-o", f"-F -k {self.folder} -c listen_addresses=''", "start")

    def stop(self):
        """At once, as a crash would; what was committed is there after `start`."""
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")

    def __exit__(self, *_):
        if (self.folder / "data" / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.folder)

    def query(self, text):
        """Rows of a statement, each a list of texts."""
        done = subprocess.run([self.programs / "psql", "-X", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-c", text, self.url], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return [line.split("\t") for line in done.stdout.splitlines()]


def main():
    # What ends the test ends the server, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with Server() as server:
        code = subprocess.run(sys.argv[1:], env={**os.environ, VARIABLE: server.url}).returncode
    sys.exit(code)


if __name__ == "__main__":
    main()
