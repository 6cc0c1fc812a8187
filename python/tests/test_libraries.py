"""Arrays of RAM and of a file in the libraries of scientists, each of which is skipped where it is not installed."""
import subprocess
import sys

import pytest

import umem
from conftest import PROGRAM_OF_TYPES

numpy = pytest.importorskip("numpy")
X = numpy.arange(12.0).reshape(3, 4)


@pytest.fixture(params=["ram", "file", "mapped"])
def array(request, tmp_path):
    place = {"ram": umem.host, "file": umem.File, "mapped": lambda: umem.MMap(tmp_path / "a.bin", "w+")}[request.param]()
    return umem.asarray(X, place=place, copy=True)


def test_dask_reads_chunks(array, monkeypatch):
    dask = pytest.importorskip("dask.array")
    read = []
    whole = umem.exchange.array_protocol
    monkeypatch.setattr(umem.exchange, "array_protocol", lambda a, *rest: read.append(a.size) or whole(a, *rest))
    lazy = dask.from_array(array, chunks=(1, 2))
    assert not read
    assert lazy.sum().compute(scheduler="synchronous") == X.sum()
    assert (dask.from_array(array).mean(axis=0) + 1).compute(scheduler="synchronous").tolist() == (X.mean(axis=0) + 1).tolist()


def test_h5py_writes_it(array, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        assert file.create_dataset("x", data=array)[...].tolist() == X.tolist()
        file.create_dataset("y", shape=(3, 4), dtype="f4")[1:] = array[1:]
        assert file["y"][2].tolist() == X[2].tolist()
        array[...] = file["x"][...] + 1
    assert array.tolist() == (X + 1).tolist()


@pytest.mark.parametrize("chunks", [(3, 4), (2, 2), (1, 4)])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i2"])
def test_zarr_writes_it_whatever_its_chunks(array, chunks, dtype, tmp_path):
    zarr = pytest.importorskip("zarr")
    made = zarr.create_array(tmp_path / "a", shape=(3, 4), chunks=chunks, dtype=dtype)
    made[:] = array
    assert made[:].tolist() == X.tolist()
    made[1:, :2] = array[:2, 2:]
    assert made[1:, :2].tolist() == X[:2, 2:].tolist()


def test_xarray_and_pandas_take_it(array):
    xarray, pandas = pytest.importorskip("xarray"), pytest.importorskip("pandas")
    made = xarray.DataArray(array, dims=("x", "y"))
    assert made.sum("x").values.tolist() == X.sum(axis=0).tolist()
    assert pandas.DataFrame(array)[1].tolist() == X[:, 1].tolist() and pandas.Series(array[0]).mean() == 1.5


def test_pyarrow_takes_one_dimension(array):
    pyarrow = pytest.importorskip("pyarrow")
    made = pyarrow.array(array[1])
    assert made.to_pylist() == X[1].tolist() and pyarrow.array(array[1], pyarrow.float32()).type == "float"
    if array._is_host:
        assert made.buffers()[1].address == array[1].address
    with pytest.raises(pyarrow.ArrowInvalid, match="1-dimensional"):
        pyarrow.array(array)


def test_jax_takes_it(array):
    jnp = pytest.importorskip("jax.numpy")
    assert jnp.asarray(array).tolist() == X.tolist() and float(jnp.sum(jnp.asarray(array[1]))) == X[1].sum()
    assert jnp.asarray(array, dtype="int32").dtype == "int32"


def test_matplotlib_draws_it(array):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    assert numpy.asarray(pyplot.plot(array[1])[0].get_ydata()).tolist() == X[1].tolist()
    assert pyplot.imshow(array).get_array().tolist() == X.tolist()
    pyplot.close("all")


def test_pytorch_takes_what_the_cpu_reads(array):
    torch = pytest.importorskip("torch")
    if not array._is_host:
        array = array.to(umem.host())
    assert torch.as_tensor(array).tolist() == X.tolist() and torch.from_dlpack(array).data_ptr() == array.address


def test_pyright_accepts_a_program(tmp_path):
    pytest.importorskip("basedpyright")
    (tmp_path / "program.py").write_text(
        "import numpy as np\n"
        "import umem\n"
        "a: umem.Array = umem.zeros((3, 4), 'float32', umem.Pool(umem.Host(), max='1G'))\n"
        "shared, seen = np.from_dlpack(a), np.asarray(a)\n"
        "with a.host('r') as x, a.device(None, 'w') as y:\n"
        "    total: float = float(x.sum()) + y.ndim\n"
        "moved: int = umem.copy(a, a)['bytes']\n"
        "a.host('x')\n"
        "umem.File('x', 'z')\n")
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    out = subprocess.run([sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "-p", "."], cwd=tmp_path,
                         capture_output=True, text=True).stdout
    assert [line.split()[0].split(":")[-2] for line in out.splitlines() if "error:" in line] == ["8", "9"], out
    (tmp_path / "program.py").write_text(PROGRAM_OF_TYPES)
    out = subprocess.run([sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "-p", "."], cwd=tmp_path,
                         capture_output=True, text=True).stdout
    last = len(PROGRAM_OF_TYPES.splitlines())
    assert [line.split()[0].split(":")[-2] for line in out.splitlines() if "error:" in line] == [str(last)], out
