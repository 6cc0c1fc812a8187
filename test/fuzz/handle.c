/* handle.c - handles for umem_attach, as libFuzzer makes them up: a good one, of which bytes are
 * changed. A handle that passes leads to bytes that are mapped, and can be detached once. Nothing
 * stays open.
 *
 * Handles of segments go to a Host, those of a GPU's memory to a Cuda on a double of the runtime.
 * The sharing process is this one, whose handles the double opens, if they look as those of another
 * one. */
#include "fuzz.h"

#include <fcntl.h>

#include "fake/cudart.h"

static umemHost host;
static umemShm shm;
static umemHandle good, good_block, good_pool;
static umemCuda cuda;
static umemCudaAsync async;
static int pool_fd;

static void begin(void) {
  umemShmOptions options = {.size = sizeof options, .capacity = 1 << 16};
  umemHost_ctor(&host);
  expect(umemShm_ctor_with(&shm, NULL, &options) == umemOK);
  expect(umem_share(&shm, umem_alloc(&shm, 5000), 5000, &good) == umemOK);
  umemCudaAsyncOptions share = UMEM_CUDA_ASYNC_OPTIONS_INIT;
  share.share = 1;
  fake_cudart_machine()->shares_with_itself = true;
  umemCudaRt_replace(fake_cudart());
  expect(umemCuda_ctor(&cuda, 0) == umemOK);
  expect(umemCudaAsync_ctor_with(&async, 0, UMEM_STREAM_NEW, &share) == umemOK);
  expect(umem_share(&cuda, umem_alloc(&cuda, 5000), 5000, &good_block) == umemOK);
  uintptr_t adr = umem_alloc(&async, 5000);
  expect(umem_share_with(&async, adr, 5000, &good_pool, &pool_fd) == umemOK);
  good_block.identity[0] ^= 1;
  good_pool.identity[0] ^= 1;
}

static umemHandle changed(umemHandle handle, unsigned char const *data, size_t size) {
  for (size_t i = 1; i + 2 < size; i += 3)
    ((unsigned char *)&handle)[(data[i] | (size_t)data[i + 1] << 8) % sizeof handle] = data[i + 2];
  return handle;
}

/* The last byte of what is attached is there, for the GPU. */
static void attach_on_gpu(umemHandle const *handle, int fd) {
  char last;
  uintptr_t adr = umem_attach_with(handle, fd, &cuda);
  if (adr) {
    expect(handle->length > 0 && handle->offset + handle->length <= handle->size);
    expect(umem_copy_to(&cuda, adr + (uintptr_t)handle->length - 1, &host, (uintptr_t)&last, 1) ==
           umemOK);
    expect(umem_detach(&cuda, adr) == umemOK);
  } else {
    expect(umem_thread_status() != umemOK);
  }
  expect(!fake_cudart_misuse());
  umem_thread_clear();
  umem_clear_status(&cuda);
}

/* The first byte says with which descriptor; then three bytes are a place, and what is there. */
int LLVMFuzzerTestOneInput(unsigned char const *data, size_t size) {
  if (!good.version) begin();
  if (size && data[0] & 6) {
    umemHandle block = changed(data[0] & 2 ? good_block : good_pool, data, size);
    int descriptor = data[0] & 1 ? dup(pool_fd) : -1;
    attach_on_gpu(&block, descriptor);
    if (descriptor >= 0) expect(fcntl(descriptor, F_GETFD) < 0);
    return 0;
  }
  umemHandle handle = changed(good, data, size);
  int fd = size && data[0] & 1 ? dup(umemShm_descriptor(&shm)) : -1;
  uintptr_t adr = umem_attach_with(&handle, fd, &host);
  if (adr) {
    expect(handle.length > 0 && handle.offset + handle.length <= handle.size);
    volatile char last = *(char *)(adr + (uintptr_t)handle.length - 1) + *(char *)adr;
    (void)last;
    expect(umem_detach(&host, adr) == umemOK);
  } else {
    expect(umem_thread_status() != umemOK);
  }
  if (fd >= 0) expect(fcntl(fd, F_GETFD) < 0);
  umem_thread_clear();
  umem_clear_status(&host);
  return 0;
}
