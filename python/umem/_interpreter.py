"""Refuses subinterpreters: the classes of the module exist once in a process.

Python before 3.13 asks the module itself, which refuses. Later ones prepare every module in the main interpreter.
"""
import sys


def _is_main() -> bool:
    if sys.version_info < (3, 13):
        return True
    from importlib import import_module

    interpreters = import_module("_interpreters")
    current, main = interpreters.get_current(), interpreters.get_main()
    return bool(current[0] == main[0])


if not _is_main():
    raise ImportError("umem works only in the main interpreter of a process, not in subinterpreters")
