"""Compiles exchange_extension.cpp."""
import importlib.util
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path


def build(folder):
    """The module exchange_extension, compiled in a folder; None where there is no compiler or no Python.h."""
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    python = sysconfig.get_paths()["include"]
    root = Path(__file__).resolve().parents[2]
    if not compiler or not Path(python, "Python.h").exists():
        return None
    made = Path(folder, "exchange_extension.so")
    subprocess.run([compiler, "-O2", "-std=c++17", "-shared", "-fPIC", "-w", f"-I{python}", f"-I{root / 'c' / 'include'}",
                    str(Path(__file__).with_suffix(".cpp")), "-o", str(made)], check=True)
    spec = importlib.util.spec_from_file_location("exchange_extension", made)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
