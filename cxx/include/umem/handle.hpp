/* umem/handle.hpp - passes memory to other processes of one machine, without a copy.
 *
 *     umem::Shm shm(1 << 20);
 *     umem::Buffer block(shm, 800);
 *     umem::send(socket, shm, block.adr(), block.size());       // one process
 *
 *     umem::Attachment block = umem::receive(socket);           // another one
 *     fill(static_cast<double *>(block.data()));
 *
 * The block must live until all processes have ended their attachments: see umem/handle.h. */
#ifndef UMEM_HANDLE_HPP
#define UMEM_HANDLE_HPP

#include <umem/buffer.hpp>

namespace umem {

/* Describes nbytes at adr for other processes: umem_share. The result is plain data. */
inline umemHandle share(Context const &context, address adr, std::size_t nbytes) {
  return detail::filled(umemHandle(), umem_share, context.c_context(), adr, nbytes);
}

/* Shares nbytes at adr, and sends the handle with its descriptor through a Unix socket:
 * umem_send. */
inline void send(int socket, Context const &context, address adr, std::size_t nbytes) {
  detail::check_status(umem_send(socket, context.c_context(), adr, nbytes));
}

/* Bytes of another process, while the object lives. Move-only. Keeps its context alive. */
class UMEM_NODISCARD Attachment {
public:
  Attachment() = default;

  /* Attaches the bytes of handle to context: umem_attach. */
  [[nodiscard]] explicit Attachment(umemHandle const &handle, Context context = detail::pointers())
      : Attachment(context, umem_attach(&handle, context.c_context()), handle.length) {}

  /* Attaches a handle with the descriptor that belongs to the handle, which is taken over, also if
   * this throws; -1 for none. trust: whose shared memory it may be: umem_attach_trusting. */
  [[nodiscard]] Attachment(umemHandle const &handle, int fd, Context context = detail::pointers(),
                           umemTrust trust = umemTrustDefault)

      : Attachment(context, umem_attach_trusting(&handle, fd, context.c_context(), trust),
                   handle.length) {}

  Attachment(Attachment &&other) noexcept { other.swap(*this); }

  Attachment &operator=(Attachment &&other) noexcept {
    Attachment moved = std::move(other);
    moved.swap(*this);
    return *this;
  }

  /* Detaches the bytes. */
  ~Attachment() {
    if (context_) umem_detach(context_.c_context(), adr_);
  }

  void swap(Attachment &other) noexcept {
    std::swap(context_, other.context_);
    std::swap(adr_, other.adr_);
    std::swap(size_, other.size_);
  }
  friend void swap(Attachment &one, Attachment &other) noexcept { one.swap(other); }

  /* The address of the first byte in context(). */
  address adr() const noexcept { return adr_; }

  /* In bytes. */
  std::size_t size() const noexcept { return size_; }

  Context const &context() const noexcept { return context_; }

  /* adr() for the CPU. Throws umem::not_supported_error if the CPU cannot read there. */
  void *data() const { return detail::pointer_to(context_, adr_, umemCpuReadable); }

private:
  friend Attachment receive(int socket, Context context, umemTrust trust);

  /* What is not attached is not detached. */
  Attachment(Context const &context, address adr, std::size_t size)
      : context_(context), adr_(adr), size_(size) {
    if (adr == context.null()) detail::raise_recorded(umem_thread_status());
  }

  Context context_;
  address adr_ = 0;
  std::size_t size_ = 0;
};

/* Receives what send has sent, and attaches it to context, if it is shared memory only of the users
 * that trust names: umem_receive_trusting. */
inline Attachment receive(int socket, Context context = detail::pointers(),
                          umemTrust trust = umemTrustDefault) {
  umemHandle handle{};
  address const adr = umem_receive_trusting(socket, context.c_context(), &handle, trust);
  return Attachment(context, adr, handle.length);
}

} // namespace umem

#endif
