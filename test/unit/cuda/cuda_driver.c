/* cuda_driver.c - how NVIDIA's driver is looked for, and what contexts say without it or without a
 * part of it. The linker sends the calls of the dynamic linker to this file. Each case is a process
 * of its own, because the library is looked for once in each. */
#include <dlfcn.h>

#include "child_help.h"

#include "cuda/cuda_rt.h"

/* ---- a system in place of the real one ---- */

/* That umem needs, and that it uses if the driver has them. */
enum { functions = 81, later_functions = 1, most_functions = 100 };

static struct {
  bool library;           /* is there */
  int version;            /* of its driver */
  int started;            /* what cuInit returns */
  unsigned missing;       /* the number of the function that it lacks; 0: none */
  unsigned opened, found; /* calls */
  bool is_static;         /* the program has no libraries */
  char names[most_functions][48];
} machine;

static char library; /* its address is the handle */

static int get_version(int *version) {
  *version = machine.version;
  return 0;
}
static int init(unsigned flags) { return flags ? 1 : machine.started; }
static int get_text(int error, char const **text) {
  *text = error == umemCudaNoGpu ? "no GPU here" : "another error";
  return 0;
}
static int get_count(int *count) { return *count = 0; }
static int get_current(void **context) {
  *context = NULL;
  return 0;
}
/* Of an address that is its own description: its lowest digit is the type of the memory, the next
 * one whether it is managed, and the rest its device. */
static int get_attributes(unsigned count, int *which, void **values, unsigned long long adr) {
  for (unsigned i = 0; i < count; i++)
    if (which[i] == 9)
      *(int *)values[i] = (int)(adr / 100);
    else
      *(unsigned *)values[i] = (unsigned)(which[i] == 2 ? adr % 10 : adr / 10 % 10);
  return 0;
}
static int refuse(void) { return umemCudaInvalidValue; }

WRAPPED(void *, dlopen, (char const *name, int flags)) {
  (void)flags;
  machine.opened += !strcmp(name, "libcuda.so.1");
  return machine.library ? &library : NULL;
}

WRAPPED(char *, dlerror, (void)) {
  static char text[] = "nobody has libcuda.so.1";
  return text;
}

WRAPPED(void *, dlsym, (void *handle, char const *name)) {
  static struct {
    char const *name;
    void (*function)(void);
  } const known[] = {
      {"cuInit", (void (*)(void))init},
      {"cuDriverGetVersion", (void (*)(void))get_version},
      {"cuGetErrorName", (void (*)(void))get_text},
      {"cuGetErrorString", (void (*)(void))get_text},
      {"cuDeviceGetCount", (void (*)(void))get_count},
      {"cuCtxGetCurrent", (void (*)(void))get_current},
      {"cuPointerGetAttributes", (void (*)(void))get_attributes},
  };
  void (*function)(void) = (void (*)(void))refuse;
  if (handle == RTLD_DEFAULT) return machine.is_static ? NULL : __real_dlsym(handle, name);
  if (handle != &library || machine.found >= most_functions) return NULL;
  snprintf(machine.names[machine.found++], sizeof *machine.names, "%s", name);
  if (machine.found == machine.missing) return NULL;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(name, known[i].name)) function = known[i].function;
  void *adr;
  memcpy(&adr, &function, sizeof adr);
  return adr;
}

/* ---- cases, each in a child ---- */

static struct umemCufileRt const *no_cufile(void) { return NULL; }

/* A GPU cannot be used, for this reason. */
static void require_refusal(char const *words) {
  umemCuda cuda;
  umemCudaHost pinned;
  umemCudaRt_replace(umemCudaDriver_get(no_cufile));
  EXPECT(umemCuda_ctor(&cuda, 0) == umemNotSupportedError);
  EXPECT(strstr(umem_thread_message(), words));
  umem_thread_clear();
  EXPECT(umemCudaHost_ctor(&pinned, 0) == umemNotSupportedError);
  umem_thread_clear();
}

PROCESS_TEST(no_library_is_the_reason) {
  umemCudaEntry entry;
  require_refusal("there is no CUDA driver, nobody has libcuda.so.1: is a GPU there, and NVIDIA's "
                  "driver installed?");
  EXPECT(machine.opened == 1 && machine.found == 0);
  EXPECT(umemCuda_enter(&entry, -1) != umemOK);
  EXPECT(strstr(umem_thread_message(), "nobody has libcuda.so.1"));
}

/* dlopen may crash there. */
PROCESS_TEST(a_static_program_opens_no_library) {
  machine.is_static = machine.library = true;
  require_refusal("there is no CUDA driver, a program linked with -static can open no library");
  EXPECT(machine.opened == 0);
}

/* Every function of the table fails, and none crashes. */
static void call_all(void) {
  umemCudaRt const *rt = umemCudaDriver_get(no_cufile);
  int number = 0;
  size_t size = 0;
  uint64_t wide = 0;
  uintptr_t first = 0;
  umemCudaIpc ipc = {{0}};
  void *adr = NULL;
  umemCudaMemory kind;
  umemCudaCapture capture;
  umemCudaBox box = {.width = 1, .height = 1, .depth = 1};
  int const none = umemCudaInsufficientDriver;
  EXPECT(rt->last_error() == umemCudaSuccess);
  EXPECT(!strcmp(rt->error_name(none), "no driver"));
  EXPECT(rt->driver_version(&number) == none && rt->device_count(&number) == none);
  EXPECT(rt->get_device(&number) == none && number == 0);
  EXPECT(rt->attribute(&number, umemCudaHasPools, 0) == none);
  EXPECT(rt->device_name((char[8]){""}, 8, 0) == none && rt->memory_info(&size, &size) == none);
  EXPECT(rt->can_access_peer(&number, 0, 1) == none && rt->pointer(&box, &kind, &number) == none);
  EXPECT(rt->context_current(&adr) == none && rt->context_push(NULL) == none);
  EXPECT(rt->context_pop(&adr) == none && rt->primary_retain(&adr, 0) == none);
  EXPECT(rt->enable_peer_access(1) == none);
  EXPECT(rt->exchange_capture_mode(&number) == none);
  EXPECT(rt->malloc(&adr, 1) == none && rt->free(NULL) == none);
  EXPECT(rt->malloc_managed(&adr, 1) == none && rt->prefetch(NULL, 1, 0, NULL) == none);
  EXPECT(rt->advise(NULL, 1, umemCudaReadMostly, 0) == none);
  EXPECT(rt->host_alloc(&adr, 1, 0) == none && rt->host_free(NULL) == none);
  EXPECT(rt->host_register(&box, 1, 0) == none && rt->host_unregister(&box) == none);
  EXPECT(rt->pool_create(&adr, 0, 0, false) == none && rt->pool_destroy(NULL) == none);
  EXPECT(rt->pool_set_threshold(NULL, 1) == none && rt->pool_trim(NULL, 1) == none);
  EXPECT(rt->pool_sizes(NULL, &wide, &wide) == none && rt->pool_allow(NULL, 0) == none);
  EXPECT(rt->pool_malloc(&adr, 1, NULL, NULL) == none && rt->pool_free(NULL, NULL) == none);
  EXPECT(rt->page_size(&size, 0) == none && rt->range_reserve(&adr, 1, 1) == none);
  EXPECT(rt->range_free(NULL, 1) == none && rt->page_create(&wide, 1, 0, false) == none);
  EXPECT(rt->page_retain(&wide, NULL) == none && rt->page_release(1) == none);
  EXPECT(rt->page_map(NULL, 1, 1) == none && rt->page_unmap(NULL, 1) == none);
  EXPECT(rt->page_allow(NULL, 1, UINT64_MAX) == none);
  for (int way = umemCudaToDevice; way <= umemCudaAnyDirection; way++) {
    umemCudaDirection direction = (umemCudaDirection)way;
    EXPECT(rt->memcpy(&box, &box, 1, direction) == none);
    EXPECT(rt->memcpy_async(&box, &box, 1, direction, NULL) == none);
    EXPECT(rt->memcpy_box_async(&box, direction, NULL) == none);
  }
  EXPECT(rt->memcpy_peer_async(NULL, 0, NULL, 1, 1, NULL) == none);
  EXPECT(rt->memcpy_box_peer_async(&box, 0, 1, NULL) == none);
  EXPECT(rt->memcpy_batch_async(NULL, NULL, NULL, 1, NULL) == umemCudaNotSupported);
  EXPECT(rt->memset_async(NULL, 0, 1, NULL) == none);
  EXPECT(rt->stream_create(&adr) == none && rt->stream_destroy(NULL) == none);
  EXPECT(rt->stream_device(NULL, &number) == none && rt->stream_synchronize(NULL) == none);
  EXPECT(rt->stream_wait(NULL, NULL) == none);
  EXPECT(rt->stream_capture(NULL, &capture, &wide) == none && capture == umemCudaNoCapture);
  EXPECT(rt->event_create(&adr) == none && rt->event_destroy(NULL) == none);
  EXPECT(rt->event_record(NULL, NULL) == none && rt->event_synchronize(NULL) == none);
  EXPECT(rt->event_query(NULL) == none);
  EXPECT(rt->uuid(&wide, 0) == none && rt->bus_id((char[8]){""}, 8, 0) == none);
  EXPECT(rt->range(NULL, &first, &size) == none && rt->ipc_memory(&ipc, NULL) == none);
  EXPECT(rt->ipc_open(&adr, &ipc) == none && rt->ipc_close(NULL) == none);
  EXPECT(rt->ipc_event_create(&adr) == none && rt->ipc_event(&ipc, NULL) == none);
  EXPECT(rt->ipc_event_open(&adr, &ipc) == none && rt->pool_export(&number, NULL) == none);
  EXPECT(rt->pool_import(&adr, 0) == none && rt->pool_export_pointer(&ipc, NULL) == none);
  EXPECT(rt->pool_import_pointer(&adr, NULL, &ipc) == none);
  EXPECT(rt->cufile() == NULL);
}
TEST_CASE(without_library_all_calls_fail) { in_a_process(call_all); }

static void without_a_function(void) {
  require_refusal("libcuda.so.1 is too old: it lacks cu");
  EXPECT(machine.found == machine.missing); /* it looks for no more */
  EXPECT(strstr(umemCudaDriver_get(no_cufile)->absence(), machine.names[machine.found - 1]));
  call_all(); /* none of those that were found is called */
}
TEST_CASE(a_missing_function_is_named) {
  machine.library = true;
  for (machine.missing = 1; machine.missing <= functions; machine.missing++)
    in_a_process(without_a_function);
  machine.library = false;
  machine.missing = 0;
}

static void *get_table(void *unused UNUSED) {
  return (void *)(uintptr_t)umemCudaDriver_get(no_cufile);
}
PROCESS_TEST(threads_look_once) {
  pthread_t looking[8];
  machine.library = true;
  for (size_t i = 0; i < 8; i++) looking[i] = start_thread(get_table, NULL);
  for (size_t i = 0; i < 8; i++) EXPECT(join_thread(looking[i]) == get_table(NULL));
  EXPECT(machine.opened == 1 && machine.found == functions + later_functions);
  EXPECT(!umemCudaDriver_get(no_cufile)->absence());
  for (unsigned i = 0; i < machine.found; i++)
    for (unsigned j = 0; j < i; j++) EXPECT(strcmp(machine.names[i], machine.names[j]) != 0);
}

PROCESS_TEST(an_old_driver_is_the_reason) {
  machine.library = true;
  machine.version = 11080;
  require_refusal("the driver serves CUDA 11.8, too old for the runtime 12.0 of umem");
}
PROCESS_TEST(a_machine_without_a_gpu_is_the_reason) {
  machine.library = true;
  machine.version = 13000;
  require_refusal("there is no GPU");
}
PROCESS_TEST(what_the_driver_says_is_the_reason) {
  machine.library = true;
  machine.version = 13000;
  machine.started = umemCudaNoGpu;
  require_refusal("no GPU here");
}

static void require_memory(uintptr_t adr, umemCudaMemory kind, int device) {
  umemCudaMemory found = umemCudaUnregistered;
  int number = -1;
  EXPECT(!umemCudaDriver_get(no_cufile)->pointer((void *)adr, &found, &number));
  EXPECT(found == kind && number == device);
}
PROCESS_TEST(memory_is_what_the_driver_says) {
  machine.library = true;
  require_memory(300, umemCudaUnregistered, 3);
  require_memory(201, umemCudaPinned, 2);
  require_memory(102, umemCudaDeviceMemory, 1);
  require_memory(412, umemCudaManagedMemory, 4);
  require_memory(511, umemCudaManagedMemory, 5); /* on the host now */
}
