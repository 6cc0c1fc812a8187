/* mpi.cpp - the places of ranks, in a package that was built with UMEM_MPI=ON. Communicators come
 * by the numbers that mpi4py has for Fortran, which are those of umemMpi_number. */
#include "call.h"
#include "module.h"

#if defined(UMEM_WITH_MPI)

#include <umem/mpi.h>

static constexpr bool has_mpi = true;
static void prepare() { umemMpi_register(); }
static void stop_window(int comm) {
  umemMpi_stop(umemMpi_communicator(static_cast<uint32_t>(comm)));
}

#else

static constexpr bool has_mpi = false;
static void prepare() {}
static void stop_window(int) {
  umemVirtual_fail(nullptr, umemNotSupportedError, "this package was built without MPI");
}

#endif

void bind_mpi(nanobind::module_ &m) {
  prepare();
  m.def(
      "_mpi_stop", [](int comm) { unlocked([&] { stop_window(comm); }); }, nanobind::arg("comm"),
      "Ends the window of a communicator.");
  m.attr("_has_mpi") = has_mpi;
}
