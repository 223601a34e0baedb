"""cmake/unity_groups.py: files share a group only where what one keeps for itself does not occur in the other.

Usage: unity_groups_test.py SOURCE_DIRECTORY
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1])


def unnamed(text):
    return f"namespace {{\n\n{text}\n\n}}  // namespace\n"


class UnityGroupsTest(unittest.TestCase):
    def groups(self, contents, largest=16):
        """The group of each file."""
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder) / f"{number}.cc" for number in range(len(contents))]
            for file, content in zip(files, contents):
                file.write_text(content)
            command = [sys.executable, SOURCE / "cmake/unity_groups.py", str(largest), *files]
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split(";")

    def test_what_both_keep_for_themselves_or_one_means_otherwise_is_apart(self):
        for private in ["int Count(int most) {", "constexpr int Count = 3;", "struct Count {", "using Count = int;", "std::function<void()> Count(int) {"]:
            self.assertEqual(self.groups([unnamed(private), unnamed(private)]), ["0", "1"], private)
            self.assertEqual(self.groups([unnamed(private), "int i = Count();"]), ["0", "1"], private)
            self.assertEqual(self.groups(["int i = Count();", unnamed(private)]), ["0", "1"], private)
        self.assertEqual(self.groups(["#define COUNT 3\n", "int COUNT;"]), ["0", "1"])

    def test_the_rest_is_together(self):
        ours = unnamed("int Count(int most) {\n  int i = most;\n}")
        self.assertEqual(self.groups([ours, unnamed("int Sum(int most) {\n  int i = most;\n}")]), ["0", "0"])
        self.assertEqual(self.groups([ours, '// Count\nconst char* text = "Count";']), ["0", "0"])
        self.assertEqual(self.groups([unnamed("using ::testing::Not;\n\nTEST(One, A) {"), unnamed("using ::testing::Not;\n\nTEST(Two, A) {")]), ["0", "0"])

    def test_no_group_is_larger_than_asked_for(self):
        self.assertEqual(self.groups(["int a;", "int b;", "int c;"], largest=2), ["0", "0", "1"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
