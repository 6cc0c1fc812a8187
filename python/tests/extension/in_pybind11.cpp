#include "functions.hpp"

#include <pybind11/stl.h>

#include <umem/with/pybind11.hpp>

namespace py = pybind11;
using Policy = py::return_value_policy;

#if defined(Py_GIL_DISABLED)
PYBIND11_MODULE(in_pybind11, m, py::mod_gil_not_used()) {
#else
PYBIND11_MODULE(in_pybind11, m) {
#endif
#include "bindings.inc"
}
