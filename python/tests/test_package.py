"""The package as it is installed."""
import inspect
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import umem
from conftest import PROGRAM_OF_TYPES
from umem import _core

FOLDER = Path(umem.__file__).parent


def test_the_version_is_that_of_the_library():
    from importlib.metadata import version

    assert version("umem") == umem.__version__ == _core._version()
    assert re.fullmatch(r"\d+\.\d+\.\d+", umem.__version__)


def test_pip_installs_what_the_first_program_needs():
    from importlib.metadata import requires

    needed = {re.match(r"[\w-]+", line)[0] for line in requires("umem") or []}
    assert "numpy" in needed
    assert needed <= {"numpy", "nanobind-backend"}, "the page about the package names all that it needs"


def test_the_module_has_no_code_for_a_fixed_address():
    """Some compilers make such code unless they are asked for another; no shared library can have it."""
    rules = Path(os.environ.get("UMEM_TEST_LIBRARY", "")).parent.parent / "build.ninja"
    if not rules.is_file():
        pytest.skip("UMEM_TEST_LIBRARY names no library of a build by ninja")
    text = rules.read_text()
    objects = re.search(r"^build python/umem/_core\S*: \S+ (.*?) \|", text, re.MULTILINE).group(1).split()
    assert len(objects) > 1
    for name in objects:
        about = text.split(f"\nbuild {name}:")[1].split("\nbuild ")[0]
        assert "FLAGS" not in about or "-fPIC" in about, name


def test_import_loads_no_array_library(run_python):
    out = run_python(
        "import sys, umem\n"
        "print([m for m in ('numpy', 'torch', 'cupy', 'jax', 'numba', 'pyarrow') if m in sys.modules])\n"
        "a = umem.full((2, 3), 7, 'float32'); a[0] = [1, 2, 3]; a.tolist(); a.astype('int8')\n"
        "print('numpy' in sys.modules)")
    assert out.split("\n")[:2] == ["[]", "False"]


def test_import_is_faster_than_that_of_numpy(run_python):
    measure = ("import time; begin = time.perf_counter(); import {}; print(time.perf_counter() - begin)")
    seconds = {name: min(float(run_python(measure.format(name))) for _ in range(3)) for name in ("umem", "numpy")}
    assert seconds["umem"] < seconds["numpy"], seconds


def test_it_has_types():
    assert (FOLDER / "py.typed").exists()
    stub = (FOLDER / "_core.pyi").read_text()
    for name in ("class Array", "class Place", "def empty", "def from_dlpack", "def _borrow"):
        assert name in stub


def test_a_type_checker_accepts_the_package_and_programs(tmp_path):
    mypy = pytest.importorskip("mypy", reason="mypy is not installed")
    program = tmp_path / "program.py"
    program.write_text(
        "import umem\n"
        "with umem.Pool(umem.Host(), max='1G') as pool:\n"
        "    a: umem.Array = umem.zeros((3, 4), 'float32', pool)\n"
        "    b: umem.Array = a[1:, ::2].T.copy()\n"
        "    used: int = umem.Limit(pool, 100).used\n"
        "    n: tuple[int, ...] = a.shape\n"
        "    for block in umem.blocks(a, umem.Host(), rows=2):\n"
        "        first: int = block.first\n"
        "    name: str = a.dtype.name\n"
        "import numpy as np\n"
        "shared, seen = np.from_dlpack(a), np.asarray(a)\n"
        "with a.host('r') as x, a.device(None, 'w') as y:\n"
        "    total: float = float(x.sum()) + y.ndim\n"
        "mapped: umem.Array = umem.memmap('x', 'f4', 'r', 8, (3, 4))\n"
        "with umem.using('pool+host:') as place:\n"
        "    kind: str = umem.zeros(3, 'f4', 'pool+cuda:0').place.kind + place.kind\n"
        "    umem.Pool(3)\n"
        "a.host('x')\n"
        "umem.load('x', mode='w')\n"
        "umem.memmap('x', 'f4', 'q')\n"
        "umem.File('x', 'z')\n"
        "umem.zeros(3, 'f4', 5)\n")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", "-p", "umem"],
                          capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", program],
                          capture_output=True, text=True, cwd=tmp_path)
    wrong = [line for line in program.read_text().splitlines() if re.search(r"\(3\)$|'x'\)|'w'\)|'q'\)|'z'\)| 5\)", line)]
    assert done.stdout.count("error:") == 6 and len(wrong) >= 6, done.stdout
    assert mypy


def test_a_type_checker_knows_the_elements(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM_OF_TYPES)
    exec(PROGRAM_OF_TYPES, {})  # it runs, too
    out = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", program],
                         capture_output=True, text=True, cwd=tmp_path).stdout
    last = len(PROGRAM_OF_TYPES.splitlines())
    assert re.findall(r"program.py:(\d+): error", out) == [str(last)], out


def test_the_module_exports_its_init_function_and_those_for_pytorch_alone():
    nm = shutil.which("nm") or pytest.skip("there is no nm")
    out = subprocess.run([nm, "-D", "--defined-only", _core.__file__], capture_output=True, text=True, check=True)
    names = {line.split()[-1] for line in out.stdout.splitlines()}
    slots = {f"umem_torch_{verb}_{number}" for verb in ("alloc", "free") for number in range(16)}
    assert names == {"PyInit__core"} | slots


def test_the_module_uses_the_stable_abi():
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("free-threaded Python has no stable ABI before 3.15")
    assert ".abi3." in Path(_core.__file__).name


def public_callables():
    for name in umem.__all__:
        thing = getattr(umem, name)
        if callable(thing):
            yield name, thing
        for member in sorted(vars(thing)) if isinstance(thing, type) else ():
            if not member.startswith("_") and callable(getattr(thing, member)):
                yield f"{name}.{member}", getattr(thing, member)


def test_every_public_callable_has_a_signature():
    for name, thing in public_callables():
        parameters = inspect.signature(thing).parameters
        assert not {"args", "named", "kwargs"} & set(parameters), (name, parameters)
    assert list(inspect.signature(umem.zeros).parameters) == ["shape", "dtype", "place", "ghosts"]
    assert list(inspect.signature(umem.Array.fill).parameters) == ["self", "value"]
    assert str(inspect.signature(umem.Place.trim).parameters["keep"]).endswith("= 0")


def test_every_public_name_has_a_docstring():
    for name in umem.__all__:
        thing = getattr(umem, name)
        assert thing.__doc__, name
        for member in vars(thing) if isinstance(thing, type) else ():
            if not member.startswith("_") and not inspect.isdatadescriptor(getattr(thing, member)):
                assert getattr(thing, member).__doc__, f"{name}.{member}"


def test_a_second_copy_of_the_module_is_refused(run_python):
    """It ended the process."""
    out = run_python("import sys, umem\n"
                     "array = umem.ones(3)\n"
                     "for name in [name for name in sys.modules if name.split('.')[0] == 'umem']:\n"
                     "    del sys.modules[name]\n"
                     "try:\n"
                     "    import umem\n"
                     "except ImportError as error:\n"
                     "    print(error, array.tolist())\n")
    assert "only once in a process" in out and "[1.0, 1.0, 1.0]" in out


def test_subinterpreters_are_refused(run_python):
    program = (
        "import sys, umem\n"
        "code = f'import sys; sys.path[:] = {sys.path!r}; import umem'\n"
        "if sys.version_info >= (3, 13):\n"
        "    import _interpreters as interpreters\n"
        "    print(interpreters.exec(interpreters.create('legacy'), code).formatted)\n"
        "else:\n"
        "    import _xxsubinterpreters as interpreters\n"
        "    try:\n"
        "        interpreters.run_string(interpreters.create(), code)\n"
        "    except interpreters.RunFailedError as error:\n"
        "        print(error)\n"
        "print(umem.zeros(3).tolist())\n")
    out = run_python(program)
    assert "main interpreter" in out and "[0.0, 0.0, 0.0]" in out
