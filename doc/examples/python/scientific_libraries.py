"""An array in a file, in dask, h5py, zarr, xarray, pyarrow and JAX."""
import dask.array
import h5py
import jax.numpy as jnp
import numpy as np
import pyarrow
import umem
import xarray
import zarr

f = umem.asarray(np.arange(12.0).reshape(3, 4), place=umem.File("a.bin", "w+"))

print("dask:", dask.array.from_array(f, chunks=(1, 4)).sum(axis=0).compute())
with h5py.File("a.h5", "w") as file:
    print("h5py:", file.create_dataset("x", data=f)[2])
z = zarr.create_array("a.zarr", shape=(3, 4), chunks=(3, 4), dtype="f8")
z[:] = f
print("zarr:", z[2])
print("xarray:", xarray.DataArray(f, dims=("row", "column")).mean("row").values)
print("pyarrow:", pyarrow.array(f[2]).to_pylist())
print("JAX:", jnp.asarray(f[2]).tolist())
