/* handle.c - handles for umem_attach, as libFuzzer makes them up: a good one, of which bytes are changed. A handle that
 * passes leads to bytes that are mapped, and can be detached once. Nothing stays open. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <umem.h>

int LLVMFuzzerTestOneInput(unsigned char const *data, size_t size);

static void expect(bool holds) {
  if (!holds) abort();
}

static umemHost host;
static umemShm shm;
static umemHandle good;

static void begin(void) {
  umemShmOptions options = UMEM_SHM_OPTIONS_INIT;
  options.capacity = 1 << 16;
  umemHost_ctor(&host);
  expect(umemShm_ctor_with(&shm, NULL, &options) == umemOK);
  expect(umem_share(&shm, umem_alloc(&shm, 5000), 5000, &good) == umemOK);
}

/* The first byte says with which descriptor; then three bytes are a place, and what is there. */
int LLVMFuzzerTestOneInput(unsigned char const *data, size_t size) {
  if (!good.version) begin();
  umemHandle handle = good;
  int fd = size && data[0] & 1 ? dup(umemShm_descriptor(&shm)) : -1;
  for (size_t i = 1; i + 2 < size; i += 3)
    ((unsigned char *)&handle)[(data[i] | (size_t)data[i + 1] << 8) % sizeof handle] = data[i + 2];
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
