"""python -m umem --cmake-dir, --include-dir, --version: where extensions in C++ find what they need."""
import argparse
from pathlib import Path

from . import __version__

_FOLDER = Path(__file__).absolute().parent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m umem", description="What builds of extensions ask the package umem.")
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--cmake-dir", action="store_const", dest="answer", const=str(_FOLDER / "cmake"),
                        help="print the folder of umem-config.cmake: umem_ROOT for find_package(umem)")
    choice.add_argument("--include-dir", action="store_const", dest="answer", const=str(_FOLDER / "include"),
                        help="print the folder of the headers")
    choice.add_argument("--version", action="store_const", dest="answer", const=__version__,
                        help="print the version")
    print(parser.parse_args().answer)


main()
