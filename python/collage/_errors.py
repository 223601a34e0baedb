"""What can go wrong. Messages are one line: where, what was found, what would be right."""


class Error(Exception):
    """Any error of Collage."""


class ArgumentError(Error, ValueError):
    """What the caller passed is wrong: an input, an option."""


class LoadError(Error):
    """A compiled file is missing, damaged, of another version, or for another machine."""


class RunError(Error):
    """A kernel failed, or memory ran out."""


class CompileError(Error):
    """The model cannot be read or compiled, or the result not be written."""


class StoppedError(Error):
    """A compile was given up before there was anything to keep."""


class BugError(Error):
    """A bug of Collage itself."""


# By collage_error_kind of collage.h.
BY_KIND = {1: ArgumentError, 2: LoadError, 3: RunError, 4: CompileError, 5: StoppedError, 6: BugError}
