"""The command line: `python -m collage`, and `collage` where pip has installed the package."""

import os
import pathlib
import sys


def main() -> None:
    package = pathlib.Path(__file__).resolve().parent
    # Of an installed package, or of a build's folder.
    for folder in (package / "bin", package.parent.parent / "bin"):
        if (folder / "collage").is_file():
            os.execv(folder / "collage", ["collage", *sys.argv[1:]])
    sys.exit(f"collage: the command line is not beside {package}")


if __name__ == "__main__":
    main()
