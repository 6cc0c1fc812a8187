"""Where the names of the Python package are: in python/umem, or in the files of python/src that give them to the module
umem._core. doc/sources.py links to these lines."""
import ast
import re

# The files of python/src that define the methods and properties of a class.
BOUND = {"Array": ("array*.cpp", "dlpack.cpp"), "Place": ("place*.cpp",), "Blocks": ("blocks.cpp",),
         "Transfer": ("transfer.cpp",)}
BINDING = re.compile(r"\b(?:def(?:_prop_r[ow])?\(|PyMethodDef \w+ = \{)\s*\"(\w+)\"")


class PythonSources:
    """paths: {path below the folder of sources: Path}; places: {name without "umem.": (path, line from 1)}."""

    def __init__(self, root):
        self.paths, self.places = {}, {}
        bases, self.shared = {}, {}
        for path in sorted((root / "python/umem").rglob("*.py")):
            # What is imported into umem has no module before it.
            prefix = f"{path.stem}." if path.stem in ("formats", "ledger", "trace") else ""
            name = self._add(root, path)
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                self._add_node(name, prefix, node)
                if isinstance(node, ast.ClassDef):
                    bases[node.name] = [ast.unparse(base).split(".")[-1] for base in node.bases]
        for kind, patterns in {**BOUND, "": ("*.cpp",)}.items():
            for pattern in patterns:
                for path in sorted((root / "python/src").glob(pattern)):
                    self._add_bindings(self._add(root, path), f"{kind}." if kind else "", path)
        for name, function in self.shared.items():
            self.places.setdefault(name, self.places[function])
        self._inherit(bases)

    def _add(self, root, path):
        name = str(path.relative_to(root))
        self.paths[name] = path
        return name

    def _add_node(self, path, prefix, node):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            self.places.setdefault(prefix + node.name, (path, node.lineno))
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                self._add_node(path, f"{prefix}{node.name}.", inner)
                if isinstance(inner, ast.Assign) and isinstance(inner.targets[0], ast.Tuple):
                    self._add_shared(f"{prefix}{node.name}.", inner)

    def _add_shared(self, prefix, node):
        """Methods that are functions of another module: sum, mean = reductions.sum, reductions.mean."""
        for name, value in zip(node.targets[0].elts, node.value.elts):
            if isinstance(value, ast.Attribute):
                self.shared[prefix + name.id] = value.attr

    def _add_bindings(self, name, prefix, path):
        text = path.read_text(encoding="utf-8")
        for found in BINDING.finditer(text):
            self.places.setdefault(prefix + found[1], (name, text.count("\n", 0, found.start(1)) + 1))

    def _inherit(self, bases):
        """The reference shows members of a base class that has no entry of its own, as those of the class."""
        for kind, names in bases.items():
            for base in names:
                for member, place in list(self.places.items()):
                    if member.startswith(base + "."):
                        self.places.setdefault(kind + member[len(base):], place)
