/* extension.cpp - functions that do nothing, for extension_calls.py: what a call costs whose
 * argument is an array. */
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <umem/with/nanobind.hpp>

#include <cstdint>

namespace nb = nanobind;

NB_MODULE(extension, m) {
  m.def("pointer", [](std::uintptr_t) {});
  m.def("pointers", [](std::uintptr_t, std::uintptr_t, std::uintptr_t) {});
  m.def("view", [](umem::View<double const, 1>) {});
  m.def("views",
        [](umem::View<double const, 1>, umem::View<double const, 1>, umem::View<double, 1>) {});
  m.def("view_2d", [](umem::View<double, 2, umem::RowMajor>) {});
  m.def("ndarray", [](nb::ndarray<double const, nb::ndim<1>, nb::device::cpu>) {});
  m.def("ndarrays", [](nb::ndarray<double const, nb::ndim<1>, nb::device::cpu>,
                       nb::ndarray<double const, nb::ndim<1>, nb::device::cpu>,
                       nb::ndarray<double, nb::ndim<1>, nb::device::cpu>) {});
  m.def("array", [](umem::Array<double, 1>) {});
  m.def("same", [](umem::Array<double, 1> array) { return array; });
  m.def("ndarray_same",
        [](nb::ndarray<nb::numpy, double, nb::ndim<1>, nb::device::cpu> array) { return array; });
}
