"""Completion in shells, and man pages. Usage: texts_test.py BINARY [unittest arguments]"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from command_line import BINARY, main


def printed(*words):
    done = subprocess.run([BINARY, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


# As the help lists them: after their title, two spaces before each.
COMMANDS = sorted(re.findall(r"^  ([a-z]+) ", re.split(r"^Subcommands:$", printed("--help"), flags=re.MULTILINE)[1], re.MULTILINE))


class CompletionTest(unittest.TestCase):
    def bash(self, line):
        """What bash offers at the end of a line."""
        words = line.split(" ")
        script = f"""{printed("completion", "bash")}
COMP_WORDS=({" ".join(f"'{word}'" for word in words)}); COMP_CWORD={len(words) - 1}
_collage
printf '%s\\n' "${{COMPREPLY[@]}}"
complete -p collage
"""
        done = subprocess.run(["bash", "--norc", "-u", "-c", script], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        *offers, registered = done.stdout.splitlines()
        self.assertIn("-F _collage collage", registered)
        return [offer for offer in offers if offer]

    def test_bash_completes_commands_and_options(self):
        self.assertEqual(self.bash("collage ex"), ["explain"])
        self.assertEqual(sorted(self.bash("collage ")), COMMANDS)
        self.assertEqual(self.bash("collage explain --ht"), ["--html"])
        self.assertEqual(self.bash("collage cache st"), ["stats"])
        self.assertEqual(self.bash("collage cache export --comp"), [])
        self.assertIn("--budget", self.bash("collage compile model.onnx --"))
        # The value of an option is no command and no option, but a file.
        self.assertEqual(self.bash("collage explain --html "), [])
        self.assertEqual(self.bash("collage bench file --json run --cs"), ["--csv"])

    def test_bash_completes_every_option_of_help(self):
        for command in COMMANDS:
            offers = self.bash(f"collage {command} --")
            for line in printed(command, "--help").splitlines():
                names = line.strip().split(" ")[0].split(",")
                if line.startswith("  -"):
                    self.assertIn(names[-1], offers, command)

    @unittest.skipUnless(shutil.which("zsh"), "there is no zsh")
    def test_zsh_reads_it(self):
        script = "autoload -U compinit && compinit -u -D\n" + printed("completion", "zsh") + '\nprint -r -- "$_comps[collage]"\n'
        done = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.stdout.strip(), done.stderr), ("_collage", ""))

    @unittest.skipUnless(shutil.which("fish"), "there is no fish")
    def test_fish_completes(self):
        with tempfile.TemporaryDirectory() as folder:
            script = printed("completion", "fish") + "complete -C 'collage ex'\ncomplete -C 'collage explain --ht'\ncomplete -C 'collage cache st'\n"
            environment = {**os.environ, "HOME": folder}
            done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, timeout=60, env=environment)
        self.assertEqual([line.split("\t")[0] for line in done.stdout.splitlines()], ["explain", "--html", "stats"], done.stderr)

    def test_another_shell_is_an_error(self):
        done = subprocess.run([BINARY, "completion", "tcsh"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("tcsh", done.stderr)


class ManPageTest(unittest.TestCase):
    def pages(self):
        yield "collage", printed("man")
        for command in COMMANDS:
            yield f"collage-{command}", printed("man", command)

    def test_each_says_what_help_says(self):
        for name, page in self.pages():
            self.assertIn(".SH NAME\n" + name.replace("-", "\\-"), page)
        page = printed("man", "compile").replace("\\-", "-")
        for part in ("\\fB-o, --output\\fR".replace(", ", "\\fR, \\fB"), "--budget", "Exit".upper()):
            self.assertIn(part, page)
        self.assertIn("stats", printed("man", "cache"))

    def test_the_page_of_each_is_installed(self):
        listed = pathlib.Path(__file__).resolve().parents[2] / "tools/CMakeLists.txt"
        self.assertEqual(sorted(re.search(r"^set\(commands ([^)]*)\)", listed.read_text(), re.MULTILINE).group(1).split()), COMMANDS)

    @unittest.skipUnless(shutil.which("man") and shutil.which("groff"), "there is no man")
    def test_man_has_no_warnings(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, page in self.pages():
                path = pathlib.Path(folder) / f"{name}.1"
                path.write_text(page)
                environment = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MANROFFSEQ": ""}
                done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", path], capture_output=True, text=True, env=environment)
                self.assertEqual((done.returncode, done.stderr), (0, ""), name)

    @unittest.skipUnless(shutil.which("mandoc"), "there is no mandoc")
    def test_mandoc_has_no_warnings(self):
        for name, page in self.pages():
            done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], input=page, capture_output=True, text=True)
            # Pages have no date: those of one version are equal, whenever it was built.
            self.assertEqual([line for line in done.stdout.splitlines() if "missing date" not in line], [], name)


if __name__ == "__main__":
    main()
