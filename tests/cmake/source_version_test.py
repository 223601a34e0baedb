"""cmake/SourceVersion.cmake: the version of a backend changes with its sources, and with nothing else.

Usage: source_version_test.py CMAKE SOURCE_DIRECTORY
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CMAKE, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])


class SourceVersionTest(unittest.TestCase):
    def version(self, files):
        """The version of these files (name: content) in a fresh folder."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, content in files.items():
                (root / name).write_text(content)
            (root / "list.txt").write_text("".join(f"{root / name}\n" for name in sorted(files)))
            words = {"LIST": root / "list.txt", "ROOT": root, "SYMBOL": "some_sources", "OUTPUT": root / "out.cc"}
            subprocess.run([CMAKE, *(f"-D{name}={value}" for name, value in words.items()), "-P", SOURCE / "cmake/SourceVersion.cmake"], check=True)
            return re.search(r'some_sources = "([0-9a-f]{12})";', (root / "out.cc").read_text()).group(1)

    def test_it_changes_with_names_and_contents_only(self):
        files = {"a.cc": "int a;", "b.h": "#pragma once; x"}
        whole = self.version(files)
        self.assertEqual(self.version(dict(files)), whole)  # in another folder
        versions = {whole, self.version({**files, "a.cc": "int b;"}), self.version({**files, "c.cc": ""}), self.version({"a.cc": "int a;"}),
                    self.version({"a.cc": "int a;", "c.h": files["b.h"]})}
        self.assertEqual(len(versions), 5)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
