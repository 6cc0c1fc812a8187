/* umem/context.hpp - handles of contexts: objects that stand for a storage.
 *
 *     umem::File file("array.bin", "w+");      // the only line that names the storage
 *     umem::Buffer buffer(file, 800);
 *
 * Context is the handle of any context, see any_context.hpp; Host, File, Cuda, ... are Contexts that construct one of
 * their kind, and throw what its constructor in C fails with. */
#ifndef UMEM_CONTEXT_HPP
#define UMEM_CONTEXT_HPP

#include <umem/any_context.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/* Programs for GPUs define Host as __host__. Such a program includes these headers, but cannot
 * write umem::Host below its definition. */
#pragma push_macro("Host")
#undef Host

namespace umem {

/* RAM of this process. All Hosts are one memory. */
class Host : public Context {
public:
  Host();

  /* RAM on chosen nodes of the machine, or on pages of a chosen size: umemHost_ctor_with. */
  explicit Host(umemHostOptions const &options);

  /* A handle of the outermost Host in the stack of context; umem::type_error where there is none. */
  static Host of(Context const &context);

  /* On which node the page at adr is; -1 as long as nothing has touched it: umemHost_node. */
  int node(address adr) const;

private:
  explicit Host(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}
};

namespace detail {

/* A path for C, which would cut it at its first zero byte. */
char const *c_path(std::string const &path);

} // namespace detail

/* A file, whose addresses are byte offsets. The modes are those of umemFile_ctor. */
class File : public Context {
public:
  File(std::string const &path, char const *mode,
       umemFileOptions const &options = UMEM_FILE_OPTIONS_INIT);

  /* A handle of the outermost File in the stack of context; umem::type_error where there is none. */
  static File of(Context const &context);

  /* A nameless file that vanishes at the end. */
  static File scratch();

  /* Takes over an open descriptor: umemFile_adopt. If this throws, the caller keeps fd. */
  static File adopt(int fd, umemFileOptions const &options = UMEM_FILE_OPTIONS_INIT);

  /* A new file. commit() replaces the one at path by it in one step: umemFile_replace_with. Without a
   * commit the new file is removed, and the old one stays as it is. */
  static File replace(std::string const &path,
                      umemFileOptions const &options = UMEM_FILE_OPTIONS_INIT);

  /* The path that the file of replace() has until commit(), for other processes that write to it: umemFile_draft. */
  std::string draft() const;

  /* Makes a file of replace() durable and gives it its name: umemFile_commit. */
  void commit() const;

private:
  explicit File(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}
};

/* A file mapped into memory, whose addresses are pointers. */
class MMap : public Context {
public:
  MMap(std::string const &path, char const *mode,
       umemFileOptions const &options = UMEM_FILE_OPTIONS_INIT);

  /* A handle of the outermost MMap in the stack of context; umem::type_error where there is none. */
  static MMap of(Context const &context);

  /* A nameless file that vanishes at the end. */
  static MMap scratch();

  /* Takes over an open descriptor: umemMMap_adopt. If this throws, the caller keeps fd. */
  static MMap adopt(int fd, umemFileOptions const &options = UMEM_FILE_OPTIONS_INIT);

  /* The offset in the file of the byte at adr; umem::index_error outside of the mapping. */
  address offset(address adr) const;

  /* The address of the byte at an offset in the file; umem::index_error past its end. */
  address at_offset(address file_offset) const;

private:
  explicit MMap(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}

  umemMMap *c_mmap() const noexcept { return reinterpret_cast<umemMMap *>(c_context()); }
};

/* Memory that several processes of one machine share; addresses are pointers. */
class Shm : public Context {
public:
  /* A new segment without a name, with room for so many bytes of blocks. */
  explicit Shm(std::size_t capacity);

  /* The segment of this name: opens it, or creates it if there is none. capacity 0: only opens it. */
  explicit Shm(std::string const &name, std::size_t capacity = 0);

  /* The same with options; an empty name means none. */
  Shm(std::string const &name, umemShmOptions const &options);

  /* A handle of the outermost Shm in the stack of context; umem::type_error where there is none. */
  static Shm of(Context const &context);

  /* Takes over the descriptor of a segment, also if it throws: umemShm_adopt. */
  static Shm adopt(int fd);

  /* Takes over a descriptor with options, whose trust says whose segment it may be: umemShm_adopt_with. */
  static Shm adopt(int fd, umemShmOptions const &options);

  /* Removes a name. Processes that have the segment keep it. */
  static void remove(std::string const &name);

  /* The descriptor of the segment, which this context keeps. */
  int descriptor() const noexcept { return umemShm_descriptor(c_shm()); }

  /* The offset of the byte at adr, which is the same in all processes; umem::index_error outside of the segment. */
  address offset(address adr) const;

  /* The address of the byte at an offset. */
  address at_offset(address segment_offset) const;

  /* All live blocks, in no order: umemShm_blocks. */
  std::vector<umemShmBlock> blocks() const;

  /* Frees the blocks of a process that has ended, 0: of all; returns how many: umemShm_reclaim. */
  std::size_t reclaim(int pid = 0) const;

  /* Makes the block at adr one of this process. */
  void own(address adr) const;

  /* Says that the block that holds the byte at adr is written: umemShm_complete. */
  void complete(address adr) const;

  /* Whether the block that holds the byte at adr is complete: umemShm_is_complete. */
  bool is_complete(address adr) const;

private:
  explicit Shm(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}

  umemShm *c_shm() const noexcept { return reinterpret_cast<umemShm *>(c_context()); }
};

/* Memory of one GPU; calls finish before they return. */
class Cuda : public Context {
public:
  explicit Cuda(int device = 0);

  /* A handle of the outermost Cuda in the stack of context; umem::type_error where there is none. */
  static Cuda of(Context const &context);

private:
  explicit Cuda(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}
};

/* Pinned host memory; flags: 0 or UMEM_WRITE_COMBINED. */
class CudaHost : public Context {
public:
  explicit CudaHost(unsigned flags = 0);

  /* A handle of the outermost CudaHost in the stack of context; umem::type_error where there is none. */
  static CudaHost of(Context const &context);

private:
  explicit CudaHost(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}
};

/* Managed memory; flags: as of umemCudaManaged_ctor, hints and UMEM_OVERSUBSCRIBE. */
class CudaManaged : public Context {
public:
  explicit CudaManaged(int device = 0, unsigned flags = 0);

  /* A handle of the outermost CudaManaged in the stack of context; umem::type_error where there is none. */
  static CudaManaged of(Context const &context);

private:
  explicit CudaManaged(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}
};

/* Memory of one GPU in the order of a stream: see umemCudaAsync_ctor. */
class CudaAsync : public Context {
public:
  explicit CudaAsync(int device = 0, std::uintptr_t stream = UMEM_STREAM_NEW,
                     umemCudaAsyncOptions const *options = nullptr);

  /* A handle of the outermost CudaAsync in the stack of context; umem::type_error where there is none. */
  static CudaAsync of(Context const &context);

  /* The cudaStream_t. */
  std::uintptr_t stream() const;

private:
  explicit CudaAsync(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}
};

} // namespace umem

#if !defined(UMEM_COMPILED)
#include <umem/detail/context_functions.hpp>
#endif

#pragma pop_macro("Host")

#endif
