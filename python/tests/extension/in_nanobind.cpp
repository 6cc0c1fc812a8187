#include "functions.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <umem/with/nanobind.hpp>

namespace py = nanobind;
using Policy = py::rv_policy;

NB_MODULE(in_nanobind, m) {
#include "bindings.inc"
}
