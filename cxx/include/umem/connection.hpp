/* umem/connection.hpp - a second address for an array, while the object lives.
 *
 *     umem::Connection host(gpu, adr, 800, umem::Host());
 *     fill(static_cast<double *>(host.data()));
 *     host.sync_back();                                    // updates the array on the GPU
 *
 * If both contexts share the memory, there is one address and syncs move nothing: see
 * umem/connect.h. */
#ifndef UMEM_CONNECTION_HPP
#define UMEM_CONNECTION_HPP

#include <umem/buffer.hpp>

namespace umem {

/* Move-only. Keeps both contexts alive, but not the array. A moved-from connection is empty, and
 * its syncs do nothing. */
class UMEM_NODISCARD Connection {
public:
  /* Connects the nbytes at adr in context with an address in mirror that holds the same bytes.
   * The address is a multiple of alignment: a power of two, or 0 for any. */
  [[nodiscard]] Connection(Context context, address adr, std::size_t nbytes, Context mirror,
                           std::size_t alignment = 0)
      : context_(std::move(context)), mirror_(std::move(mirror)), context_adr_(adr), size_(nbytes),
        alignment_(alignment) {
    adr_ = umem_connect(context_.c_context(), adr, nbytes, mirror_.c_context(), alignment);
    if (adr_ == mirror_.null()) detail::raise_recorded(umem_thread_status());
  }

  Connection(Connection &&other) noexcept = default;

  Connection &operator=(Connection &&other) noexcept {
    Connection moved = std::move(other);
    moved.swap(*this);
    return *this;
  }

  /* Moves no bytes: call sync_back first. Records and reports failures as ~Buffer does. In a child
   * of fork, the block of a parent's connection in memory that both use (umemShared) stays. */
  ~Connection() {
    if (!mirror_) return;
    if (mirror_.can(umemShared) && generation_ != umem_generation())
      umem_end_block(mirror_.c_context(), adr_, true, false, generation_);
    else
      umem_disconnect(context_.c_context(), context_adr_, mirror_.c_context(), adr_, alignment_);
  }

  void swap(Connection &other) noexcept {
    std::swap(context_, other.context_);
    std::swap(mirror_, other.mirror_);
    std::swap(context_adr_, other.context_adr_);
    std::swap(adr_, other.adr_);
    std::swap(size_, other.size_);
    std::swap(alignment_, other.alignment_);
    std::swap(generation_, other.generation_);
  }
  friend void swap(Connection &one, Connection &other) noexcept { one.swap(other); }

  /* The address in mirror(). */
  address adr() const noexcept { return adr_; }

  /* In bytes. */
  std::size_t size() const noexcept { return size_; }

  Context const &mirror() const noexcept { return mirror_; }

  /* adr() for the CPU. Throws umem::not_supported_error if the CPU may not read and write there. */
  void *data() const {
    return detail::pointer_to(mirror_, adr_, umemCpuReadable | umemCpuWritable);
  }

  /* Copies all bytes to the mirror, or back to the array. Ordered as umem::copy is. */
  void sync() const {
    if (mirror_)
      detail::check_status(
          umem_sync_to(context_.c_context(), context_adr_, mirror_.c_context(), adr_, size_));
  }
  void sync_back() const {
    if (mirror_)
      detail::check_status(
          umem_sync_from(context_.c_context(), context_adr_, mirror_.c_context(), adr_, size_));
  }

private:
  Context context_;
  Context mirror_;
  address context_adr_ = 0;
  address adr_ = 0;
  std::size_t size_ = 0;
  std::size_t alignment_ = 0;
  unsigned generation_ = umem_generation();
};

} // namespace umem

#endif
