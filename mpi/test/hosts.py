#!/usr/bin/env python3
"""Runs ranks of MPI on emulated hosts. Each is a set of namespaces: network, host name, mounts, IPC and processes, with a
network card on a bridge. Ranks of two hosts share no memory and see no process of each other, so that MPI has only TCP.
mpirun runs on one more host, without ranks. All ends with this process, also if it is killed.

Usage: hosts.py HOSTS RANKS LIMIT MPIRUN ... -- PROGRAM ...
       so many ranks on each host; the limit in seconds; mpirun with its options

Exit status: that of mpirun; 77 if the system permits no such namespaces; 124 if it takes longer than the limit.
"""
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED, TOO_LATE = 77, 124
NETWORK = "10.213.77."  # nothing outside of the namespaces sees it
NAMESPACES = ["--net", "--uts", "--mount", "--ipc", "--pid"]
NEW = ["unshare", *NAMESPACES, "--mount-proc", "--fork", "--kill-child"]
INSIDE = "UMEM_TEST_HOSTS"  # in the environment of the process that is in the namespaces of mpirun's host

# A new host: its shared memory, and what it knows of the names of others. Its first process waits for its end.
BEGIN = """set -e
hostname {name}
ip link set lo up
mount -t tmpfs -o size=1g tmpfs /dev/shm
mount --bind {names} /etc/hosts
echo ready
exec sleep infinity
"""


def call(*command):
    subprocess.run(command, check=True)


def enter_namespaces():
    """Continues in new namespaces, as root there; ends this process where that is not permitted."""
    attempts = [NEW, [NEW[0], "--user", "--map-root-user", *NEW[1:]]]
    probe = ["ip", "link", "add", "name", "host0", "type", "veth", "peer", "name", "eth0"]
    for attempt in attempts:
        try:
            permitted = subprocess.run([*attempt, *probe], capture_output=True).returncode == 0
        except FileNotFoundError:
            permitted = False
        if permitted:
            os.execvpe(attempt[0], [*attempt, sys.executable, *sys.argv], {**os.environ, INSIDE: "1"})
    print("skipped: this system permits no emulated hosts (they need namespaces, veth, iproute2 and util-linux)")
    sys.exit(SKIPPED)


def start_host(name, address, names):
    """Returns the number of the first process of a new host, which a cable connects to the bridge."""
    script = BEGIN.format(name=name, names=shlex.quote(str(names)))
    holder = subprocess.Popen([*NEW, "sh", "-c", script], stdout=subprocess.PIPE, text=True)
    if holder.stdout.readline() != "ready\n":
        sys.exit(f"{name} does not start")
    first = Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()[0]
    call("ip", "link", "add", "name", name, "type", "veth", "peer", "name", "eth0", "netns", first)
    call("ip", "link", "set", name, "master", "bridge", "up")
    for words in (["address", "add", f"{address}/24", "dev", "eth0"], ["link", "set", "eth0", "up"]):
        call("nsenter", f"--target={first}", "--net", "ip", *words)
    return first


def start_hosts(count, folder):
    """The first process of each host of ranks, by its name."""
    addresses = {name: f"{NETWORK}{n + 1}" for n, name in enumerate(["mpirun", *(f"host{n}" for n in range(count))])}
    names = folder / "hosts"
    names.write_text("127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in addresses.items()))
    call("hostname", "mpirun")
    call("mount", "--bind", str(names), "/etc/hosts")
    call("ip", "link", "set", "lo", "up")
    call("ip", "link", "add", "name", "bridge", "type", "bridge")
    call("ip", "address", "add", f"{addresses['mpirun']}/24", "dev", "bridge")
    call("ip", "link", "set", "bridge", "up")
    return {name: start_host(name, address, names) for name, address in addresses.items() if name != "mpirun"}


def write_launcher(hosts, folder):
    """What mpirun calls instead of ssh: LAUNCHER [OPTION ...] HOST COMMAND ..."""
    cases = "\n".join(f"{name}) first={first} ;;" for name, first in hosts.items())
    launcher = folder / "launcher"
    launcher.write_text(f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
case $1 in
{cases}
*) echo "there is no host $1" >&2; exit 1 ;;
esac
shift
exec nsenter --target=$first {' '.join(NAMESPACES)} sh -c "cd {shlex.quote(os.getcwd())}; $*"
""")
    launcher.chmod(0o755)
    return str(launcher)


def place_ranks(mpirun, launcher, hosts, ranks):
    """The options for so many ranks on each host. Open MPI would bind the first ranks of all hosts to the same processor."""
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True).stdout
    names = ",".join(f"{name}:{ranks}" for name in hosts)
    options = ["-launcher", "ssh", "-launcher-exec", launcher, "-hosts"]
    if "Open MPI" in version or "OpenRTE" in version:
        options = ["--bind-to", "none", "--mca", "plm_rsh_agent", launcher, "--host"]
    return [*options, names, "-n", str(ranks * len(hosts))]


def main():
    separator = sys.argv.index("--")
    count, ranks, limit = (int(word) for word in sys.argv[1:4])
    mpirun, program = sys.argv[4:separator], sys.argv[separator + 1:]
    if not os.environ.pop(INSIDE, None):
        enter_namespaces()
    with tempfile.TemporaryDirectory(prefix=f"umem-test-{os.getpid()}-") as name:
        hosts = start_hosts(count, Path(name))
        options = place_ranks(mpirun[0], write_launcher(hosts, Path(name)), hosts, ranks)
        try:
            sys.exit(subprocess.run([*mpirun, *options, *program], timeout=limit).returncode)
        except subprocess.TimeoutExpired:
            print(f"the ranks take longer than {limit} s")
            sys.exit(TOO_LATE)


if __name__ == "__main__":
    main()
