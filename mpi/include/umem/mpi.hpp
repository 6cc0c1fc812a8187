/* umem/mpi.hpp - memory of the ranks of an MPI program: umem/mpi.h for C++.
 *
 *     umem::mpi::Window window(MPI_COMM_WORLD, 1 << 30);      // all ranks, once
 *     umem::mpi::Context three(MPI_COMM_WORLD, 3);            // any rank, at any time
 *     umem::Buffer block(three, 800);
 *     umem::Array<double, 2> u({100, 100}, three);            // its elements are at rank 3
 *
 * umem/mpi_blocks.hpp has arrays that are divided into blocks over the ranks. */
#ifndef UMEM_MPI_HPP
#define UMEM_MPI_HPP

#include <umem/context.hpp>
#include <umem/mpi.h>

#include <cstddef>
#include <memory>
#include <utility>

namespace umem {
namespace mpi {

namespace detail {

/* Throws umem::io_error if a function of MPI has failed. */
inline void check_mpi(int error, char const *what) {
  if (error == MPI_SUCCESS) return;
  char words[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  MPI_Error_string(error, words, &length);
  umem::detail::raise_text(umemIOError, "%s: %s", what, words);
}

} // namespace detail

/* The window of a communicator: umemMpi_start, and umemMpi_stop at its end. Both are collective:
 * all ranks construct and destruct it. Move-only. */
class Window {
public:
  /* capacity: bytes of this rank. */
  Window(MPI_Comm comm, std::size_t capacity) : comm_(comm) {
    umemMpiOptions options = UMEM_MPI_OPTIONS_INIT;
    options.capacity = capacity;
    umem::detail::check_status(umemMpi_start(comm, &options));
  }

  Window(MPI_Comm comm, umemMpiOptions const &options) : comm_(comm) {
    umem::detail::check_status(umemMpi_start(comm, &options));
  }

  Window(Window &&other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  Window &operator=(Window &&other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }

  /* Does nothing if MPI or umemMpi_stop has ended the window. */
  ~Window() {
    int ended = 0;
    if (comm_ == MPI_COMM_NULL || MPI_Finalized(&ended) != MPI_SUCCESS || ended) return;
    umemMpi_stop(comm_);
  }

  MPI_Comm comm() const noexcept { return comm_; }

private:
  MPI_Comm comm_;
};

/* The part of one rank in the window of a communicator: umemMpi. Addresses are offsets. */
class Context : public umem::Context {
public:
  Context(MPI_Comm comm, int rank)
      : umem::Context(make<umemMpi>([&](umemMpi *ctx) { return umemMpi_ctor(ctx, comm, rank); })) {}

  /* A handle of the outermost context of MPI in the stack of context; umem::type_error where there
   * is none. */
  static Context of(umem::Context const &context) { return Context(layer_of(context, "mpi")); }

  int rank() const noexcept { return umemMpi_rank(c_mpi(), nullptr); }

  /* How many ranks the communicator has. */
  int ranks() const noexcept {
    int ranks = 0;
    umemMpi_rank(c_mpi(), &ranks);
    return ranks;
  }

  /* A pointer to the byte at adr if the CPU can address it: umemMpi_pointer. Throws
   * umem::not_supported_error otherwise. */
  void *pointer(address adr) const {
    void *result = umemMpi_pointer(c_mpi(), adr);
    if (!result) umem::detail::raise_recorded(umem_thread_status());
    return result;
  }

  /* Orders accesses through pointers with those of other ranks: umemMpi_sync. */
  void sync() const { umem::detail::check_status(umemMpi_sync(c_mpi())); }

private:
  explicit Context(std::shared_ptr<umemVirtual> context) : umem::Context(std::move(context)) {}

  umemMpi *c_mpi() const noexcept { return reinterpret_cast<umemMpi *>(c_context()); }
};

} // namespace mpi
} // namespace umem

#endif
