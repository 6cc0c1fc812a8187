/* mpi.cpp - the places of ranks, in a package that was built with UMEM_MPI=ON. Communicators come by the numbers that
 * Fortran has for them, which do not depend on the MPI. */
#include "call.h"
#include "module.h"

#if defined(UMEM_WITH_MPI)

#include <umem/mpi.h>

static constexpr bool has_mpi = true;
static void prepare() { umemMpi_register(); }
static void stop_window(int comm) { umemMpi_stop(MPI_Comm_f2c(comm)); }

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
