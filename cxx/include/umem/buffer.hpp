/* umem/buffer.hpp - a block of bytes on any context, which its owner frees.
 *
 *     umem::Buffer buffer(umem::Cuda(), 800);
 *     buffer.copy_from(values, 800);
 *
 * A buffer keeps its context alive. A buffer that is default-constructed, moved from or released
 * is empty: it has no block, no context and size 0.
 *
 * On ordered contexts, copies with pointers are complete on return; all other operations are
 * queued. Keep both buffers of a queued copy until context().synchronize().
 *
 * Threads: one thread at a time may use a buffer, as with any standard container. */
#ifndef UMEM_BUFFER_HPP
#define UMEM_BUFFER_HPP

#include <umem/context.hpp>

namespace umem {
namespace detail {

/* Throws unless [offset, offset + count) is within [0, size). */
inline void check_range(std::size_t offset, std::size_t count, std::size_t size, char const *what) {
  if (offset > size || count > size - offset)
    raise_text(umemIndexError, "%zu %s at %zu exceed the size of %zu", count, what, offset, size);
}

/* Throws if alignment is no power of two, before anything is allocated: the context checks only
 * alignments beyond its natural one. 0 is the default. */
inline void check_alignment(std::size_t alignment) {
  if (alignment & (alignment - 1))
    raise_text(umemValueError, "the alignment of %zu is no power of two", alignment);
}

/* The bytes of n elements of Type. */
template <class Type> std::size_t bytes_of(std::size_t n) {
  if (n > SIZE_MAX / sizeof(Type))
    raise_text(umemMemoryError, "%zu elements of %zu bytes exceed any memory", n, sizeof(Type));
  return n * sizeof(Type);
}

/* The alignment to request from a context: 0 if all its blocks have it. */
inline std::size_t beyond_natural(Context const &context, std::size_t alignment) noexcept {
  return alignment > context.alignment() ? alignment : 0;
}

/* adr as a pointer. Throws unless the context has all of capabilities, which say how the CPU may
 * use it. */
inline void *pointer_to(Context const &context, address adr, unsigned capabilities) {
  if (!context.can(capabilities))
    raise_text(umemNotSupportedError, "the CPU has no such access to memory of %s", context.name());
  return reinterpret_cast<void *>(adr);
}

/* Frees a block whose owner ends, unless it stays: see umem_end_block. */
inline void end_block(Context const &context, address adr, std::size_t alignment, bool keeps,
                      unsigned generation) noexcept {
  if (context.can(umemShared))
    umem_end_block(context.c_context(), adr, alignment != 0, keeps, generation);
  else if (alignment)
    umem_aligned_free(context.c_context(), adr);
  else
    umem_free(context.c_context(), adr);
}

/* adr as a pointer for the device of the context, a GPU or the CPU; NULL for an empty handle. */
inline void *device_pointer(Context const &context, address adr) {
  if (context.can(umemOffsets))
    raise_text(umemNotSupportedError, "addresses of %s are offsets, not pointers", context.name());
  return context ? reinterpret_cast<void *>(adr) : nullptr;
}

} // namespace detail

/* Move-only. */
class Buffer {
public:
  /* An empty buffer. */
  Buffer() = default;

  /* nbytes of uninitialised memory at a multiple of alignment: a power of two, or 0 for the
   * natural one of the context. Throws umem::memory_error if there is not enough memory, and
   * umem::value_error for an empty handle. */
  explicit Buffer(Context const &context, std::size_t nbytes, std::size_t alignment = 0)
      : Buffer(context, context.allocate(nbytes, alignment), nbytes, alignment) {}

  /* A buffer with every byte zero. */
  static Buffer zeroed(Context context, std::size_t nbytes, std::size_t alignment = 0) {
    address adr = context.allocate_zeroed(nbytes, alignment);
    return Buffer(std::move(context), adr, nbytes, alignment);
  }

  /* Takes over a block of nbytes that was allocated on context, such as one from release().
   * alignment: as given to allocate. */
  static Buffer adopt(Context context, address adr, std::size_t nbytes, std::size_t alignment = 0) {
    return Buffer(std::move(context), adr, nbytes, alignment);
  }

  Buffer(Buffer &&other) noexcept
      : context_(std::move(other.context_)), adr_(std::exchange(other.adr_, 0)),
        size_(std::exchange(other.size_, 0)), alignment_(std::exchange(other.alignment_, 0)),
        generation_(other.generation_) {}

  Buffer &operator=(Buffer &&other) noexcept {
    Buffer moved = std::move(other);
    moved.swap(*this);
    return *this;
  }

  /* Frees the block. Records a failure on the context and for the thread, and reports it to the
   * hook of umem_set_failure_hook. A block of a named file stays allocated, so that what was
   * written stays (umemReuse); and in a child of fork, a block of its parent in memory that both
   * use (umemShared). */
  ~Buffer() {
    if (context_) detail::end_block(context_, adr_, alignment_, true, generation_);
  }

  /* Frees the block now, also in a named file. The buffer is empty afterwards. Failures are as
   * those of the destructor. */
  void deallocate() noexcept {
    if (context_) detail::end_block(context_, adr_, alignment_, false, generation_);
    static_cast<void>(release());
  }

  void swap(Buffer &other) noexcept {
    std::swap(context_, other.context_);
    std::swap(adr_, other.adr_);
    std::swap(size_, other.size_);
    std::swap(alignment_, other.alignment_);
    std::swap(generation_, other.generation_);
  }
  friend void swap(Buffer &one, Buffer &other) noexcept { one.swap(other); }

  /* Whether there is a block. */
  explicit operator bool() const noexcept { return static_cast<bool>(context_); }

  /* The address of the block; it can be 0, an offset in a file. 0 if the buffer is empty. */
  address adr() const noexcept { return adr_; }

  /* In bytes. */
  std::size_t size() const noexcept { return size_; }

  /* As requested; 0 is the natural one of the context. */
  std::size_t alignment() const noexcept { return alignment_; }

  /* The empty handle if the buffer is empty. */
  Context const &context() const noexcept { return context_; }

  /* The block for the CPU; NULL if the buffer is empty. Throws umem::not_supported_error if
   * addresses are no pointers or the CPU may not write there (for a file mapped with mode "r"
   * only the second form works). Synchronise an ordered context before you read. */
  void *data() {
    return context_ ? detail::pointer_to(context_, adr_, umemCpuReadable | umemCpuWritable)
                    : nullptr;
  }
  void const *data() const {
    return context_ ? detail::pointer_to(context_, adr_, umemCpuReadable) : nullptr;
  }

  /* Gives the block to the caller, who frees it by deallocate(address, alignment) of the
   * context: keep a handle of it. The buffer is empty afterwards. */
  [[nodiscard]] address release() noexcept {
    context_ = Context();
    size_ = 0;
    alignment_ = 0;
    return std::exchange(adr_, 0);
  }

  /* Makes the buffer nbytes long. It keeps the bytes that fit; new bytes are uninitialised. The
   * block may move. After a failure everything is as before. */
  void resize(std::size_t nbytes) {
    if (alignment_) {
      Buffer moved(context_, nbytes, alignment_);
      copy(context_, adr_, context_, moved.adr_, nbytes < size_ ? nbytes : size_);
      swap(moved);
      moved.deallocate();
    } else {
      adr_ = context_.reallocate(adr_, size_, nbytes);
      size_ = nbytes;
      generation_ = umem_generation();
    }
  }

  /* Sets every byte to (unsigned char)c. */
  void set(int c) {
    if (size_) context_.set(adr_, c, size_);
  }

  /* Copies nbytes, starting at offset, between the buffer and memory of the program. Throws
   * umem::index_error, having copied nothing, if they exceed the buffer. */
  void copy_to(void *dst, std::size_t nbytes, std::size_t offset = 0) const {
    detail::check_range(offset, nbytes, size_, "bytes");
    if (nbytes) copy(context_, adr_ + offset, dst, nbytes);
  }
  void copy_from(void const *src, std::size_t nbytes, std::size_t offset = 0) {
    detail::check_range(offset, nbytes, size_, "bytes");
    if (nbytes) copy(src, context_, adr_ + offset, nbytes);
  }

  /* Copies nbytes, starting at offset, to dst, starting at dst_offset. Throws the same. */
  void copy_to(Buffer &dst, std::size_t nbytes, std::size_t offset = 0,
               std::size_t dst_offset = 0) const {
    detail::check_range(offset, nbytes, size_, "bytes");
    detail::check_range(dst_offset, nbytes, dst.size_, "bytes");
    if (nbytes) copy(context_, adr_ + offset, dst.context_, dst.adr_ + dst_offset, nbytes);
  }

  /* Copies all bytes. Throws umem::value_error if the sizes differ. */
  void copy_to(Buffer &dst) const {
    if (size_ != dst.size_)
      detail::raise_text(umemValueError, "a copy of all %zu bytes into a buffer of %zu", size_,
                         dst.size_);
    copy_to(dst, size_);
  }
  void copy_from(Buffer const &src) { src.copy_to(*this); }

private:
  /* Takes over an allocated block. */
  Buffer(Context context, address adr, std::size_t nbytes, std::size_t alignment) noexcept
      : context_(std::move(context)), adr_(adr), size_(nbytes), alignment_(alignment) {}

  Context context_;
  address adr_ = 0;
  std::size_t size_ = 0;
  std::size_t alignment_ = 0; /* 0: umem_free frees the block, else umem_aligned_free */
  unsigned generation_ = umem_generation(); /* of the process that has got the block */
};

} // namespace umem

#endif
