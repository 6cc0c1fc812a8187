/* dlopen.c - a program may open the library at run time, as Python does, use it, and close it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <umem.h>
#include <unistd.h>

#include "unit/tasks.h"

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
static void opens_and_closes(void **state) {
  (void)state;
  for (int i = 0; i < 20; i++) {
    void *library = dlopen(UMEM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    use(library);
    assert_int_equal(dlclose(library), 0);
    assert_null(dlopen(UMEM_LIBRARY, RTLD_NOW | RTLD_NOLOAD));
    assert_true(task_count_becomes(tasks_alone()));
  }
}

static char path[] = "/tmp/umem-dlopen-XXXXXX";

static uint64_t word_of_log(off_t at) {
  uint64_t word = 0;
  int fd = open(path, O_RDONLY);
  if (fd < 0 || pread(fd, &word, sizeof word, at) != sizeof word) _exit(2);
  close(fd);
  return word;
}

/* In a process of its own: what a default has stays until that ends, and no address of it is left. */
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

/* Closing the library completes the log of a default; the library that is opened again begins it anew. */
static void defaults_end_with_the_library(void **state) {
  (void)state;
  char name[sizeof path + 20];
  int status, fd = mkstemp(path);
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

int main(void) {
  struct CMUnitTest const tests[] = {
      cmocka_unit_test(opens_and_closes),
      cmocka_unit_test(defaults_end_with_the_library),
  };
  return cmocka_run_group_tests_name("dlopen", tests, NULL, NULL);
}
