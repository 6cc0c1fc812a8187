#!/usr/bin/env python3
"""Checks who includes whom, and that nothing decides by the kind of a context.

The kinds come from their list, c/include/umem.h: each header that it includes beside umem/base.h is that
of a context, or of something that no other header needs and that is kept apart likewise (threads, blocks).
c/src is made of rooms, and ENTERS says which rooms the files of a room may include headers from. In a room
X.c and X_*.[ch] belong to the context X of umem/X.h. An engine of ENGINES serves several contexts: those with its
name, and those whose source makes its table of methods of UMEM_ENGINE_METHODS.
cxx/include includes C headers that are public, and nothing else that is umem's; what only nvcc compiles
stands in .cuh. The headers of its folder `with` are each for a library of others, which they include.

Usage: include_rules.py [ROOT]
"""
import re
import sys
from pathlib import Path

import c_source
from report import Report

SOURCE_SUFFIXES = {".c", ".h", ".cpp", ".hpp", ".cu", ".cuh"}
OF_NVCC = {".cu", ".cuh"}

# Room -> the rooms whose private headers its files may include, beside its own.
ENTERS = {
    "base": set(),
    "core": {"base"},
    "watch": {"base", "core"},
    "stores": {"base", "core", "watch"},
    "share": {"base", "core"},
    "url": {"base", "core", "watch"},
    "cuda": {"base", "core", "watch"},
    "pool": {"base", "core"},
    "adaptors": {"base", "core"},
    "adaptors/debug": {"base", "core", "adaptors"},
    "adaptors/log": {"base", "core", "adaptors"},
    "open": {"base", "core"},
    "blocks": {"base", "core", "watch"},
    "array": {"base", "core"},
}
# Rooms that include no header of a context.
BELOW_CONTEXTS = {"base", "core", "watch"}
# The public headers that the room base may include: they know no context.
IN_BASE = {"umem/config.h", "umem/status.h"}

# Private modules that a family of contexts shares.
ENGINES = {"pool", "store", "url"}

# Modules of several small contexts -> these.
HOLDS = {"meter": {"limit", "stats"}}

# Contexts, and what else the list of kinds names, that stand on others: they may include the headers of those.
STANDS_ON = {"array": {"element"}, "array_check": {"array", "element"},
             "array_convert": {"array"}, "array_random": {"array"}, "npy": {"element"},
             "dlpack": {"array", "element"}, "arrow": {"array"}}

STANDARD_IN_PUBLIC = {"stdbool.h", "stddef.h", "stdint.h"}
FORBIDDEN_IN_PUBLIC = (
    r"\b(?:cuda[A-Z]\w*|CU[a-z]+\w*|__CUDA\w*|MPI_\w+|pthread\w*|_Atomic|atomic_\w+|HAVE_\w*)\b"
)
# CUDA's own names and headers stand in the files of the table alone. One of them looks for NVIDIA's libraries.
CUDA_TABLES = ("cuda/cuda_rt.c", "cuda/cuda_driver.c", "cuda/cuda_driver.h")
DRIVER_TABLE = "cuda/cuda_driver.c"
# The files that open libraries of others at run time, by a function of base/system.c, and find their functions.
OPENERS = {"base/system.c", DRIVER_TABLE, "url/url_curl.c"}
OF_CUDA = (
    r"\bcu(?:da)?[A-Z]\w*|\bCU[a-z]\w+|\bCUDART?_\w+"
    r"|[<\"](?:cu\w*|driver_types|nvml)\.h[>\"]"
)
# What no file names: cuFile has no functions that a library links.
OF_CUFILE = r"\bcuFile[A-Z]\w*|[<\"]cufile\.h[>\"]"
OF_LINKER = r"\bdl(?:m?open|v?sym)\b"
# The toolkit's headers, as the C++ headers name them.
OF_TOOLKIT = r"(?:cuda|cub|thrust)(?:/.*|_\w+\.h)"
BY_NVCC = "defined(__CUDACC__)"
# C++ headers for libraries of others.
FOR_OTHERS = "umem/with/"
OF_PROFILERS = "<nvtx3/nvToolsExt.h>"
FOR_PROFILERS = "defined(UMEM_NVTX)"
# Where code decides by a kind of context; KINDS stands for their names.
BY_KIND = r"\bcase\s+(?:KINDS)\b|[=!]=\s*(?:KINDS)\b|\b(?:KINDS)\s*[=!]="


class Tree:
    """A working tree and the roles of its files."""

    def __init__(self, root):
        self.root = root
        self.public = self.files("c/include", "*.h")
        self.source = self.files("c/src", "*.[ch]")
        self.contract = self.files("test/contract", "*.[ch]")
        self.cxx = self.files("cxx/include", "*.hpp") + self.files("cxx/include", "*.cuh")
        self.cxx_names = {str(path.relative_to(root / "cxx/include")) for path in self.cxx}
        self.public_names = {self.public_name(path) for path in self.public}
        self.kinds_header = root / "c/include/umem.h"
        self.base = self.included_from(self.kinds_header) & {"umem/base.h"}
        if self.base:
            self.base |= self.included_from(root / "c/include/umem/base.h")
        self.context_headers = self.included_from(self.kinds_header) - self.base
        self.contexts = {Path(name).stem for name in self.context_headers}
        self.users = {engine: self.users_of(engine) for engine in ENGINES}

    def users_of(self, engine):
        """The contexts that stand on an engine."""
        methods = rf"\bUMEM_{engine.upper()}_METHODS\b"
        with_its_name = {context for context in self.contexts if context == engine or context.startswith(engine + "_")}
        return with_its_name | {path.stem for path in self.source
                                if path.stem in self.contexts and re.search(methods, self.code(path))}

    def files(self, folder, pattern):
        return sorted((self.root / folder).rglob(pattern))

    def included_from(self, path):
        return {name for _, name in c_source.includes(self.code(path))}

    def code(self, path):
        """The text without comments and strings, in which `#include "x.h"` stays."""
        return c_source.without_strings(c_source.without_comments(path.read_text()))

    def guarded_includes(self, path):
        """The headers that path includes: [(line, name with its brackets or quotes, what the #ifs say)]."""
        code = self.code(path)
        found = zip(code.splitlines(), c_source.conditions(code))
        return [
            (number, match[1], holds)
            for number, (line, holds) in enumerate(found, 1)
            if (match := re.match(r'\s*#\s*include\s*([<"][^>"]+[>"])', line))
        ]

    def where(self, path, line):
        return f"{path.relative_to(self.root)}:{line}"

    def public_name(self, path):
        return str(path.relative_to(self.root / "c/include"))

    def private_name(self, path):
        """As an #include names it: ROOM/FILE."""
        return str(path.relative_to(self.root / "c/src"))

    def is_for_others(self, path):
        """Whether a C++ header is for a library of others."""
        return str(path.relative_to(self.root / "cxx/include")).startswith(FOR_OTHERS)

    def room(self, name):
        """The room of the private file `name`, ROOM/FILE."""
        return str(Path(name).parent)

    def module(self, name):
        """The context or shared module that the private file `name` belongs to, or None."""
        if self.room(name) in BELOW_CONTEXTS:
            return None
        stem = Path(name).stem
        modules = sorted(self.contexts | ENGINES, key=len, reverse=True)
        return next((m for m in modules if stem == m or stem.startswith(m + "_")), None)

    def may_enter(self, room, name):
        """Whether files of room may include the private header `name`."""
        return self.room(name) in ENTERS.get(room, set()) | {room}

    def family(self, module):
        """The modules whose private headers the files of module may include."""
        if module in ENGINES:
            return {module}
        engines = {engine for engine, users in self.users.items() if module in users}
        return {module} | STANDS_ON.get(module, set()) | engines

    def find(self, paths, pattern):
        """Where the code of paths matches pattern."""
        return [
            f"{self.where(path, line)}: {what}"
            for path in paths
            for line, what in c_source.matches(self.code(path), pattern)
        ]


def public_headers_include_the_base(tree):
    """A header of the base includes the base and standard headers; that of a context includes
    umem/base.h, what it stands on, and umem/host.h where it embeds a umemHost."""
    problems = []
    for path in tree.public:
        name = tree.public_name(path)
        if path == tree.kinds_header:
            continue
        if name in tree.context_headers:
            allowed = {"umem/base.h"} | {f"umem/{m}.h" for m in STANDS_ON.get(path.stem, set())}
            if re.search(r"\bumemHost\s+\w+\s*;", tree.code(path)):
                allowed.add("umem/host.h")
        else:
            allowed = tree.base | STANDARD_IN_PUBLIC
        for line, included in c_source.includes(tree.code(path)):
            if included not in allowed:
                problems.append(f"{tree.where(path, line)}: includes {included}")
    return problems


def public_headers_are_reachable(tree):
    """Each public header is included by umem.h or by umem/base.h."""
    known = tree.base | tree.context_headers
    return [
        f"{tree.where(path, 1)}: included by neither umem.h nor umem/base.h"
        for path in tree.public
        if path != tree.kinds_header and tree.public_name(path) not in known
    ]


def public_headers_are_plain(tree):
    """No CUDA, MPI, pthread, _Atomic or HAVE_* in a public header."""
    return tree.find(tree.public, FORBIDDEN_IN_PUBLIC)


def nothing_decides_by_kind(tree):
    """No `case umemXDevice:` and no comparison with one, which the public headers name, in the library."""
    kinds = {kind for path in tree.public for kind in re.findall(r"\bumem\w+Device\b", tree.code(path))}
    if not kinds:
        return ["the public headers name no kind of context"]
    return tree.find(tree.public + tree.source, BY_KIND.replace("KINDS", "|".join(sorted(kinds))))


def sources_stand_in_rooms(tree):
    """Each private file stands in one of the rooms."""
    return [
        f"{tree.where(path, 1)}: {tree.room(tree.private_name(path))} is no room"
        for path in tree.source
        if tree.room(tree.private_name(path)) not in ENTERS
    ]


def sources_include_their_own(tree):
    """A file includes private headers, by ROOM/FILE, of the rooms that its room may enter, and in its own
    room those of its family, never those of a peer. A context includes its own public header and
    umem/host.h; the rooms below them include no header of a context."""
    problems = []
    for path in tree.source:
        name = tree.private_name(path)
        room, module = tree.room(name), tree.module(name)
        family = tree.family(module) if module else set()
        for line, included in c_source.includes(tree.code(path)):
            if included.startswith("umem/") or included == "umem.h":
                allowed = included in (IN_BASE if room == "base" else tree.base | {f"umem/{path.stem}.h"})
                allowed |= included in {f"umem/{held}.h" for held in HOLDS.get(path.stem, ())}
                allowed |= module is not None and included in {f"umem/{module}.h", "umem/host.h"}
                allowed |= module in ENGINES and included in {f"umem/{user}.h" for user in tree.users[module]}
                allowed |= room == "open" and included != "umem.h"
            elif tree.room(included) in ENTERS:
                owner = tree.module(included)
                allowed = tree.may_enter(room, included) and (owner is None or owner in family)
            else:  # the system's
                allowed = not (path.parent / included).exists()
            if not allowed:
                problems.append(f"{tree.where(path, line)}: includes {included}")
    return problems


def circle(uses):
    """What of {item: the items that it uses} is in a circle, or uses what is."""
    while lowest := {item for item, used in uses.items() if not used & uses.keys()}:
        uses = {item: used for item, used in uses.items() if item not in lowest}
    return sorted(uses)


def layers_have_no_circle(tree):
    """The files of a room stand in layers: X.c and X.h include, by way of others too, no header of a file that
    includes theirs."""
    problems = []
    for room in ENTERS:
        uses = {}
        for path in tree.source:
            if tree.room(tree.private_name(path)) == room:
                named = {name for _, name in c_source.includes(tree.code(path)) if tree.room(name) == room}
                uses.setdefault(path.stem, set()).update({Path(name).stem for name in named} - {path.stem})
        problems += [f"c/src/{room}/{stem}.c: in a circle, or above one" for stem in circle(uses)]
    return problems


def cuda_is_called_through_the_table(tree):
    """Only cuda/cuda_rt.c includes CUDA's headers and names what they declare, and cuda/cuda_driver.c, with
    cuda/cuda_driver.h, names those of the driver. None names those of cuFile. Only the files of OPENERS open
    libraries."""
    others = [path for path in tree.source if tree.private_name(path) not in CUDA_TABLES]
    plain = [path for path in tree.source if tree.private_name(path) not in OPENERS]
    tables = [path for path in tree.source if tree.private_name(path) in CUDA_TABLES]
    return tree.find(others, OF_CUDA) + tree.find(tables, OF_CUFILE) + tree.find(plain, OF_LINKER)


def cxx_headers_include_what_is_public(tree):
    """A C++ header includes C++ headers other than umem.h, public C headers and the standard library,
    all by <>, and those of the system after __has_include. One that is no .cuh includes the CUDA toolkit's headers only
    where nvcc compiles it, or after __has_include, or for profilers where the program asks for them. One of the folder
    `with` may include headers of others, and for Python the one that these have in common; no other includes one of
    that folder."""
    problems = []
    private = {name for name in tree.cxx_names if name.startswith(FOR_OTHERS)} | {"umem.hpp"}
    ours = {f"<{name}>" for name in (tree.cxx_names - private) | tree.public_names}
    for path in tree.cxx:
        for line, included, holds in tree.guarded_includes(path):
            allowed = included in ours or re.fullmatch(r"<[a-z_]+>", included)
            if re.fullmatch(f"<{OF_TOOLKIT}>", included):
                asked = any(condition.startswith("__has_include(<cu") for condition in holds)
                allowed = path.suffix in OF_NVCC or BY_NVCC in holds or asked
            allowed = allowed or (included.startswith("<sys/") and f"__has_include({included})" in holds)
            if included == OF_PROFILERS:
                allowed = FOR_PROFILERS in holds
            if tree.is_for_others(path):
                allowed = allowed or re.fullmatch(rf"<(?!umem)[\w/.]+>|<{FOR_OTHERS}python\w*[.]hpp>", included)
            if not allowed:
                problems.append(f"{tree.where(path, line)}: includes {included}")
    return problems


def cuh_is_for_nvcc(tree):
    """A .cuh is included by .cu and .cuh, by others only where nvcc compiles them: defined(__CUDACC__)."""
    return [
        f"{tree.where(path, line)}: includes {included}"
        for folder in ("cxx", "c", "test", "bench", "examples", "doc")
        for path in tree.files(folder, "*")
        if path.suffix in SOURCE_SUFFIXES - OF_NVCC
        for line, included, holds in tree.guarded_includes(path)
        if included.endswith((".cuh>", '.cuh"')) and BY_NVCC not in holds
    ]


def cxx_headers_name_no_cuda(tree):
    """A C++ header that is no .cuh, and not for a library of others, calls no function of CUDA and names none of its
    types."""
    headers = [path for path in tree.cxx if path.suffix not in OF_NVCC and not tree.is_for_others(path)]
    return tree.find(headers, r"\bcu(?:da)?[A-Z]\w*")


def contract_names_no_context(tree):
    """Contract tests know contexts by their rows in test/backends.c only. A umemHost may stand for the
    memory of the test itself."""
    kinds = set()
    for name in tree.context_headers - {"umem/host.h", "umem/ledger.h"}:
        code = tree.code(tree.root / "c/include" / name)
        kinds |= set(re.findall(r"}\s*(umem\w+)\s*;", code))
    if not kinds:
        return ["the headers of the contexts define no type"]
    pattern = rf"\b(?:{'|'.join(sorted(kinds))})(?:_\w+|Device)?\b|[<\"]umem/(?!base)\w+\.h[>\"]"
    return tree.find(tree.contract, pattern)


def the_tree_is_there(tree):
    """Every kind of file was found, so that the other checks have looked at something."""
    kinds = {
        "public headers": tree.public,
        "headers of the base": tree.base,
        "contexts": tree.contexts,
        "sources": tree.source,
        "contract tests": tree.contract,
        "C++ headers": tree.cxx,
    }
    return [f"no {kind}" for kind, found in kinds.items() if not found]


def contributing_shows_the_rooms(tree):
    """The table of rooms in CONTRIBUTING.md says what ENTERS says."""
    path = tree.root / "CONTRIBUTING.md"
    text = path.read_text() if path.exists() else ""
    shown = {}
    for line in text.partition("\n| room |")[2].partition("\n\n")[0].splitlines()[2:]:
        rooms, _, entered = line.strip("|").split("|")
        for room in re.findall("`(.*?)`", rooms):
            shown[room] = set(re.findall("`(.*?)`", entered))
    return [
        f"CONTRIBUTING.md: the room {room} may include {sorted(ENTERS.get(room, set()))}"
        for room in sorted(set(ENTERS) | set(shown))
        if shown.get(room) != ENTERS.get(room)
    ]


RULES = [
    the_tree_is_there,
    public_headers_include_the_base,
    public_headers_are_reachable,
    public_headers_are_plain,
    nothing_decides_by_kind,
    sources_stand_in_rooms,
    sources_include_their_own,
    layers_have_no_circle,
    cuda_is_called_through_the_table,
    cxx_headers_include_what_is_public,
    cuh_is_for_nvcc,
    cxx_headers_name_no_cuda,
    contract_names_no_context,
    contributing_shows_the_rooms,
]


def main():
    root = Path(sys.argv[1]) if len(sys.argv) == 2 else Path(__file__).resolve().parents[2]
    tree, report = Tree(root), Report()
    for rule in RULES:
        report.check(rule.__name__.replace("_", " "), rule(tree))
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
