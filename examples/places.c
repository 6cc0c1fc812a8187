/* places.c - the constructors of every place, and nothing else. */
#include "places.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "helper.h"

static umemStatusType open_ram(Storage *storage, char const *prefix) {
  (void)prefix;
  return umemHost_ctor(&storage->host);
}

static umemStatusType open_scratch_file(Storage *storage, char const *prefix) {
  (void)prefix;
  return umemFile_ctor(&storage->file, NULL, "w+");
}

/* There is no file for the context: constructs one in RAM and records the failure on it. */
static umemStatusType no_file(Storage *storage, char const *prefix) {
  char message[UMEM_MESSAGE_SIZE];
  snprintf(message, sizeof message, "cannot create a file in \"%s\": %s", prefix, strerror(errno));
  umemHost_ctor(&storage->host);
  return umem_set_status(storage, umemIOError, message);
}

/* The system removes a file without a name when it is closed. So the program removes the name at
 * once: then no file is left, however the program ends. */
static umemStatusType without_name(umemStatusType status, char const *name) {
  helper_remove(name);
  return status;
}

static umemStatusType open_named_file(Storage *storage, char const *prefix) {
  char const *name = helper_create(prefix);
  if (!name) return no_file(storage, prefix);
  return without_name(umemFile_ctor(&storage->file, name, "w+"), name);
}

static umemStatusType open_mapped_file(Storage *storage, char const *prefix) {
  char const *name = helper_create(prefix);
  if (!name) return no_file(storage, prefix);
  return without_name(umemMMap_ctor(&storage->mmap, name, "w+"), name);
}

static umemStatusType open_tmpfs_file(Storage *storage, char const *prefix) {
  (void)prefix;
  return open_named_file(storage, "/dev/shm/");
}

static umemStatusType open_gpu(Storage *storage, char const *prefix) {
  (void)prefix;
  return umemCuda_ctor(&storage->cuda, 0);
}

static umemStatusType open_gpu_stream(Storage *storage, char const *prefix) {
  (void)prefix;
  return umemCudaAsync_ctor(&storage->cuda_async, 0, UMEM_STREAM_NEW);
}

static umemStatusType open_managed_ram(Storage *storage, char const *prefix) {
  (void)prefix;
  return umemCudaManaged_ctor(&storage->cuda_managed, 0, 0);
}

static umemStatusType open_pinned_ram(Storage *storage, char const *prefix) {
  (void)prefix;
  return umemCudaHost_ctor(&storage->cuda_host, 0);
}

Place const places[] = {
    {"RAM", false, open_ram},
    {"scratch file", false, open_scratch_file},
    {"named file", false, open_named_file},
    {"mapped file", false, open_mapped_file},
    {"tmpfs file", true, open_tmpfs_file},
    {"GPU", true, open_gpu},
    {"GPU stream", true, open_gpu_stream},
    {"managed RAM", true, open_managed_ram},
    {"pinned RAM", true, open_pinned_ram},
};

size_t const place_count = sizeof places / sizeof *places;
