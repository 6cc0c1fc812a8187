#!/usr/bin/env python3
"""Tells on what a benchmark runs: results without that are worth nothing.

Usage: machine.py ROOT BUILD FILES    prints facts, as JSON, about this machine, the commit of the tree
                                      ROOT, the build in BUILD and the file system of the folder FILES
"""
import json
import os
import platform
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def _output(*command):
    """What command prints, or "" where there is no such command or it fails."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return run.stdout.strip()


def _field(path, name):
    """The first value of a line "name: value" of a file of /proc."""
    match = re.search(rf"^{re.escape(name)}\s*:\s*(.*)$", Path(path).read_text(), re.MULTILINE)
    return match.group(1).strip() if match else ""


def _commit(root):
    """What the environment says, or Git of the tree."""
    if os.environ.get("UMEM_COMMIT"):
        return os.environ["UMEM_COMMIT"]
    commit = _output("git", "-C", root, "rev-parse", "--short=12", "HEAD")
    changed = _output("git", "-C", root, "status", "--porcelain", "c", "cxx", "bench", "test")
    return (commit or "unknown") + (" and changes that are not committed" if changed else "")


def _compiler(build):
    cache = (Path(build) / "CMakeCache.txt").read_text()
    compiler = re.search(r"^CMAKE_C_COMPILER:\w+=(.*)$", cache, re.MULTILINE).group(1)
    return _output(compiler, "--version").splitlines()[0]


def _scheduling():
    policies = {os.SCHED_OTHER: "normal", os.SCHED_FIFO: "real-time FIFO", os.SCHED_RR: "real-time RR"}
    policy = os.sched_getscheduler(0)
    return f"{policies.get(policy, policy)}, nice {os.nice(0)}"


def _gpus(build):
    """Facts about the GPUs; none where there are none."""
    lines = _output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines()
    if not lines or "," not in lines[0]:
        return {}
    name, driver = lines[0].rsplit(",", 1)
    log = Path(build) / "build.log"  # what CMake has said
    runtime = re.search(r"^-- umem: with CUDA (\S+)", log.read_text() if log.exists() else "", re.MULTILINE)
    return {
        "GPU": f"{len(lines)} x {name.strip()}",
        "driver": driver.strip(),
        "CUDA runtime": runtime.group(1) if runtime else "none",
    }


def describe(root, build, files):
    file_system = _output("findmnt", "-n", "-o", "FSTYPE,OPTIONS", "-T", files)
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(root),
        "compiler": _compiler(build),
        **_gpus(build),
        "CPU": _field("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "RAM": f"{int(_field('/proc/meminfo', 'MemTotal').split()[0]) / 2**20:.1f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "file system": file_system or "unknown",
        "huge pages": HUGE_PAGES.read_text().strip() if HUGE_PAGES.exists() else "none",
        "scheduling": _scheduling(),
        "load before": " ".join(f"{load:.1f}" for load in os.getloadavg()),
    }


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    print(json.dumps(describe(*sys.argv[1:]), indent=1))


if __name__ == "__main__":
    main()
