/* refusals.c - constructions that fail, and what umem says of them. */
#include "backends.h"

#define REFUSALS(ROW)                                                                              \
  ROW(host_of_small_options, "host, small options", umemValueError, 0, "too small",                \
      umemHost_ctor_with(ctx, &(umemHostOptions){.size = 1}))                                      \
  ROW(host_of_odd_policy, "host, odd policy", umemValueError, 0, "policy 9",                       \
      umemHost_ctor_with(ctx, &(umemHostOptions){sizeof(umemHostOptions), 9, 0, 0}))               \
  ROW(host_of_two_preferred, "host, two preferred nodes", umemValueError, 0, "only one node",      \
      umemHost_ctor_with(ctx, &(umemHostOptions){sizeof(umemHostOptions), umemHostPrefer, 0, 3}))  \
  ROW(host_of_touched_nodes, "host, nodes of the first touch", umemValueError, 0,                  \
      "leave nodes out",                                                                           \
      umemHost_ctor_with(ctx,                                                                      \
                         &(umemHostOptions){sizeof(umemHostOptions), umemHostFirstTouch, 0, 1}))   \
  ROW(file_of_bad_mode, "file, bad mode", umemValueError, UINTPTR_MAX, "bad mode \"q\"",           \
      umemFile_ctor(ctx, "x", "q"))                                                                \
  ROW(file_of_no_mode, "file, no mode", umemValueError, UINTPTR_MAX, "bad mode",                   \
      umemFile_ctor(ctx, "x", NULL))                                                               \
  ROW(file_of_no_name, "file, no name", umemValueError, UINTPTR_MAX, "name is empty",              \
      umemFile_ctor(ctx, "", "w+"))                                                                \
  ROW(file_that_is_missing, "file, missing", umemIOError, UINTPTR_MAX,                             \
      "umemFile_ctor: cannot open \"/nonexistent/file\": No such file or directory",               \
      umemFile_ctor(ctx, "/nonexistent/file", "r"))                                                \
  ROW(file_of_bad_descriptor, "file, bad descriptor", umemIOError, UINTPTR_MAX,                    \
      "Bad file descriptor", umemFile_adopt(ctx, -1))                                              \
  ROW(mmap_of_bad_mode, "mmap, bad mode", umemValueError, 0, "bad mode \"q\"",                     \
      umemMMap_ctor(ctx, "x", "q"))                                                                \
  ROW(mmap_that_is_missing, "mmap, missing", umemIOError, 0, "No such file or directory",          \
      umemMMap_ctor(ctx, "/nonexistent/file", "r"))                                                \
  ROW(mmap_of_bad_descriptor, "mmap, bad descriptor", umemIOError, 0, "Bad file descriptor",       \
      umemMMap_adopt(ctx, -1))                                                                     \
  ROW(shm_of_nothing, "shm, no size", umemValueError, 0, "cannot have 0 bytes",                    \
      umemShm_ctor(ctx, NULL, 0))                                                                  \
  ROW(shm_of_bad_name, "shm, bad name", umemValueError, 0, "\"a/b\" is no name",                   \
      umemShm_ctor(ctx, "a/b", 1))                                                                 \
  ROW(shm_that_is_missing, "shm, missing", umemIOError, 0, "No such file or directory",            \
      umemShm_ctor(ctx, "umem-test-no-such-segment", 0))                                           \
  ROW(shm_of_bad_descriptor, "shm, bad descriptor", umemIOError, 0, "Bad file descriptor",         \
      umemShm_adopt(ctx, -1))                                                                      \
  ROW(shm_of_small_options, "shm, small options", umemValueError, 0, "too small",                  \
      umemShm_ctor_with(ctx, NULL, &(umemShmOptions){.size = 1}))                                  \
  ROW(cuda_that_is_missing, "cuda, missing", umemValueError, 0, "there is no GPU 99",              \
      umemCuda_ctor(ctx, 99))                                                                      \
  ROW(cuda_of_no_number, "cuda, no number", umemValueError, 0, "there is no GPU -1",               \
      umemCuda_ctor(ctx, -1))                                                                      \
  ROW(cuda_host_of_odd_flags, "cuda-host, odd flags", umemValueError, 0, "flags 0x80000000",       \
      umemCudaHost_ctor(ctx, 1u << 31))                                                            \
  ROW(cuda_managed_that_is_missing, "cuda-managed, missing", umemValueError, 0, "no GPU 99",       \
      umemCudaManaged_ctor(ctx, 99, 0))                                                            \
  ROW(cuda_managed_of_odd_flags, "cuda-managed, odd flags", umemValueError, 0, "flags 0x80000000", \
      umemCudaManaged_ctor(ctx, 0, 1u << 31))                                                      \
  ROW(cuda_async_that_is_missing, "cuda-async, missing", umemValueError, 0, "no GPU 99",           \
      umemCudaAsync_ctor(ctx, 99, UMEM_STREAM_NEW))                                                \
  ROW(cuda_async_of_each_thread, "cuda-async, the thread's stream", umemNotSupportedError, 0,      \
      "cudaStreamPerThread", umemCudaAsync_ctor(ctx, 0, 2))                                        \
  ROW(limit_of_nothing, "limit, no upstream", umemValueError, 0, "the upstream is NULL",           \
      umemLimit_ctor(ctx, NULL, 1))                                                                \
  ROW(limit_of_zeros, "limit, zeros", umemValueError, 0, "the context is not constructed",         \
      umemLimit_ctor(ctx, &(umemHost){.super = {.vptr = NULL}}, 1))                                \
  ROW(cuda_async_of_small_options, "cuda-async, small options", umemValueError, 0, "too small",    \
      umemCudaAsync_ctor_with(ctx, 0, 0, &(umemCudaAsyncOptions){1, 0, 0, 0, 0}))                  \
  ROW(external_of_nothing, "external, no upstream", umemValueError, 0, "the upstream is NULL",     \
      umemExternal_ctor(ctx, NULL, NULL))                                                          \
  ROW(external_of_no_functions, "external, zeros", umemValueError, 0,                              \
      "the context is not constructed",                                                            \
      umemExternal_ctor(ctx, &(umemHost){.super = {.vptr = NULL}},                                 \
                        &(umemExternalOptions)UMEM_EXTERNAL_OPTIONS_INIT))                         \
  ROW(pool_of_nothing, "pool, no upstream", umemValueError, 0, "the upstream is NULL",             \
      umemPool_ctor(ctx, NULL, NULL))                                                              \
  ROW(pool_on_of_nothing, "pool-on, zeros", umemValueError, 0, "the context is not constructed",   \
      umemPoolOn_ctor(ctx, NULL, &(umemHost){.super = {.vptr = NULL}}))                            \
  ROW(fixed_of_nothing, "fixed, no upstream", umemValueError, 0, "the upstream is NULL",           \
      umemFixed_ctor(ctx, NULL, 100, NULL))                                                        \
  ROW(binning_of_nothing, "binning, no upstream", umemValueError, 0, "the upstream is NULL",       \
      umemBinning_ctor(ctx, NULL, NULL, 0))

#define REFUSAL(function, name, status, null, words, call)                                         \
  static umemStatusType function(void *ctx) { return call; }
#define REFUSAL_ROW(function, name, status, null, words, call)                                     \
  {name, function, status, null, words},

REFUSALS(REFUSAL)

BackendRefusal const backend_refusals[] = {REFUSALS(REFUSAL_ROW)};

size_t const backend_refusal_count = sizeof backend_refusals / sizeof *backend_refusals;
