/* dlopen.c - a program may open the library at run time, as Python does, use it, and close it. */

#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <umem.h>
#include <unistd.h>

#include "unit/tasks.h"
#include "unit/used_bytes.h"
#include "temporary.h"
#include "cases.h"

/* dlsym returns data pointers, which ISO C does not convert to functions. */
static void find(void *library, char const *name, void *slot) {
  void *symbol = dlsym(library, name);
  if (!symbol) fail_msg("%s", dlerror());
  memcpy(slot, &symbol, sizeof symbol);
}

static void use(void *library) {
  umemStatusType (*open_file)(umemFile *, char const *, char const *);
  uintptr_t (*alloc)(void *, size_t);
  umemStatusType (*copy_to)(void *, uintptr_t, void *, uintptr_t, size_t);
  char const *(*message)(void const *);
  void (*end)(void *);
  umemStatusType (*set_threads)(unsigned);
  find(library, "umemFile_ctor", &open_file);
  find(library, "umem_alloc", &alloc);
  find(library, "umem_copy_to", &copy_to);
  find(library, "umem_get_message", &message);
  find(library, "umem_dtor", &end);
  find(library, "umem_set_threads", &set_threads);

  static umemFile one, other;
  size_t const nbytes = 16 << 20;           /* several threads share the copy */
  assert_int_equal(set_threads(4), umemOK); /* however few processors there are */
  assert_int_equal(open_file(&one, NULL, "w+"), umemOK);
  assert_int_equal(open_file(&other, NULL, "w+"), umemOK);
  uintptr_t from = alloc(&one, nbytes), to = alloc(&other, nbytes);
  assert_int_equal(copy_to(&one, from, &other, to, nbytes), umemOK);
  assert_int_equal(copy_to(&one, from, &other, to + 1, nbytes), umemIndexError);
  assert_non_null(strstr(message(&other), "umem_copy_to: "));
  end(&one);
  end(&other);
}

/* Each copy leaves threads asleep, or on their way to it, which must be gone with the library. */
TEST_CASE(opens_and_closes) {
  for (int i = 0; i < 20; i++) {
    void *library = dlopen(UMEM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    use(library);
    assert_int_equal(dlclose(library), 0);
    assert_null(dlopen(UMEM_LIBRARY, RTLD_NOW | RTLD_NOLOAD));
    assert_true(task_count_becomes(tasks_alone()));
  }
}

/* ---- threads that live on ---- */

enum { pools = 3 };

static uintptr_t (*alloc_of)(void *, size_t);
static void (*free_of)(void *, uintptr_t);
static union {
  umemVirtual super;
  umemHost host;
  umemPool pool;
} stack[1 + pools];
static sem_t go, gone;

static void use_pools(void) {
  for (int i = 1; i <= pools; i++)
    for (size_t nbytes = 8; nbytes < 5000; nbytes *= 2)
      free_of(&stack[i], alloc_of(&stack[i], nbytes));
}

static void *use_when_signalled(void *unused) {
  for (;;) {
    sem_wait(&go);
    if (!alloc_of) return unused;
    use_pools();
    sem_post(&gone);
  }
}

static void load_and_unload(void) {
  umemStatusType (*open_host)(umemHost *);
  umemStatusType (*open_pool)(umemPool *, void *, umemPoolOptions const *);
  void (*end)(void *);
  void *library = dlopen(UMEM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  find(library, "umemHost_ctor", &open_host);
  find(library, "umemPool_ctor", &open_pool);
  find(library, "umem_dtor", &end);
  find(library, "umem_alloc", &alloc_of);
  find(library, "umem_free", &free_of);
  assert_int_equal(open_host(&stack[0].host), umemOK);
  for (int i = 1; i <= pools; i++)
    assert_int_equal(open_pool(&stack[i].pool, &stack[0], NULL), umemOK);
  sem_post(&go);
  use_pools();
  sem_wait(&gone);
  for (int i = pools; i >= 0; i--) end(&stack[i]);
  assert_int_equal(dlclose(library), 0);
}

/* The thread has caches of pools, some 48 KiB, which it would free at its end. libc keeps some
 * small blocks of its own, more when other threads allocate at the same time. */
TEST_CASE(closing_leaves_nothing_of_threads) {
  enum { first = 5, loads = 50, most_of_libc = 1024 };
  pthread_t thread;
  size_t before = 0;
  assert_int_equal(sem_init(&go, 0, 0), 0);
  assert_int_equal(sem_init(&gone, 0, 0), 0);
  assert_int_equal(pthread_create(&thread, NULL, use_when_signalled, NULL), 0);
  for (int i = 0; i < first + loads; i++) {
    if (i == first) before = used_bytes();
    load_and_unload();
  }
  size_t after = used_bytes();
  alloc_of = NULL;
  sem_post(&go);
  assert_int_equal(pthread_join(thread, NULL), 0);
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
  mallopt(M_TOP_PAD, 0);
  for (size_t size = 64 << 10; size >= 512; size /= 2)
    for (int i = 0; i < 64; i++)
      if (!malloc(size)) _exit(3); /* cppcheck-suppress leakReturnValNotUsed */
  malloc_trim(0);
}

static int go_on(void *data, umemBlock const *block) {
  (void)data, (void)block;
  return 0;
}

/* Blocks have two threads, and little memory. */
static void pass_blocks(void *library, umemHost *host) {
  umemStatusType (*run)(umemBlocksOptions const *, umemBlockBody *, void *, int *);
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  int code = 0;
  find(library, "umemBlocks_run", &run);
  options.source = (umemRows){host, (uintptr_t)source, block_size, 0};
  options.destination = (umemRows){host, (uintptr_t)target, block_size, 0};
  options.count = copied / block_size;
  options.place = host;
  options.rows = 1;
  options.depth = 2;
  alarm(60); /* whoever waits for a thread that has left */
  umemStatusType status = run(&options, go_on, NULL, &code);
  if (status == umemMemoryError) _exit(0);
  if (status || code) _exit(8);
  _exit(memcmp(source, target, copied) ? 9 : 0);
}

/* In a process of its own, with addresses for the stacks of so many threads, and for a bit more. */
static void copy_with(void *library, size_t more, bool in_blocks) {
  umemStatusType (*copy_to)(void *, uintptr_t, void *, uintptr_t, size_t);
  umemStatusType (*set_threads)(unsigned);
  umemStatusType (*open_host)(umemHost *);
  umemHost host;
  find(library, "umem_copy_to", &copy_to);
  find(library, "umem_set_threads", &set_threads);
  find(library, "umemHost_ctor", &open_host);
  if (open_host(&host) || set_threads(1 + most_helpers)) _exit(4);
  copy_to(&host, (uintptr_t)source, &host, (uintptr_t)target, 1); /* this thread has its data */
  empty_malloc();
  size_t bytes = addresses() + more + (in_blocks ? 2 * block_size : 0);
  struct rlimit limit = {bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit)) _exit(5);
  if (in_blocks) pass_blocks(library, &host);
  if (copy_to(&host, (uintptr_t)source, &host, (uintptr_t)target, copied)) _exit(6);
  _exit(memcmp(source, target, copied) ? 7 : 0);
}

/* glibc ends a process that has no memory for the thread variables of a library in a new thread. */
TEST_CASE(threads_without_memory_are_done_without) {
  if (UNDER(address_sanitizer) || under_thread_sanitizer) skip(); /* they need addresses */
  pthread_attr_t usual;
  size_t stack_size = 0;
  assert_int_equal(pthread_getattr_default_np(&usual), 0);
  assert_int_equal(pthread_attr_getstacksize(&usual, &stack_size), 0);
  pthread_attr_destroy(&usual);
  void *library = dlopen(UMEM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  source = malloc(copied);
  target = malloc(copied);
  assert_true(source && target);
  for (size_t i = 0; i < copied; i++) source[i] = (unsigned char)(i * 31 >> 7);
  for (size_t i = 0; i < 2 * most_helpers * tries; i++) {
    int status = -1;
    size_t more = (1 + i / 2 / tries) * (stack_size + 4096) + i / 2 % tries * step;
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) copy_with(library, more, i % 2);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status) fail_msg("%zu bytes more: status %#x", more, status);
  }
  free(source);
  free(target);
  assert_int_equal(dlclose(library), 0);
}

/* ---- defaults ---- */

static char path[256];

static uint64_t word_of_log(off_t at) {
  uint64_t word = 0;
  int fd = open(path, O_RDONLY);
  if (fd < 0 || pread(fd, &word, sizeof word, at) != sizeof word) _exit(2);
  close(fd);
  return word;
}

/* In a process of its own: what a default has stays until that ends, and no address of it is
 * left. */
static void use_default(void) {
  void *(*get_default)(void);
  uintptr_t (*alloc)(void *, size_t);
  for (int i = 0; i < 2; i++) {
    void *library = dlopen(UMEM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) _exit(3);
    find(library, "umem_default", &get_default);
    find(library, "umem_alloc", &alloc);
    void *ctx = get_default();
    if (!ctx || !alloc(ctx, 10)) _exit(4);
    if (i && !alloc(ctx, 10)) _exit(5);
    if (word_of_log(48)) _exit(6); /* when it ended: doc/contexts/log.rst */
    if (dlclose(library) || dlopen(UMEM_LIBRARY, RTLD_NOW | RTLD_NOLOAD)) _exit(7);
    if (!word_of_log(48) || word_of_log(128) != (i ? 2 : 1)) _exit(8);
  }
  _exit(0);
}

/* Closing the library completes the log of a default; the library that is opened again begins it
 * anew. */
TEST_CASE(defaults_end_with_the_library) {
  char name[sizeof path + 20];
  int status, fd = temporary_file(path, sizeof path);
  assert_true(fd >= 0);
  close(fd);
  snprintf(name, sizeof name, "log+host:?file=%s", path);
  assert_int_equal(setenv("UMEM_DEFAULT", name, 1), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) use_default();
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  unsetenv("UMEM_DEFAULT");
  unlink(path);
}

int main(void) { return run_cases(NULL, NULL); }
