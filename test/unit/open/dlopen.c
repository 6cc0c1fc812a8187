/* dlopen.c - a program may open the library at run time, as Python does, use it, and close it. */

#include <dlfcn.h>
#include <semaphore.h>
#include <sys/resource.h>

#include "unit/tasks.h"
#include "unit/used_bytes.h"
#include "temporary.h"
#include "workers.h"

/* dlsym returns data pointers, which ISO C does not convert to functions. */
static void find(void *library, char const *name, void *slot) {
  void *symbol = dlsym(library, name);
  if (!symbol) fail_msg("%s", dlerror());
  memcpy(slot, &symbol, sizeof symbol);
}

/* Functions of the library that is open. */
static struct {
  umemStatusType (*open_file)(umemFile *, char const *, char const *);
  umemStatusType (*open_host)(umemHost *);
  umemStatusType (*open_pool)(umemPool *, void *, umemPoolOptions const *);
  void *(*get_default)(void);
  uintptr_t (*alloc)(void *, size_t);
  void (*free)(void *, uintptr_t);
  umemStatusType (*copy_to)(void *, uintptr_t, void *, uintptr_t, size_t);
  char const *(*message)(void const *);
  void (*end)(void *);
  umemStatusType (*set_threads)(unsigned);
  umemStatusType (*run_blocks)(umemBlocksOptions const *, umemBlockBody *, void *, int *);
} umem;

static void *open_library(void) {
  void *library = dlopen(UMEM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  find(library, "umemFile_ctor", &umem.open_file);
  find(library, "umemHost_ctor", &umem.open_host);
  find(library, "umemPool_ctor", &umem.open_pool);
  find(library, "umem_default", &umem.get_default);
  find(library, "umem_alloc", &umem.alloc);
  find(library, "umem_free", &umem.free);
  find(library, "umem_copy_to", &umem.copy_to);
  find(library, "umem_get_message", &umem.message);
  find(library, "umem_dtor", &umem.end);
  find(library, "umem_set_threads", &umem.set_threads);
  find(library, "umemBlocks_run", &umem.run_blocks);
  return library;
}

static void use(void) {
  static umemFile one, other;
  size_t const nbytes = 16 << 20;                /* several threads share the copy */
  assert_int_equal(umem.set_threads(4), umemOK); /* however few processors there are */
  assert_int_equal(umem.open_file(&one, NULL, "w+"), umemOK);
  assert_int_equal(umem.open_file(&other, NULL, "w+"), umemOK);
  uintptr_t from = umem.alloc(&one, nbytes), to = umem.alloc(&other, nbytes);
  assert_int_equal(umem.copy_to(&one, from, &other, to, nbytes), umemOK);
  assert_int_equal(umem.copy_to(&one, from, &other, to + 1, nbytes), umemIndexError);
  assert_non_null(strstr(umem.message(&other), "umem_copy_to: "));
  umem.end(&one);
  umem.end(&other);
}

/* Each copy leaves threads asleep, or on their way to it, which must be gone with the library. */
TEST_CASE(opens_and_closes) {
  for (int i = 0; i < 20; i++) {
    void *library = open_library();
    use();
    assert_int_equal(dlclose(library), 0);
    assert_null(dlopen(UMEM_LIBRARY, RTLD_NOW | RTLD_NOLOAD));
    assert_true(task_count_becomes(tasks_alone()));
  }
}

/* ---- threads that live on ---- */

enum { pools = 3 };

static bool over; /* for the thread */
static union {
  umemVirtual super;
  umemHost host;
  umemPool pool;
} stack[1 + pools];
static sem_t go, gone;

static void use_pools(void) {
  for (int i = 1; i <= pools; i++)
    for (size_t nbytes = 8; nbytes < 5000; nbytes *= 2)
      umem.free(&stack[i], umem.alloc(&stack[i], nbytes));
}

static void *use_when_signalled(void *unused) {
  for (;;) {
    sem_wait(&go);
    if (over) return unused;
    use_pools();
    sem_post(&gone);
  }
}

static void load_and_unload(void) {
  void *library = open_library();
  assert_int_equal(umem.open_host(&stack[0].host), umemOK);
  for (int i = 1; i <= pools; i++)
    assert_int_equal(umem.open_pool(&stack[i].pool, &stack[0], NULL), umemOK);
  sem_post(&go);
  use_pools();
  sem_wait(&gone);
  for (int i = pools; i >= 0; i--) umem.end(&stack[i]);
  assert_int_equal(dlclose(library), 0);
}

/* The thread has caches of pools, some 48 KiB, which it would free at its end. libc keeps some
 * small blocks of its own, more when other threads allocate at the same time. */
TEST_CASE(closing_leaves_nothing_of_threads) {
  enum { first = 5, loads = 50, most_of_libc = 1024 };
  size_t before = 0;
  assert_int_equal(sem_init(&go, 0, 0), 0);
  assert_int_equal(sem_init(&gone, 0, 0), 0);
  pthread_t thread = start_thread(use_when_signalled, NULL);
  for (int i = 0; i < first + loads; i++) {
    if (i == first) before = used_bytes();
    load_and_unload();
  }
  size_t after = used_bytes();
  over = true;
  sem_post(&go);
  join_thread(thread);
  if (after > before + loads * most_of_libc) fail_msg("%zu bytes a load", (after - before) / loads);
}

/* ---- little memory ---- */

enum { copied = 16 << 20, most_helpers = 3, tries = 24, step = 16 << 10 };
enum { block_size = 1 << 20 /* shorter ones are not left to threads */ };

static unsigned char *source, *target;

/* Bytes of addresses that the process has. */
static size_t addresses(void) {
  size_t pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%zu", &pages) != 1) _exit(2);
  fclose(file);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Leaves malloc nothing free but what the system gives. */
static void empty_malloc(void) {
#ifdef __GLIBC__
  mallopt(M_TOP_PAD, 0);
#endif
  for (size_t size = 64 << 10; size >= 512; size /= 2)
    for (int i = 0; i < 64; i++)
      if (!malloc(size)) _exit(3); /* cppcheck-suppress leakReturnValNotUsed */
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

static int go_on(void *data UNUSED, umemBlock const *block UNUSED) { return 0; }

/* Blocks have two threads, and little memory. */
static void pass_blocks(umemHost *host) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  int code = 0;
  options.source = (umemRows){host, (uintptr_t)source, block_size, 0};
  options.destination = (umemRows){host, (uintptr_t)target, block_size, 0};
  options.count = copied / block_size;
  options.place = host;
  options.rows = 1;
  options.depth = 2;
  alarm(60); /* whoever waits for a thread that has left */
  umemStatusType status = umem.run_blocks(&options, go_on, NULL, &code);
  if (status == umemMemoryError) _exit(0);
  if (status || code) _exit(8);
  _exit(memcmp(source, target, copied) ? 9 : 0);
}

/* In a process of its own, with addresses for the stacks of so many threads, and for a bit more. */
static void copy_with(size_t more, bool in_blocks) {
  umemHost host;
  if (umem.open_host(&host) || umem.set_threads(1 + most_helpers)) _exit(4);
  umem.copy_to(&host, (uintptr_t)source, &host, (uintptr_t)target,
               1); /* this thread has its data */
  empty_malloc();
  size_t bytes = addresses() + more + (in_blocks ? 2 * block_size : 0);
  struct rlimit limit = {bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit)) _exit(5);
  if (in_blocks) pass_blocks(&host);
  if (umem.copy_to(&host, (uintptr_t)source, &host, (uintptr_t)target, copied)) _exit(6);
  _exit(memcmp(source, target, copied) ? 7 : 0);
}

/* glibc ends a process that has no memory for the thread variables of a library in a new thread. */
TEST_CASE(threads_without_memory_are_done_without) {
  if (UNDER_SANITIZER) skip(); /* they need addresses */
  pthread_attr_t usual;
  size_t stack_size = 0;
  assert_int_equal(pthread_getattr_default_np(&usual), 0);
  assert_int_equal(pthread_attr_getstacksize(&usual, &stack_size), 0);
  pthread_attr_destroy(&usual);
  void *library = open_library();
  source = malloc(copied);
  target = malloc(copied);
  assert_true(source && target);
  for (size_t i = 0; i < copied; i++) source[i] = (unsigned char)(i * 31 >> 7);
  for (size_t i = 0; i < 2 * most_helpers * tries; i++) {
    size_t more = (1 + i / 2 / tries) * (stack_size + 4096) + i / 2 % tries * step;
    pid_t child = fork();
    if (!child) copy_with(more, i % 2);
    int status = child_wait(child);
    if (status) fail_msg("%zu bytes more: status %d", more, status);
  }
  free(source);
  free(target);
  assert_int_equal(dlclose(library), 0);
}

/* ---- defaults ---- */

static char path[256];

static uint64_t word_of_log(off_t at) {
  uint64_t word = 0;
  SCOPED(close_fd) int fd = open(path, O_RDONLY);
  if (fd < 0 || pread(fd, &word, sizeof word, at) != sizeof word) _exit(2);
  return word;
}

/* In a process of its own: what a default has stays until that ends, and no address of it is
 * left. */
static void use_default(void) {
  for (int i = 0; i < 2; i++) {
    void *library = open_library(), *ctx = umem.get_default();
    if (!ctx || !umem.alloc(ctx, 10)) _exit(4);
    if (i && !umem.alloc(ctx, 10)) _exit(5);
    if (word_of_log(48)) _exit(6); /* when it ended: doc/contexts/log-format.rst */
    if (dlclose(library) || dlopen(UMEM_LIBRARY, RTLD_NOW | RTLD_NOLOAD)) _exit(7);
    if (!word_of_log(48) || word_of_log(128) != (i ? 2 : 1)) _exit(8);
  }
}

/* Closing the library completes the log of a default; the library that is opened again begins it
 * anew. */
TEST_CASE(defaults_end_with_the_library) {
  char name[sizeof path + 20];
  int fd = temporary_file(path, sizeof path);
  assert_true(fd >= 0);
  close(fd);
  snprintf(name, sizeof name, "log+host:?file=%s", path);
  assert_int_equal(setenv("UMEM_DEFAULT", name, 1), 0);
  IN_CHILD use_default();
  unsetenv("UMEM_DEFAULT");
  unlink(path);
}
