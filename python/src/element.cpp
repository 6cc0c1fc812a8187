/* element.cpp - the types of elements by number. umem/dtypes.py has the rest. */
#include "module.h"

#include <nanobind/stl/string.h>
#include <umem.h>

namespace nb = nanobind;

static std::string element_name(umemElementType type) {
  char name[64];
  umem_element_name(type, name, sizeof name);
  return name;
}

/* 0 for an unknown name, which is no failure here. */
static umemElementType element_by_name(char const *name) {
  umemElementType type = umem_element_by_name(name);
  if (!type) umem_thread_clear();
  return type;
}

void bind_elements(nb::module_ &m) {
  m.def("_element_name", element_name, nb::arg("type"));
  m.def("_element_size", umem_element_size, nb::arg("type"));
  m.def("_element_by_name", element_by_name, nb::arg("name"));
}
