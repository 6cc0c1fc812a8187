#!/usr/bin/env python3
"""Checks that each file that has to name the version names that of c/include/umem/config.h."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIG = (ROOT / "c/include/umem/config.h").read_text(encoding="utf-8")
VERSION = re.search(r'UMEM_VERSION "(.+)"', CONFIG)[1]
NAMED = {
    "CHANGELOG.md": r"^## \[(\d.*)\] - ",
    "CITATION.cff": r"^version: (.*)$",
    "packaging/debian/changelog": r"^umem \((.*)\)",
    "packaging/spack/package.py": r'^    version\("(.*)"',
    "packaging/vcpkg/vcpkg.json": r'^  "version": "(.*)"',
}


def main():
    failed = False
    numbers = re.findall(r"UMEM_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", CONFIG)
    found = {"the numbers of config.h": ".".join(numbers)}
    for name, pattern in NAMED.items():
        match = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.M)
        found[name] = match[1] if match else "none"
    for name, version in found.items():
        failed |= version != VERSION
        print(f"{'ok' if version == VERSION else 'not ok'} - {name} names version {VERSION}: {version}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
