/* umem/context.hpp - handles of contexts: objects that stand for a storage.
 *
 *     umem::File file("array.bin", "w+");      // the only line that names the storage
 *     umem::Buffer buffer(file, 800);
 *
 * Context is the handle of any context, see any_context.hpp; Host, File, Cuda, ... are Contexts
 * that construct one of their kind, and throw what its constructor in C fails with. */
#ifndef UMEM_CONTEXT_HPP
#define UMEM_CONTEXT_HPP

#include <umem/any_context.hpp>

/* Programs for GPUs define Host as __host__. Such a program includes these headers, but cannot
 * write umem::Host below its definition. */
#pragma push_macro("Host")
#undef Host

/* What the class of each kind of context has, at its end. of: a handle of the outermost context of
 * this kind in the stack of context; umem::type_error where there is none. */
#define UMEM_KIND_OF_CONTEXT(Kind, name)                                                           \
public:                                                                                            \
  static Kind of(Context const &context) { return Kind(layer_of(context, name)); }                 \
                                                                                                   \
private:                                                                                           \
  explicit Kind(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}             \
  umem##Kind *c_struct() const noexcept { return reinterpret_cast<umem##Kind *>(c_context()); }

namespace umem {

/* RAM of this process. All Hosts are one memory. */
class Host : public Context {
public:
  Host() : Context(make_by(nullptr, umemHost_ctor)) {}

  /* RAM on chosen nodes of the machine, or on pages of a chosen size: umemHost_ctor_with. */
  explicit Host(umemHostOptions const &options)
      : Context(make_by(nullptr, umemHost_ctor_with, &options)) {}

  /* On which node the page at adr is; -1 as long as nothing has touched it: umemHost_node. */
  int node(address adr) const { return detail::filled(-1, umemHost_node, c_struct(), adr); }

  UMEM_KIND_OF_CONTEXT(Host, "host")
};

namespace detail {

/* A path for C, which would cut it at its first zero byte. */
char const *c_path(std::string const &path);

} // namespace detail

/* A file, whose addresses are byte offsets. The modes are those of umemFile_ctor. */
class File : public Context {
public:
  File(std::string const &path, char const *mode,
       umemFileOptions const &options = UMEM_FILE_OPTIONS_INIT)
      : Context(make_by(nullptr, umemFile_ctor_with, detail::c_path(path), mode, &options)) {}

  /* A nameless file that vanishes at the end. */
  static File scratch() { return File(make_by(nullptr, umemFile_ctor, nullptr, "w+")); }

  /* Takes over an open descriptor: umemFile_adopt. If this throws, the caller keeps fd. */
  static File adopt(int fd, umemFileOptions const &options = UMEM_FILE_OPTIONS_INIT) {
    return File(make_by(nullptr, umemFile_adopt_with, fd, &options));
  }

  /* A new file. commit() replaces the one at path by it in one step: umemFile_replace_with. Without
   * a commit the new file is removed, and the old one stays as it is. */
  static File replace(std::string const &path,
                      umemFileOptions const &options = UMEM_FILE_OPTIONS_INIT) {
    return File(make_by(nullptr, umemFile_replace_with, detail::c_path(path), &options));
  }

  /* The path that the file of replace() has until commit(), for other processes that write to it:
   * umemFile_draft. */
  std::string draft() const;

  /* Makes a file of replace() durable and gives it its name: umemFile_commit. */
  void commit() const { detail::check_status(umemFile_commit(c_struct())); }

  UMEM_KIND_OF_CONTEXT(File, "file")
};

/* A file mapped into memory, whose addresses are pointers. */
class MMap : public Context {
public:
  MMap(std::string const &path, char const *mode,
       umemFileOptions const &options = UMEM_FILE_OPTIONS_INIT)
      : Context(make_by(nullptr, umemMMap_ctor_with, detail::c_path(path), mode, &options)) {}

  /* A nameless file that vanishes at the end. */
  static MMap scratch() { return MMap(make_by(nullptr, umemMMap_ctor, nullptr, "w+")); }

  /* Takes over an open descriptor: umemMMap_adopt. If this throws, the caller keeps fd. */
  static MMap adopt(int fd, umemFileOptions const &options = UMEM_FILE_OPTIONS_INIT) {
    return MMap(make_by(nullptr, umemMMap_adopt_with, fd, &options));
  }

  /* The offset in the file of the byte at adr; umem::index_error outside of the mapping. */
  address offset(address adr) const {
    return detail::checked_call(umemMMap_offset, c_struct(), adr);
  }

  /* The address of the byte at an offset in the file; umem::index_error past its end. */
  address at_offset(address file_offset) const {
    return detail::checked_call(umemMMap_address, c_struct(), file_offset);
  }

  UMEM_KIND_OF_CONTEXT(MMap, "mmap")
};

/* The object of a web server at a URL, which is only read; addresses are byte offsets. */
class Url : public Context {
public:
  explicit Url(std::string const &url, umemUrlOptions const &options = UMEM_URL_OPTIONS_INIT)
      : Context(make_by(nullptr, umemUrl_ctor, detail::c_path(url), &options)) {}

  /* How many requests there were, and what they have brought: umemUrl_stats. */
  umemUrlStats stats() const {
    return detail::filled<umemUrlStats>(UMEM_URL_STATS_INIT, umemUrl_stats, c_struct());
  }

  UMEM_KIND_OF_CONTEXT(Url, "https")
};

/* An object in a bucket, "s3://BUCKET/KEY", in mode "r" or "w"; addresses are byte offsets. The
 * destructor completes an object of mode "w" as umem_dtor does: call flush() to see a failure. */
class S3 : public Context {
public:
  explicit S3(std::string const &url, char const *mode = "r",
              umemS3Options const &options = UMEM_S3_OPTIONS_INIT)
      : Context(make_by(nullptr, umemS3_ctor_with, detail::c_path(url), mode, &options)) {}

  /* Gives up an object of mode "w": umemS3_abandon. */
  void abandon() const { detail::check_status(umemS3_abandon(c_struct())); }

  UMEM_KIND_OF_CONTEXT(S3, "s3")
};

/* Memory that several processes of one machine share; addresses are pointers. */
class Shm : public Context {
public:
  /* A new segment without a name, with room for so many bytes of blocks. */
  explicit Shm(std::size_t capacity) : Context(make_by(nullptr, umemShm_ctor, nullptr, capacity)) {}

  /* The segment of this name: opens it, or creates it if there is none. capacity 0: only opens
   * it. */
  explicit Shm(std::string const &name, std::size_t capacity = 0)
      : Context(make_by(nullptr, umemShm_ctor, detail::c_path(name), capacity)) {}

  /* Makes or opens a segment with options; an empty name means none. */
  Shm(std::string const &name, umemShmOptions const &options)
      : Context(make_by(nullptr, umemShm_ctor_with, name.empty() ? nullptr : detail::c_path(name),
                        &options)) {}

  /* Takes over the descriptor of a segment, also if it throws: umemShm_adopt. */
  static Shm adopt(int fd) { return Shm(make_by(nullptr, umemShm_adopt, fd)); }

  /* Takes over a descriptor with options, whose trust says whose segment it may be:
   * umemShm_adopt_with. */
  static Shm adopt(int fd, umemShmOptions const &options) {
    return Shm(make_by(nullptr, umemShm_adopt_with, fd, &options));
  }

  /* Removes a name. Processes that have the segment keep it. */
  static void remove(std::string const &name) {
    detail::check_status(umemShm_remove(detail::c_path(name)));
  }

  /* The descriptor of the segment, which this context keeps. */
  int descriptor() const noexcept { return umemShm_descriptor(c_struct()); }

  /* The offset of the byte at adr, which is the same in all processes; umem::index_error outside of
   * the segment. */
  address offset(address adr) const {
    return detail::checked_call(umemShm_offset, c_struct(), adr);
  }

  /* The address of the byte at an offset. */
  address at_offset(address segment_offset) const {
    return detail::checked_call(umemShm_address, c_struct(), segment_offset);
  }

  /* All live blocks, in no order: umemShm_blocks. */
  std::vector<umemShmBlock> blocks() const;

  /* Frees the blocks of a process that has ended, 0: of all; returns how many: umemShm_reclaim. */
  std::size_t reclaim(int pid = 0) const {
    return detail::checked_call(umemShm_reclaim, c_struct(), pid);
  }

  /* Makes the block at adr one of this process. */
  void own(address adr) const { detail::check_status(umemShm_own(c_struct(), adr)); }

  /* Says that the block that holds the byte at adr is written: umemShm_complete. */
  void complete(address adr) const { detail::check_status(umemShm_complete(c_struct(), adr)); }

  /* Whether the block that holds the byte at adr is complete: umemShm_is_complete. */
  bool is_complete(address adr) const {
    return detail::checked_call(umemShm_is_complete, c_struct(), adr);
  }

  UMEM_KIND_OF_CONTEXT(Shm, "shm")
};

/* Memory of one GPU; calls finish before they return. */
class Cuda : public Context {
public:
  explicit Cuda(int device = 0) : Context(make_by(nullptr, umemCuda_ctor, device)) {}

  UMEM_KIND_OF_CONTEXT(Cuda, "cuda")
};

/* Pinned host memory; flags: 0 or UMEM_WRITE_COMBINED. */
class CudaHost : public Context {
public:
  explicit CudaHost(unsigned flags = 0) : Context(make_by(nullptr, umemCudaHost_ctor, flags)) {}

  UMEM_KIND_OF_CONTEXT(CudaHost, "cuda-host")
};

/* Managed memory; flags: as of umemCudaManaged_ctor, hints and UMEM_OVERSUBSCRIBE. */
class CudaManaged : public Context {
public:
  explicit CudaManaged(int device = 0, unsigned flags = 0)
      : Context(make_by(nullptr, umemCudaManaged_ctor, device, flags)) {}

  UMEM_KIND_OF_CONTEXT(CudaManaged, "cuda-managed")
};

/* Memory of one GPU in the order of a stream: see umemCudaAsync_ctor. */
class CudaAsync : public Context {
public:
  explicit CudaAsync(int device = 0, std::uintptr_t stream = UMEM_STREAM_NEW,
                     umemCudaAsyncOptions const *options = nullptr)
      : Context(make_by(nullptr, umemCudaAsync_ctor_with, device, stream, options)) {}

  /* The cudaStream_t. */
  std::uintptr_t stream() const { return detail::checked_call(umemCudaAsync_stream, c_context()); }

  UMEM_KIND_OF_CONTEXT(CudaAsync, "cuda-async")
};

/* Streams of one GPU, which are handed out in turn: umemCudaStreams. Move-only; ends them. */
class CudaStreams {
public:
  /* count: how many to create on the GPU. */
  explicit CudaStreams(int device, unsigned count) {
    detail::check_status(umemCudaStreams_open(&streams_, device, count));
  }
  CudaStreams(CudaStreams &&other) noexcept : streams_(std::exchange(other.streams_, {})) {}
  CudaStreams &operator=(CudaStreams &&other) noexcept {
    std::swap(streams_, other.streams_);
    return *this;
  }
  ~CudaStreams() { umemCudaStreams_close(&streams_); }

  /* A cudaStream_t, the next in turn; any thread. It must not be used after the end. */
  std::uintptr_t next() { return detail::checked_call(umemCudaStreams_next, &streams_); }

  /* The k-th, from 0; umem::index_error if there is none. */
  std::uintptr_t at(unsigned k) { return detail::checked_call(umemCudaStreams_at, &streams_, k); }

  unsigned size() const noexcept { return umemCudaStreams_count(&streams_); }

private:
  umemCudaStreams streams_{};
};

} // namespace umem

#pragma pop_macro("Host")

#endif

#if !defined(UMEM_CONTEXT_FUNCTIONS) && (!defined(UMEM_COMPILED) || defined(UMEM_COMPILES))
#define UMEM_CONTEXT_FUNCTIONS

#pragma push_macro("Host")
#undef Host

namespace umem {
namespace detail {

UMEM_INLINE HeldContext::HeldContext(std::size_t size, std::shared_ptr<void> kept)
    : below(std::move(kept)), memory(::operator new(size)) {}

UMEM_INLINE HeldContext::~HeldContext() {
  std::uint64_t const before = umem_thread_failures();
  if (constructed) umem_dtor(constructed);
  if (umem_thread_failures() != before) umem_report_end("the end of a context");
  ::operator delete(memory);
}

UMEM_INLINE std::shared_ptr<HeldContext> hold_context(std::size_t size,
                                                      std::shared_ptr<void> below) {
  return std::make_shared<HeldContext>(size, std::move(below));
}

UMEM_INLINE std::shared_ptr<umemVirtual> started(std::shared_ptr<HeldContext> const &held,
                                                 umemStatusType status, umemVirtual *context) {
  check_status(status);
  held->constructed = context;
  forget_thrown();
  return {held, context};
}

UMEM_INLINE Context const &pointers() {
  static Context const &host = *new Context(Host());
  return host;
}

UMEM_INLINE char const *c_path(std::string const &path) {
  if (path.find('\0') != std::string::npos) throw value_error("the path holds a zero byte");
  return path.c_str();
}

} // namespace detail

UMEM_INLINE Context Context::upstream() const {
  auto *below = static_cast<umemVirtual *>(detail::checked_call(umem_get_upstream, c_context()));
  return below ? Context(std::shared_ptr<umemVirtual>(context_, below)) : Context();
}

UMEM_INLINE umemInfo Context::info() const {
  return detail::filled<umemInfo>(UMEM_INFO_INIT, umem_get_info, c_context());
}

UMEM_INLINE address Context::allocate_zeroed(std::size_t nbytes, std::size_t alignment) const {
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

UMEM_INLINE std::shared_ptr<umemVirtual> Context::layer(char const *kind,
                                                        umemStatusType none) const {
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  auto *found = static_cast<umemVirtual *>(umem_find_layer(c_context(), kind));
  umemAttempt_end(&attempt);
  if (found) return {context_, found};
  bool whole = context_ && context_->vptr && attempt.ctx == c_context();
  umem::raise(whole && attempt.type == umemValueError ? none : attempt.type, attempt.text);
}

UMEM_INLINE std::string File::draft() const {
  char path[4096];
  detail::check_status(umemFile_draft(c_struct(), path, sizeof path));
  return path;
}

UMEM_INLINE std::vector<umemShmBlock> Shm::blocks() const {
  std::vector<umemShmBlock> found;
  std::uint64_t before = umem_thread_failures();
  for (std::size_t count = umemShm_blocks(c_struct(), nullptr, 0);;) {
    found.resize(count);
    count = umemShm_blocks(c_struct(), found.data(), found.size());
    detail::check_since(before);
    if (count > found.size()) continue; /* others have allocated meanwhile */
    found.resize(count);
    return found;
  }
}

} // namespace umem

#pragma pop_macro("Host")

#endif
