/* cuda_cufile.c - fills the table of cuda_cufile.h from libcufile.so.0.
 *
 * Without the module nvidia-fs there is nothing to use, so that the library is not even opened: it
 * takes milliseconds to load, and its driver writes a log file into the current folder where the
 * module is missing. */
#include "cuda/cuda_cufile.h"
#include "cuda/cuda_rt.h"

#if defined(UMEM_WITH_CUDA) || defined(UMEM_CUDA_DRIVER)

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) == 8, "files have 64-bit offsets");
_Static_assert(sizeof(umemCufileError) == 8, "two enumerations");
_Static_assert(sizeof(umemCufileFile) == 24, "type, handle, operations");
_Static_assert(offsetof(umemCufileFile, handle) == 8, "the union holds a pointer");
_Static_assert(offsetof(umemCufileFile, operations) == 16, "follows the union");
_Static_assert(offsetof(umemCufileProperties, poll_most) == 8, "follows the version");
_Static_assert(offsetof(umemCufileProperties, file_systems) == 24, "follows two sizes");
_Static_assert(offsetof(umemCufileProperties, features) == 32, "the nested struct ends before");
_Static_assert(offsetof(umemCufileProperties, room) == 56, "follows six numbers");

static struct {
  pthread_once_t once;
  umemCufileRt table;
  bool found;
} library = {.once = PTHREAD_ONCE_INIT};

static bool is_loaded(void) { return access("/proc/driver/nvidia-fs", F_OK) == 0; }

/* memcpy: ISO C converts no pointer to an object into one to a function. */
static bool find_one(void *handle, char const *name, void *function) {
  void *found = dlsym(handle, name);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

/* Later versions of the library rename the function, so that a program keeps the meaning that it
 * was compiled for. */
static bool find_close(void *handle, umemCufileRt *table) {
  return find_one(handle, "cuFileDriverClose_v2", &table->driver_close) ||
         find_one(handle, "cuFileDriverClose", &table->driver_close);
}

static bool find_all(void *handle, umemCufileRt *table) {
  return find_one(handle, "cuFileDriverOpen", &table->driver_open) && find_close(handle, table) &&
         find_one(handle, "cuFileUseCount", &table->use_count) &&
         find_one(handle, "cuFileDriverGetProperties", &table->driver_properties) &&
         find_one(handle, "cuFileHandleRegister", &table->handle_register) &&
         find_one(handle, "cuFileHandleDeregister", &table->handle_deregister) &&
         find_one(handle, "cuFileRead", &table->read) &&
         find_one(handle, "cuFileWrite", &table->write);
}

/* The library stays loaded: it may have threads. */
static void find_library(void) {
  if (!is_loaded()) return;
  void *handle = dlopen("libcufile.so.0", RTLD_LAZY | RTLD_LOCAL);
  if (!handle) handle = dlopen("libcufile.so", RTLD_LAZY | RTLD_LOCAL);
  library.found = handle && find_all(handle, &library.table);
}

umemCufileRt const *umemCufileRt_get(void) {
  pthread_once(&library.once, find_library);
  return library.found ? &library.table : NULL;
}

#endif
