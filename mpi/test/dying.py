#!/usr/bin/env python3
"""A rank is killed while another one uses its memory.

- As MPI has it, mpirun ends all ranks, and fails.
- Told to let the others live, it does, and the contract holds for the memory of the dead rank, which the ranks share.

Neither may take longer than a limit.

Usage: dying.py CONTRACT MPIRUN ...     (the program mpi_contract; mpirun with its options)
"""
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 60
LETS_LIVE = {"Open MPI": ["--enable-recovery"], "HYDRA": ["-disable-auto-cleanup"]}


def run(mpirun, program, environment, *options):
    """Runs two ranks, of which one dies; the exit status of mpirun."""
    command = [*mpirun, *options, "-n", "2", program, "dies", "single"]
    done = subprocess.run(command, env={**os.environ, **environment}, timeout=LIMIT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def ends_all(mpirun, program):
    status, output = run(mpirun, program, {"UMEM_TEST_MPI_OUTPUT": os.devnull})
    print(f"mpirun has ended all ranks with status {status}")
    if status == 0:
        sys.exit(f"mpirun does not tell that a rank was killed:\n{output}")


def waits_for(path, words):
    """Whether the file holds one of the words in time: mpirun may end before the ranks."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        text = path.read_text() if path.exists() else ""
        if any(word in text for word in words):
            return text
        time.sleep(0.1)
    sys.exit(f"a rank hangs after another one was killed:\n{text}")


def others_go_on(mpirun, program, options):
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        run(mpirun, program, {"UMEM_TEST_MPI_OUTPUT": str(output)}, *options)
        text = waits_for(output, ["the contract holds", "the contract does not hold"])
    if "the contract holds" not in text:
        sys.exit(text)
    print("the contract holds on the memory of a dead rank")


def main():
    program, *mpirun = sys.argv[1:]
    version = subprocess.run([mpirun[0], "--version"], capture_output=True, text=True).stdout
    ends_all(mpirun, program)
    for name, options in LETS_LIVE.items():
        if name in version:
            others_go_on(mpirun, program, options)
            return
    print("skipped: this mpirun has no known option to let the other ranks live")


if __name__ == "__main__":
    main()
