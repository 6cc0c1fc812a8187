/* left.c - what the harness of the contract does when a test ends inside of a call of umem: by a
 * signal, or by a check in a callback. The next test must not see it. */

#include <umem/base.h>

#include "core/status.h"
#include "cases.h"

static sigjmp_buf back;
static umemHost host;

static void jump(int signal UNUSED) { siglongjmp(back, 1); }

static bool crashes(void *user UNUSED, uint64_t done UNUSED, uint64_t total UNUSED) {
  raise(SIGUSR1);
  return true;
}

static void crash_in_progress(void) {
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  char from[10] = "", to[10];
  options.progress = crashes;
  umem_copy_to_with(&host, (uintptr_t)from, &host, (uintptr_t)to, 10, &options);
}

static umemStatusType construct(void *ctx, void *upstream, umemOptionValue const *place,
                                umemOptionValue const *options, void *user) {
  (void)ctx, (void)upstream, (void)place, (void)options, (void)user;
  raise(SIGUSR1);
  return umemOK;
}

static umemScheme const scheme = {.size = sizeof scheme,
                                  .name = "crashes",
                                  .context_size = sizeof(umemHost),
                                  .construct = construct};

/* What a call holds when it is left is lost, which LeakSanitizer need not report. */
char const *__lsan_default_suppressions(void);
char const *__lsan_default_suppressions(void) { return "leak:umem_open\n"; }

static void crash_in_construct(void) { umem_open("crashes:"); }

TEST_CASE(a_left_call_is_over) {
  void (*const calls[])(void) = {crash_in_progress, crash_in_construct};
  struct sigaction action = {.sa_handler = jump, .sa_flags = SA_NODEFER};
  assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
  assert_int_equal(umem_register_scheme(&scheme), umemOK);
  assert_int_equal(umemHost_ctor(&host), umemOK);
  for (size_t i = 0; i < 2; i++) {
    int setting, ignored;
    if (!sigsetjmp(back, 1)) calls[i]();
    umem_leave_all();
    assert_false(umem_leave_all());
    assert_int_equal(umem_set(&host, 0, 0, 1), umemValueError);
    assert_string_equal(umem_thread_message(), "umem_set: the address in Host is null");
    assert_int_equal(umem_get_status(&host), umemValueError);
    FORGET(&host);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &setting);
    assert_int_equal(setting, PTHREAD_CANCEL_ENABLE);
    pthread_setcancelstate(setting, &ignored);
  }
}
