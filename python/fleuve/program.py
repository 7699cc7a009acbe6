"""The engine's binary: where it lies and how it is run."""

import os
import pathlib
import platform
import sys


def binary():
    """Path of the engine. FLEUVE_BINARY names another one than the one this package carries.

    RuntimeError where there is none, or where the system's C library is older than the engine needs.
    """
    named = os.environ.get("FLEUVE_BINARY")
    if named:
        return named
    folder = pathlib.Path(__file__).resolve().parent / "engine"
    program = folder / "fleuve"
    if not program.exists():
        raise RuntimeError(
            "this package carries no engine: install the wheel that `pip install .` builds in the repository, "
            "or name a binary in FLEUVE_BINARY"
        )
    needed = (folder / "GLIBC").read_text().strip()
    name, version = platform.libc_ver()
    if name != "glibc" or tuple(map(int, version.split("."))) < tuple(map(int, needed.split("."))):
        raise RuntimeError(f"the engine needs glibc {needed} or newer, and this system has {name or 'another C library'} {version}")
    return str(program)


def main():
    """The command `fleuve`."""
    run()


def pipelines():
    """The command `fleuve-pipelines`."""
    run("pipelines")


def run(*words):
    """Becomes the engine's program, with `words` before the command's own."""
    try:
        program = binary()
    except RuntimeError as error:
        sys.exit(f"fleuve: {error}")
    # The Python that the package is installed in is the user's, unless another one is named.
    os.environ.setdefault("FLEUVE_PYTHON", sys.executable)
    os.execv(program, [program, *words, *sys.argv[1:]])
