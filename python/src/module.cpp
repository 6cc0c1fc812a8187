/* module.cpp - the module umem._core, over which the Python files of the package stand. */
#include "module.h"

#include <atomic>
#include <umem.h>

namespace nb = nanobind;

NB_MODULE(umem_core, m) {
  m.doc() = "What the package umem needs of the C library. Use the names of umem.";
  m.def("_version", umem_version);
  bind_call(m);
  bind_callbacks(m);
  bind_places(m);
  bind_layers(m);
  bind_trace(m);
  bind_elements(m);
  bind_arrays(m);
  bind_handles(m);
  bind_arrow(m);
  bind_npy(m);
  bind_transfers(m);
  bind_blocks(m);
  bind_others(m);
  bind_archives(m);
  bind_mpi(m);
  bind_extension(m);
  nb::set_leak_warnings(false); /* a program may end while arrays live */
}

/* nanobind shares its state between interpreters, and so do the classes here. For Python before
 * 3.13; umem/_interpreter.py asks later ones. It ends the process when classes are made again. */
extern "C" NB_EXPORT PyObject *PyInit__core(void) {
  static std::atomic<bool> is_loaded{false};
  bool const is_main = PyInterpreterState_GetID(PyInterpreterState_Get()) == 0;
  if (is_main && !is_loaded.exchange(true)) return PyInit_umem_core();
  PyErr_SetString(PyExc_ImportError, is_main ? "umem can be loaded only once in a process"
                                             : "umem works only in the main interpreter of a "
                                               "process, not in subinterpreters");
  return nullptr;
}
