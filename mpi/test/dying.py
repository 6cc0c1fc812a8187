#!/usr/bin/env python3
"""A rank is killed while another one uses its memory.

- As MPI has it, mpirun ends all ranks, and fails.
- Told to let the others live, Open MPI's does, and the contract holds for the memory of the dead rank, which the ranks
  share. MPICH's ends soon, and with it sometimes the other rank.

Neither may take longer than a limit.

Usage: dying.py CONTRACT MPIRUN ...     (the program mpi_contract; mpirun with its options)
"""
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 60
# What uses the memory of the rank that dies: one context at a time, or a list or transfers between it and any other.
USES = ("single", "many: *mpi*", "transfer: *mpi*")
# By words of what mpirun says about itself; that of Open MPI has two names.
LETS_LIVE = {"Open MPI": ["--enable-recovery"], "OpenRTE": ["--enable-recovery"], "HYDRA": ["-disable-auto-cleanup"]}


def run(mpirun, program, use, environment, *options):
    """Runs two ranks, of which one dies; the exit status of mpirun."""
    command = [*mpirun, *options, "-n", "2", program, "dies", use]
    done = subprocess.run(command, env={**os.environ, **environment}, timeout=LIMIT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def ends_all(mpirun, program, use):
    status, output = run(mpirun, program, use, {"UMEM_TEST_MPI_OUTPUT": os.devnull})
    print(f"mpirun has ended all ranks with status {status}")
    if status == 0:
        sys.exit(f"mpirun does not tell that a rank was killed:\n{output}")


def is_running(number):
    try:
        return Path(f"/proc/{number}/stat").read_text().rsplit(")")[1].split()[0] != "Z"
    except OSError:
        return False


def wait_for(path):
    """What a rank has written when it has ended: mpirun may end before it."""
    end = time.monotonic() + LIMIT
    number = path.read_text().split()[0]
    while is_running(number):
        if time.monotonic() > end:
            os.kill(int(number), signal.SIGKILL)
            sys.exit(f"a rank hangs after another one was killed:\n{path.read_text()}")
        time.sleep(0.1)
    return path.read_text()


def others_go_on(mpirun, program, use, options, must_live):
    with tempfile.TemporaryDirectory(prefix=f"umem-test-{os.getpid()}-") as folder:
        output = Path(folder) / "output"
        run(mpirun, program, use, {"UMEM_TEST_MPI_OUTPUT": str(output)}, *options)
        text = wait_for(output)
    if "the contract holds" in text:
        print(f"the contract holds on the memory of a dead rank: {use}")
    elif "FAILED" in text or must_live:
        sys.exit(text)
    else:
        print("mpirun has ended the other rank, too")


def main():
    program, *mpirun = sys.argv[1:]
    version = subprocess.run([mpirun[0], "--version"], capture_output=True, text=True).stdout
    for use in USES:
        ends_all(mpirun, program, use)
    for name, options in LETS_LIVE.items():
        if name in version:
            for use in USES:
                others_go_on(mpirun, program, use, options, must_live=name.startswith("Open"))
            return
    print("skipped: this mpirun has no known option to let the other ranks live")


if __name__ == "__main__":
    main()
