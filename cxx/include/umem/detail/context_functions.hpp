/* umem/detail/context_functions.hpp - what any_context.hpp and context.hpp declare. */
#ifndef UMEM_DETAIL_CONTEXT_FUNCTIONS_HPP
#define UMEM_DETAIL_CONTEXT_FUNCTIONS_HPP

#include <umem/context.hpp>

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
  std::uint64_t before = umem_thread_failures();
  auto *below = static_cast<umemVirtual *>(umem_get_upstream(c_context()));
  detail::check_since(before);
  return below ? Context(std::shared_ptr<umemVirtual>(context_, below)) : Context();
}

UMEM_INLINE umemInfo Context::info() const {
  umemInfo info = UMEM_INFO_INIT;
  detail::check_status(umem_get_info(c_context(), &info));
  return info;
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
  raise(whole && attempt.type == umemValueError ? none : attempt.type, attempt.text);
}

UMEM_INLINE Host::Host()
    : Context(make<umemHost>([](umemHost *ctx) { return umemHost_ctor(ctx); })) {}

UMEM_INLINE Host::Host(umemHostOptions const &options)
    : Context(
          make<umemHost>([&options](umemHost *ctx) { return umemHost_ctor_with(ctx, &options); })) {
}

UMEM_INLINE int Host::node(address adr) const {
  int found = -1;
  detail::check_status(umemHost_node(reinterpret_cast<umemHost *>(c_context()), adr, &found));
  return found;
}

UMEM_INLINE Host Host::of(Context const &context) { return Host(layer_of(context, "host")); }

UMEM_INLINE File::File(std::string const &path, char const *mode, umemFileOptions const &options)
    : Context(make<umemFile>([name = detail::c_path(path), mode, &options](umemFile *ctx) {
        return umemFile_ctor_with(ctx, name, mode, &options);
      })) {}

UMEM_INLINE File File::of(Context const &context) { return File(layer_of(context, "file")); }

UMEM_INLINE File File::scratch() {
  return File(make<umemFile>([](umemFile *ctx) { return umemFile_ctor(ctx, nullptr, "w+"); }));
}

UMEM_INLINE File File::adopt(int fd, umemFileOptions const &options) {
  return File(make<umemFile>(
      [fd, &options](umemFile *ctx) { return umemFile_adopt_with(ctx, fd, &options); }));
}

UMEM_INLINE File File::replace(std::string const &path, umemFileOptions const &options) {
  return File(make<umemFile>([name = detail::c_path(path), &options](umemFile *ctx) {
    return umemFile_replace_with(ctx, name, &options);
  }));
}

UMEM_INLINE std::string File::draft() const {
  char path[4096];
  detail::check_status(
      umemFile_draft(reinterpret_cast<umemFile *>(c_context()), path, sizeof path));
  return path;
}

UMEM_INLINE void File::commit() const {
  detail::check_status(umemFile_commit(reinterpret_cast<umemFile *>(c_context())));
}

UMEM_INLINE MMap::MMap(std::string const &path, char const *mode, umemFileOptions const &options)
    : Context(make<umemMMap>([name = detail::c_path(path), mode, &options](umemMMap *ctx) {
        return umemMMap_ctor_with(ctx, name, mode, &options);
      })) {}

UMEM_INLINE MMap MMap::of(Context const &context) { return MMap(layer_of(context, "mmap")); }

UMEM_INLINE MMap MMap::scratch() {
  return MMap(make<umemMMap>([](umemMMap *ctx) { return umemMMap_ctor(ctx, nullptr, "w+"); }));
}

UMEM_INLINE MMap MMap::adopt(int fd, umemFileOptions const &options) {
  return MMap(make<umemMMap>(
      [fd, &options](umemMMap *ctx) { return umemMMap_adopt_with(ctx, fd, &options); }));
}

UMEM_INLINE address MMap::offset(address adr) const {
  std::uint64_t before = umem_thread_failures();
  address found = umemMMap_offset(c_mmap(), adr);
  detail::check_since(before);
  return found;
}

UMEM_INLINE address MMap::at_offset(address file_offset) const {
  std::uint64_t before = umem_thread_failures();
  address found = umemMMap_address(c_mmap(), file_offset);
  detail::check_since(before);
  return found;
}

UMEM_INLINE Shm::Shm(std::size_t capacity)
    : Context(make<umemShm>(
          [capacity](umemShm *ctx) { return umemShm_ctor(ctx, nullptr, capacity); })) {}

UMEM_INLINE Shm::Shm(std::string const &name, std::size_t capacity)
    : Context(make<umemShm>([name = detail::c_path(name), capacity](umemShm *ctx) {
        return umemShm_ctor(ctx, name, capacity);
      })) {}

UMEM_INLINE Shm::Shm(std::string const &name, umemShmOptions const &options)
    : Context(make<umemShm>([name = name.empty() ? nullptr : detail::c_path(name), &options](
                                umemShm *ctx) { return umemShm_ctor_with(ctx, name, &options); })) {
}

UMEM_INLINE Shm Shm::of(Context const &context) { return Shm(layer_of(context, "shm")); }

UMEM_INLINE Shm Shm::adopt(int fd) {
  return Shm(make<umemShm>([fd](umemShm *ctx) { return umemShm_adopt(ctx, fd); }));
}

UMEM_INLINE Shm Shm::adopt(int fd, umemShmOptions const &options) {
  return Shm(make<umemShm>(
      [fd, &options](umemShm *ctx) { return umemShm_adopt_with(ctx, fd, &options); }));
}

UMEM_INLINE void Shm::remove(std::string const &name) {
  detail::check_status(umemShm_remove(detail::c_path(name)));
}

UMEM_INLINE address Shm::offset(address adr) const {
  std::uint64_t before = umem_thread_failures();
  address found = umemShm_offset(c_shm(), adr);
  detail::check_since(before);
  return found;
}

UMEM_INLINE address Shm::at_offset(address segment_offset) const {
  std::uint64_t before = umem_thread_failures();
  address found = umemShm_address(c_shm(), segment_offset);
  detail::check_since(before);
  return found;
}

UMEM_INLINE std::vector<umemShmBlock> Shm::blocks() const {
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

UMEM_INLINE std::size_t Shm::reclaim(int pid) const {
  std::uint64_t before = umem_thread_failures();
  std::size_t count = umemShm_reclaim(c_shm(), pid);
  detail::check_since(before);
  return count;
}

UMEM_INLINE void Shm::own(address adr) const { detail::check_status(umemShm_own(c_shm(), adr)); }

UMEM_INLINE void Shm::complete(address adr) const {
  detail::check_status(umemShm_complete(c_shm(), adr));
}

UMEM_INLINE bool Shm::is_complete(address adr) const {
  std::uint64_t before = umem_thread_failures();
  bool found = umemShm_is_complete(c_shm(), adr);
  detail::check_since(before);
  return found;
}

UMEM_INLINE Cuda::Cuda(int device)
    : Context(make<umemCuda>([=](umemCuda *ctx) { return umemCuda_ctor(ctx, device); })) {}

UMEM_INLINE Cuda Cuda::of(Context const &context) { return Cuda(layer_of(context, "cuda")); }

UMEM_INLINE CudaHost::CudaHost(unsigned flags)
    : Context(
          make<umemCudaHost>([=](umemCudaHost *ctx) { return umemCudaHost_ctor(ctx, flags); })) {}

UMEM_INLINE CudaHost CudaHost::of(Context const &context) {
  return CudaHost(layer_of(context, "cuda-host"));
}

UMEM_INLINE CudaManaged::CudaManaged(int device, unsigned flags)
    : Context(make<umemCudaManaged>(
          [=](umemCudaManaged *ctx) { return umemCudaManaged_ctor(ctx, device, flags); })) {}

UMEM_INLINE CudaManaged CudaManaged::of(Context const &context) {
  return CudaManaged(layer_of(context, "cuda-managed"));
}

UMEM_INLINE CudaAsync::CudaAsync(int device, std::uintptr_t stream,
                                 umemCudaAsyncOptions const *options)
    : Context(make<umemCudaAsync>([=](umemCudaAsync *ctx) {
        return umemCudaAsync_ctor_with(ctx, device, stream, options);
      })) {}

UMEM_INLINE CudaAsync CudaAsync::of(Context const &context) {
  return CudaAsync(layer_of(context, "cuda-async"));
}

UMEM_INLINE std::uintptr_t CudaAsync::stream() const {
  std::uint64_t before = umem_thread_failures();
  std::uintptr_t stream = umemCudaAsync_stream(c_context());
  detail::check_since(before);
  return stream;
}

} // namespace umem

#pragma pop_macro("Host")

#endif
