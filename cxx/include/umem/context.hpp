/* umem/context.hpp - handles of contexts: objects that stand for a storage.
 *
 *     umem::File file("array.bin", "w+");      // the only line that names the storage
 *     umem::Buffer buffer(file, 800);
 *
 * Context is the handle of any context; Host, File, Cuda, ... are Contexts that construct one of
 * their kind. Copies of a handle share the context. It ends with its last handle and the last
 * buffer, array or adaptor that uses it. A moved-from handle is empty.
 *
 * Failures are exceptions (error.hpp). A destructor cannot throw a failure that only the end of
 * a context reveals, such as a failing close: flush first, or set umem_set_failure_hook. The C
 * context also keeps its own record of failures, for umem_get_status.
 *
 * Threads: see umem/context.h for contexts; handles follow the rules of std::shared_ptr. */
#ifndef UMEM_CONTEXT_HPP
#define UMEM_CONTEXT_HPP

#include <umem.h>
#include <umem/error.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace umem {

/* The address of a byte: a pointer, or an offset in a file. */
using address = std::uintptr_t;

namespace detail {

/* Memory for a C context of any type, and its end. One class for all types: a template for each
 * would take a tenth of the time that umem.hpp takes to compile. */
struct HeldContext {
  HeldContext(std::size_t size, std::shared_ptr<void> kept)
      : below(std::move(kept)), memory(::operator new(size)) {}
  HeldContext(HeldContext const &) = delete;
  HeldContext &operator=(HeldContext const &) = delete;
  ~HeldContext() {
    if (constructed) umem_dtor(constructed);
    ::operator delete(memory);
  }

  std::shared_ptr<void> below; /* what the C context uses; may be empty; released after its end */
  void *memory;
  umemVirtual *constructed = nullptr; /* the C context in the memory, once constructed */
};

/* The number of the device of a context, which never changes. A handle asks for it once, and
 * copies made later know it. Asking costs a call of the driver of the GPU. */
class Ordinal {
public:
  Ordinal() = default;
  Ordinal(Ordinal const &other) noexcept : value_(other.load()) {}
  Ordinal &operator=(Ordinal const &other) noexcept {
    value_.store(other.load(), std::memory_order_relaxed);
    return *this;
  }

  template <class Ask> std::int64_t get(Ask &&ask) const {
    if (load() == unasked) value_.store(ask(), std::memory_order_relaxed);
    return load();
  }

private:
  static constexpr std::int64_t unasked = INT64_MIN;

  std::int64_t load() const noexcept { return value_.load(std::memory_order_relaxed); }

  mutable std::atomic<std::int64_t> value_{unasked}; /* many threads may ask one handle */
};

} // namespace detail

class Place;

class Context {
public:
  /* An empty handle: every call but the tests of emptiness throws umem::value_error. */
  Context() = default;

  /* Shares the ownership of a context that C code has constructed. The deleter of the shared_ptr
   * must call umem_dtor and free the struct. */
  explicit Context(std::shared_ptr<umemVirtual> context) : context_(std::move(context)) {}

  /* Borrows a context that outlives all handles and everything that uses them; they do not end
   * it. */
  static Context borrow(umemVirtual *context) {
    return Context(std::shared_ptr<umemVirtual>(std::shared_ptr<void>(), context));
  }

  /* The same for a umemHost, umemFile, ...: any C context, whose first member is its base. */
  template <class C> static Context borrow(C *context) {
    static_assert(std::is_same_v<decltype(context->super), umemVirtual>);
    return borrow(context ? &context->super : nullptr);
  }

  explicit operator bool() const noexcept { return static_cast<bool>(context_); }

  /* The C context, which belongs to the handles; NULL if empty. */
  umemVirtual *c_context() const noexcept { return context_.get(); }

  /* ---- questions ---- */

  char const *name() const noexcept { return umem_get_device_name(c_context()); }
  address null() const noexcept { return umem_null(c_context()); }
  std::size_t alignment() const noexcept { return context_ ? context_->alignment : 1; }

  /* Whether the context has all of these umemCapability. */
  bool can(unsigned capabilities) const noexcept {
    return context_ && (context_->capabilities & capabilities) == capabilities;
  }
  bool is_cpu_accessible() const noexcept { return can(umemCpuReadable | umemCpuWritable); }

  /* The context below a pool, a limit or another adaptor: the next layer of a stack. Empty if
   * there is none. The handle keeps that context alive too. */
  Context upstream() const {
    std::uint64_t before = umem_thread_failures();
    auto *below = static_cast<umemVirtual *>(umem_get_upstream(c_context()));
    detail::check_since(before);
    return below ? Context(std::shared_ptr<umemVirtual>(context_, below)) : Context();
  }

  /* The outermost layer of this kind, "stats" for example, in the stack of this context: umem_find_layer. The
   * handle keeps this context alive too. umem::value_error where there is none. */
  Context find_layer(char const *kind) const { return Context(layer(kind, umemValueError)); }

  umemInfo info() const {
    umemInfo info = UMEM_INFO_INIT;
    detail::check(umem_get_info(c_context(), &info));
    return info;
  }

  /* Whether addresses of one are addresses of the other. */
  bool is_same_device(Context const &other) const {
    std::uint64_t before = umem_thread_failures();
    bool same = umem_is_same_device(c_context(), other.c_context());
    detail::check_since(before);
    return same;
  }

  /* Whether both are handles of one context, or empty. */
  friend bool operator==(Context const &one, Context const &other) noexcept {
    return one.context_ == other.context_;
  }
  friend bool operator!=(Context const &one, Context const &other) noexcept {
    return !(one == other);
  }

  /* ---- memory; Buffer does this with ownership ---- */

  /* nbytes at a multiple of alignment (0: the natural one). */
  address allocate(std::size_t nbytes, std::size_t alignment = 0) const {
    return checked(alignment ? umem_aligned_alloc(c_context(), alignment, nbytes)
                             : umem_alloc(c_context(), nbytes));
  }

  /* The same with every byte zero. */
  address allocate_zeroed(std::size_t nbytes, std::size_t alignment = 0) const {
    if (alignment == 0) return checked(umem_calloc(c_context(), nbytes, 1));
    address adr = allocate(nbytes, alignment);
    try {
      set(adr, 0, nbytes);
    } catch (...) {
      umem_aligned_free(c_context(), adr);
      umem_thread_clear(); /* if the free fails too, the exception still names the first failure */
      throw;
    }
    return adr;
  }

  /* Makes a block that was allocated without alignment new_size bytes long, and returns its new address.
   * On failure the old block is untouched. */
  address reallocate(address adr, std::size_t old_size, std::size_t new_size) const {
    return checked(umem_realloc(c_context(), adr, old_size, new_size));
  }

  /* Frees a block of allocate, allocate_zeroed or reallocate; alignment as given there. */
  void deallocate(address adr, std::size_t alignment = 0) const {
    std::uint64_t before = umem_thread_failures();
    if (alignment)
      umem_aligned_free(c_context(), adr);
    else
      umem_free(c_context(), adr);
    detail::check_since(before);
  }

  /* Sets nbytes to (unsigned char)c. */
  void set(address adr, int c, std::size_t nbytes) const {
    detail::check(umem_set(c_context(), adr, c, nbytes));
  }

  /* ---- order and durability ---- */

  /* Returns when all work queued here is complete, and throws its failures. */
  void synchronize() const { detail::check(umem_synchronize(c_context())); }

  /* Later work here starts only after what other has queued so far. */
  void wait(Context const &other) const {
    detail::check(umem_wait(c_context(), other.c_context()));
  }

  /* Makes what was written durable. */
  void flush() const { detail::check(umem_flush(c_context())); }

  /* Frees unused storage, all but about keep bytes. */
  void trim(std::size_t keep = 0) const { detail::check(umem_trim(c_context(), keep)); }

protected:
  /* Constructs a C context of type C, a C struct: construct(C *) returns its status. For handles of
   * contexts from outside of umem, too:
   *
   *     class MyMem : public umem::Context {
   *     public:
   *       explicit MyMem(std::size_t size)
   *           : Context(make<umemMyMem>(
   *                 [=](umemMyMem *ctx) { return umemMyMem_ctor(ctx, size); })) {}
   *     };
   *
   * below is kept until the C context has ended: owner(upstream) of one that goes over another. */
  template <class C, class Construct>
  static std::shared_ptr<umemVirtual> make(Construct &&construct,
                                           std::shared_ptr<void> below = nullptr) {
    static_assert(std::is_trivially_destructible_v<C> &&
                  alignof(C) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    auto held = std::make_shared<detail::HeldContext>(sizeof(C), std::move(below));
    auto *context = new (held->memory) C();
    detail::check(construct(context));
    held->constructed = &context->super;
    detail::forget_thrown();
    return {held, &context->super};
  }

  /* For the handle of one kind of context: the outermost layer of that kind in the stack of context, which it
   * keeps alive. Throws the failure, which is recorded nowhere; umem::type_error where there is no such
   * layer. */
  static std::shared_ptr<umemVirtual> layer_of(Context const &context, char const *kind) {
    return context.layer(kind, umemTypeError);
  }

  /* A share in what keeps a context alive; empty for an empty handle and a borrowed context. */
  static std::shared_ptr<void> owner(Context const &context) noexcept { return context.context_; }

private:
  friend class Place;

  /* none: what is thrown where the stack is whole, and has no such layer. */
  std::shared_ptr<umemVirtual> layer(char const *kind, umemStatusType none) const {
    umemAttempt attempt;
    umemAttempt_begin(&attempt);
    auto *found = static_cast<umemVirtual *>(umem_find_layer(c_context(), kind));
    umemAttempt_end(&attempt);
    if (found) return {context_, found};
    bool whole = context_ && context_->vptr && attempt.ctx == c_context();
    raise(whole && attempt.type == umemValueError ? none : attempt.type, attempt.text);
  }

  /* As in info(). */
  std::int64_t ordinal() const {
    return ordinal_.get([this] { return info().ordinal; });
  }

  address checked(address adr) const {
    if (adr == null()) detail::raise_recorded(umem_thread_status());
    detail::forget_thrown();
    return adr;
  }

  std::shared_ptr<umemVirtual> context_;
  detail::Ordinal ordinal_;
};

/* ---- the contexts ---- */

/* RAM of this process. All Hosts are one memory. */
class Host : public Context {
public:
  Host() : Context(make<umemHost>([](umemHost *ctx) { return umemHost_ctor(ctx); })) {}

  /* A handle of the outermost Host in the stack of context; umem::type_error where there is none. */
  static Host of(Context const &context) { return Host(layer_of(context, "host")); }

private:
  explicit Host(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}
};

namespace detail {

/* A path for C, which would cut it at its first zero byte. */
inline char const *c_path(std::string const &path) {
  if (path.find('\0') != std::string::npos) throw value_error("the path holds a zero byte");
  return path.c_str();
}

} // namespace detail

/* A file, whose addresses are byte offsets. The modes are those of umemFile_ctor. */
class File : public Context {
public:
  File(std::string const &path, char const *mode,
       umemFileOptions const &options = UMEM_FILE_OPTIONS_INIT)
      : Context(make<umemFile>([name = detail::c_path(path), mode, &options](umemFile *ctx) {
          return umemFile_ctor_with(ctx, name, mode, &options);
        })) {}

  /* A handle of the outermost File in the stack of context; umem::type_error where there is none. */
  static File of(Context const &context) { return File(layer_of(context, "file")); }

  /* A nameless file that vanishes at the end. */
  static File scratch() {
    return File(make<umemFile>([](umemFile *ctx) { return umemFile_ctor(ctx, nullptr, "w+"); }));
  }

  /* Takes over an open descriptor: umemFile_adopt. If this throws, the caller keeps fd. */
  static File adopt(int fd, umemFileOptions const &options = UMEM_FILE_OPTIONS_INIT) {
    return File(make<umemFile>(
        [fd, &options](umemFile *ctx) { return umemFile_adopt_with(ctx, fd, &options); }));
  }

  /* A new file. commit() replaces the one at path by it in one step: umemFile_replace. Without a
   * commit the new file is removed, and the old one stays as it is. */
  static File replace(std::string const &path) {
    return File(make<umemFile>(
        [name = detail::c_path(path)](umemFile *ctx) { return umemFile_replace(ctx, name); }));
  }

  /* Makes a file of replace() durable and gives it its name: umemFile_commit. */
  void commit() const { detail::check(umemFile_commit(reinterpret_cast<umemFile *>(c_context()))); }

private:
  explicit File(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}
};

/* A file mapped into memory, whose addresses are pointers. */
class MMap : public Context {
public:
  MMap(std::string const &path, char const *mode,
       umemFileOptions const &options = UMEM_FILE_OPTIONS_INIT)
      : Context(make<umemMMap>([name = detail::c_path(path), mode, &options](umemMMap *ctx) {
          return umemMMap_ctor_with(ctx, name, mode, &options);
        })) {}

  /* A handle of the outermost MMap in the stack of context; umem::type_error where there is none. */
  static MMap of(Context const &context) { return MMap(layer_of(context, "mmap")); }

  /* A nameless file that vanishes at the end. */
  static MMap scratch() {
    return MMap(make<umemMMap>([](umemMMap *ctx) { return umemMMap_ctor(ctx, nullptr, "w+"); }));
  }

  /* Takes over an open descriptor: umemMMap_adopt. If this throws, the caller keeps fd. */
  static MMap adopt(int fd, umemFileOptions const &options = UMEM_FILE_OPTIONS_INIT) {
    return MMap(make<umemMMap>(
        [fd, &options](umemMMap *ctx) { return umemMMap_adopt_with(ctx, fd, &options); }));
  }

  /* The offset in the file of the byte at adr; umem::index_error outside of the mapping. */
  address offset(address adr) const {
    std::uint64_t before = umem_thread_failures();
    address found = umemMMap_offset(c_mmap(), adr);
    detail::check_since(before);
    return found;
  }

  /* The address of the byte at an offset in the file; umem::index_error past its end. */
  address at_offset(address file_offset) const {
    std::uint64_t before = umem_thread_failures();
    address found = umemMMap_address(c_mmap(), file_offset);
    detail::check_since(before);
    return found;
  }

private:
  explicit MMap(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}

  umemMMap *c_mmap() const noexcept { return reinterpret_cast<umemMMap *>(c_context()); }
};

/* Memory that several processes of one machine share; addresses are pointers. */
class Shm : public Context {
public:
  /* A new segment without a name, with room for so many bytes of blocks. */
  explicit Shm(std::size_t capacity)
      : Context(make<umemShm>(
            [capacity](umemShm *ctx) { return umemShm_ctor(ctx, nullptr, capacity); })) {}

  /* The segment of this name: opens it, or creates it if there is none. capacity 0: only opens it. */
  explicit Shm(std::string const &name, std::size_t capacity = 0)
      : Context(make<umemShm>([name = detail::c_path(name), capacity](umemShm *ctx) {
          return umemShm_ctor(ctx, name, capacity);
        })) {}

  /* The same with options; an empty name means none. */
  Shm(std::string const &name, umemShmOptions const &options)
      : Context(
            make<umemShm>([name = name.empty() ? nullptr : detail::c_path(name), &options](
                              umemShm *ctx) { return umemShm_ctor_with(ctx, name, &options); })) {}

  /* A handle of the outermost Shm in the stack of context; umem::type_error where there is none. */
  static Shm of(Context const &context) { return Shm(layer_of(context, "shm")); }

  /* Takes over the descriptor of a segment, also if it throws: umemShm_adopt. */
  static Shm adopt(int fd) {
    return Shm(make<umemShm>([fd](umemShm *ctx) { return umemShm_adopt(ctx, fd); }));
  }

  /* Removes a name. Processes that have the segment keep it. */
  static void remove(std::string const &name) {
    detail::check(umemShm_remove(detail::c_path(name)));
  }

  /* The descriptor of the segment, which this context keeps. */
  int descriptor() const noexcept { return umemShm_descriptor(c_shm()); }

  /* The offset of the byte at adr, which is the same in all processes; umem::index_error outside of the segment. */
  address offset(address adr) const {
    std::uint64_t before = umem_thread_failures();
    address found = umemShm_offset(c_shm(), adr);
    detail::check_since(before);
    return found;
  }

  /* The address of the byte at an offset. */
  address at_offset(address segment_offset) const {
    std::uint64_t before = umem_thread_failures();
    address found = umemShm_address(c_shm(), segment_offset);
    detail::check_since(before);
    return found;
  }

  /* All live blocks, in no order: umemShm_blocks. */
  std::vector<umemShmBlock> blocks() const {
    std::vector<umemShmBlock> found;
    std::uint64_t before = umem_thread_failures();
    for (std::size_t count = umemShm_blocks(c_shm(), nullptr, 0);;) {
      found.resize(count);
      count = umemShm_blocks(c_shm(), found.data(), found.size());
      detail::check_since(before);
      if (count > found.size()) continue; /* others have allocated meanwhile */
      found.resize(count);
      return found;
    }
  }

  /* Frees the blocks of a process that has ended, 0: of all; returns how many: umemShm_reclaim. */
  std::size_t reclaim(int pid = 0) const {
    std::uint64_t before = umem_thread_failures();
    std::size_t count = umemShm_reclaim(c_shm(), pid);
    detail::check_since(before);
    return count;
  }

  /* Makes the block at adr one of this process. */
  void own(address adr) const { detail::check(umemShm_own(c_shm(), adr)); }

private:
  explicit Shm(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}

  umemShm *c_shm() const noexcept { return reinterpret_cast<umemShm *>(c_context()); }
};

/* Memory of one GPU; calls finish before they return. */
class Cuda : public Context {
public:
  explicit Cuda(int device = 0)
      : Context(make<umemCuda>([=](umemCuda *ctx) { return umemCuda_ctor(ctx, device); })) {}

  /* A handle of the outermost Cuda in the stack of context; umem::type_error where there is none. */
  static Cuda of(Context const &context) { return Cuda(layer_of(context, "cuda")); }

private:
  explicit Cuda(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}
};

/* Pinned host memory; flags: 0 or UMEM_WRITE_COMBINED. */
class CudaHost : public Context {
public:
  explicit CudaHost(unsigned flags = 0)
      : Context(
            make<umemCudaHost>([=](umemCudaHost *ctx) { return umemCudaHost_ctor(ctx, flags); })) {}

  /* A handle of the outermost CudaHost in the stack of context; umem::type_error where there is none. */
  static CudaHost of(Context const &context) { return CudaHost(layer_of(context, "cuda-host")); }

private:
  explicit CudaHost(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}
};

/* Managed memory; flags: the hints of umemCudaManaged_ctor. */
class CudaManaged : public Context {
public:
  explicit CudaManaged(int device = 0, unsigned flags = 0)
      : Context(make<umemCudaManaged>(
            [=](umemCudaManaged *ctx) { return umemCudaManaged_ctor(ctx, device, flags); })) {}

  /* A handle of the outermost CudaManaged in the stack of context; umem::type_error where there is none. */
  static CudaManaged of(Context const &context) {
    return CudaManaged(layer_of(context, "cuda-managed"));
  }

private:
  explicit CudaManaged(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}
};

/* Memory of one GPU in the order of a stream: see umemCudaAsync_ctor. */
class CudaAsync : public Context {
public:
  explicit CudaAsync(int device = 0, std::uintptr_t stream = UMEM_STREAM_NEW,
                     umemCudaAsyncOptions const *options = nullptr)
      : Context(make<umemCudaAsync>([=](umemCudaAsync *ctx) {
          return umemCudaAsync_ctor_with(ctx, device, stream, options);
        })) {}

  /* A handle of the outermost CudaAsync in the stack of context; umem::type_error where there is none. */
  static CudaAsync of(Context const &context) { return CudaAsync(layer_of(context, "cuda-async")); }

  /* The cudaStream_t. */
  std::uintptr_t stream() const {
    std::uint64_t before = umem_thread_failures();
    std::uintptr_t stream = umemCudaAsync_stream(c_context());
    detail::check_since(before);
    return stream;
  }

private:
  explicit CudaAsync(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}
};

/* ---- copies ---- */

/* Copies nbytes between any two contexts. */
inline void copy(Context const &src, address src_adr, Context const &dst, address dst_adr,
                 std::size_t nbytes) {
  detail::check(umem_copy_to(src.c_context(), src_adr, dst.c_context(), dst_adr, nbytes));
}

/* The items of a layout: umem_copy_strided. */
inline void copy(Context const &src, address src_adr, Context const &dst, address dst_adr,
                 umemLayout const &layout) {
  detail::check(umem_copy_strided(src.c_context(), src_adr, dst.c_context(), dst_adr, &layout));
}

/* As the first, with calls of progress(done, total) after each step bytes (0: umem chooses). If
 * progress returns false, the copy ends with umem::cancelled_error. If progress throws, the copy
 * ends too, and throws the same exception. */
template <
    class Progress,
    class = std::enable_if_t<std::is_invocable_r_v<bool, Progress &, std::uint64_t, std::uint64_t>>>
void copy(Context const &src, address src_adr, Context const &dst, address dst_adr,
          std::size_t nbytes, Progress &&progress, std::size_t step = 0) {
  struct Call {
    std::remove_reference_t<Progress> &progress;
    std::exception_ptr thrown;
  } call{progress, nullptr};
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.step = step;
  options.user = &call;
  options.progress = [](void *user, std::uint64_t done, std::uint64_t total) -> bool {
    Call &self = *static_cast<Call *>(user);
    try {
      return self.progress(done, total);
    } catch (...) { /* must not pass through C */
      self.thrown = std::current_exception();
      return false;
    }
  };
  umemStatusType status =
      umem_copy_to_with(src.c_context(), src_adr, dst.c_context(), dst_adr, nbytes, &options);
  if (call.thrown) {
    umem_thread_clear();
    std::rethrow_exception(call.thrown);
  }
  detail::check(status);
}

namespace detail {

/* The Host whose addresses are all pointers of the program. It never ends, so that destructors of
 * static objects may copy. */
inline Context const &pointers() {
  static Context const &host = *new Context(Host());
  return host;
}

} // namespace detail

/* Copies nbytes to memory of the program. The copy is complete on return. */
inline void copy(Context const &src, address src_adr, void *dst, std::size_t nbytes) {
  copy(src, src_adr, detail::pointers(), reinterpret_cast<address>(dst), nbytes);
  if (src.can(umemOrdered)) src.synchronize();
}

/* Copies nbytes from memory of the program, which the program may reuse on return. */
inline void copy(void const *src, Context const &dst, address dst_adr, std::size_t nbytes) {
  copy(detail::pointers(), reinterpret_cast<address>(src), dst, dst_adr, nbytes);
  if (dst.can(umemOrdered)) dst.synchronize();
}

} // namespace umem

#endif
