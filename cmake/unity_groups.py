"""Which sources may be compiled as one: the number of each one's group, with semicolons between.

    unity_groups.py LARGEST FILE...

Two files go together only where no name that one keeps for itself, in an unnamed namespace or as a macro, occurs in the other at all. So
nothing means anything else beside another file, and nobody keeps a list of exceptions.
"""
import pathlib
import re
import sys

WORD = re.compile(r"[A-Za-z_]\w*")
MACRO = re.compile(r"^ *#define +(\w+)", re.MULTILINE)
# Both as the formatter leaves them.
UNNAMED = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)
TYPE = re.compile(r"(?:template <.*> *)?(?:class|struct|union|concept|enum(?: class)?) +([A-Za-z_]\w*)")
BORROWED = re.compile(r"using (?:namespace )?[\w:]+;|template <[^()]*>$")
OTHER = re.compile(r"([A-Za-z_]\w*) *[({=\[;]")
NO_NAMES = {"void", "bool", "char", "int", "float", "double", "operator", "decltype", "requires", "static_assert"}


def without_comments_and_strings(text):
    return re.sub(r'//[^\n]*|"(?:\\.|[^"\\\n])*"', "", text)


def private_names(text):
    names = set(MACRO.findall(text))
    for body in UNNAMED.findall(text):
        # What is indented belongs to a declaration before; what is borrowed means the same in both.
        for line in body.splitlines():
            if not WORD.match(line) or BORROWED.match(line):
                continue
            kind = TYPE.match(line)
            names.update([kind.group(1)] if kind else [name for name in OTHER.findall(line) if name not in NO_NAMES][:1])
    # Tests are named by macros of GoogleTest, and no two have the same name.
    return {name for name in names if not re.fullmatch(r"TEST(_[FP])?|TYPED_TEST\w*|INSTANTIATE_\w*|MATCHER\w*", name)}


class Group:
    def __init__(self):
        self.files, self.words, self.private = 0, set(), set()

    def takes(self, words, private):
        return not (words & self.private or private & self.words)

    def add(self, words, private):
        self.files += 1
        self.words |= words
        self.private |= private


def main():
    largest = int(sys.argv[1])
    groups, numbers = [], []
    for file in sys.argv[2:]:
        text = pathlib.Path(file).read_text()
        private = private_names(text)
        words = set(WORD.findall(without_comments_and_strings(text)))
        open_ones = (number for number, group in enumerate(groups) if group.files < largest and group.takes(words, private))
        number = next(open_ones, len(groups))
        if number == len(groups):
            groups.append(Group())
        groups[number].add(words, private)
        numbers.append(str(number))
    print(";".join(numbers), end="")


main()
