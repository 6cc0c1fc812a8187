/* guarded_access.c - umem/guarded.h. */
#include "adaptor_help.h"

#include "wrap.h"

/* ---- faults: the nth call of these from now on fails; 0: none ---- */

static unsigned failing_protect, failing_realloc;

/* The pages that are closed now: what the upstream gets back must be open. Under the lock of the
 * Guarded, or in one thread. */
static struct {
  uintptr_t pages[1000];
  size_t count;
} closed;

static void note(uintptr_t adr, size_t nbytes, bool closes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (uintptr_t at = adr; at < adr + nbytes; at += page) {
    size_t i = 0;
    while (i < closed.count && closed.pages[i] != at) i++;
    if (closes && i == closed.count) {
      assert_true(i < sizeof closed.pages / sizeof *closed.pages);
      closed.pages[closed.count++] = at;
    } else if (!closes && i < closed.count) {
      closed.pages[i] = closed.pages[--closed.count];
    }
  }
}

WRAPPED(int, mprotect, (void *adr, size_t nbytes, int protection)) {
  if (failing_protect && !--failing_protect) {
    errno = ENOMEM;
    return -1;
  }
  int result = __real_mprotect(adr, nbytes, protection);
  if (result == 0) note((uintptr_t)adr, nbytes, protection == PROT_NONE);
  return result;
}

WRAP(failing_realloc && !--failing_realloc, NULL, void *, realloc, (void *block, size_t size),
     (block, size))

/* ---- accesses that may trap, each in a process of its own ---- */

static void read_byte(uintptr_t adr) { (void)*(char volatile const *)adr; }
static void write_byte(uintptr_t adr) { *(char volatile *)adr = 1; }

/* Also under sanitizers, which have handlers of their own. */
static void handle_by_default(void) { signal(SIGSEGV, SIG_DFL); }

static bool traps(void (*access)(uintptr_t adr), uintptr_t adr) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    handle_by_default();
    access(adr);
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) || WTERMSIG(status) == SIGSEGV);
  return WIFSIGNALED(status);
}

static void expect_access(uintptr_t adr, bool reads, bool writes) {
  assert_int_equal(traps(read_byte, adr), !reads);
  assert_int_equal(traps(write_byte, adr), !writes);
}

static umemGuarded guarded; /* over a umemTrack over RAM */
static umemTrack below;

static void set_up_guarded(void **state) {
  failing_protect = failing_realloc = 0;
  set_up(state);
  assert_ok(umemTrack_ctor(&below, &host, NULL));
  assert_ok(umemGuarded_ctor(&guarded, &below));
}

static void tear_down_guarded(void **state) {
  end(&guarded);
  assert_int_equal(closed.count, 0);
  end(&below); /* reports leaks */
  tear_down(state);
}

static void expect_bytes(uintptr_t adr, unsigned char byte, size_t nbytes) {
  for (size_t i = 0; i < nbytes; i++) assert_int_equal(((unsigned char const *)adr)[i], byte);
}

#define GUARDED_TEST(name) TEST_CASE_WITH(name, set_up_guarded, tear_down_guarded)

/* ---- what the program may do ---- */

GUARDED_TEST(a_block_has_the_access_that_it_is_given) {
  uintptr_t adr = umem_alloc(&guarded, 100);
  assert_int_equal(umemGuarded_access(&guarded, adr), umemGuardedWrite);
  expect_access(adr, true, true);
  memset((void *)adr, 5, 100);
  assert_ok(umemGuarded_protect(&guarded, adr, 100, umemGuardedClosed));
  assert_int_equal(umemGuarded_access(&guarded, adr), umemGuardedClosed);
  expect_access(adr, false, false);
  expect_access(adr + 99, false, false);
  assert_ok(umemGuarded_protect(&guarded, adr, 100, umemGuardedRead));
  expect_access(adr + 99, true, false);
  expect_bytes(adr, 5, 100);
  assert_ok(umemGuarded_protect(&guarded, adr, 100, umemGuardedWrite));
  expect_access(adr, true, true);
  assert_ok(umemGuarded_protect(&guarded, adr, 100, umemGuardedClosed));
  umem_free(&guarded, adr); /* a closed block is freed like others */
}

GUARDED_TEST(a_block_is_closed_alone) {
  uintptr_t one = umem_alloc(&guarded, 5000), other = umem_alloc(&guarded, 10);
  uintptr_t aligned = umem_aligned_alloc(&guarded, 1 << 16, 10);
  assert_ok(umemGuarded_protect(&guarded, one, 5000, umemGuardedClosed));
  expect_access(one, false, false);
  expect_access(other, true, true);
  assert_ok(umemGuarded_protect(&guarded, aligned, 10, umemGuardedRead));
  expect_access(aligned + 9, true, false);
  expect_access(other, true, true);
  umem_aligned_free(&guarded, aligned);
  FREE(&guarded, other, one);
}

GUARDED_TEST(the_bytes_around_a_block_trap) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t const sizes[] = {1, 16, 100, page, 2 * page + 16};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    uintptr_t adr = umem_alloc(&guarded, sizes[i]);
    uintptr_t end_of_pages = adr + ((sizes[i] + 15) & ~(size_t)15);
    assert_int_equal(end_of_pages % page, 0);
    expect_access(adr + sizes[i] - 1, true, true);
    expect_access(end_of_pages, false, false);
    expect_access(end_of_pages + page - 1, false, false);
    uintptr_t first_page = adr & ~(page - 1);
    expect_access(first_page - 1, false, false);
    expect_access(first_page - page, false, false);
    umem_free(&guarded, adr);
  }
}

/* ---- umem's own calls ---- */

GUARDED_TEST(calls_of_umem_work_on_closed_blocks) {
  char bytes[100];
  uintptr_t one = umem_alloc(&guarded, 100), other = umem_calloc(&guarded, 1, 100);
  uintptr_t far = umem_alloc(&fake, 100);
  assert_ok(umemGuarded_protect(&guarded, one, 100, umemGuardedClosed));
  assert_ok(umemGuarded_protect(&guarded, other, 100, umemGuardedRead));
  assert_ok(umem_set(&guarded, one, 7, 100));
  assert_ok(umem_copy_to(&guarded, one, &guarded, other + 50, 50));
  assert_ok(umem_copy_to(&guarded, other, &fake, far, 100));
  assert_ok(umem_copy_from(&guarded, one + 10, &fake, far, 20));
  assert_ok(umem_copy_to(&guarded, one, &host, (uintptr_t)bytes, 100));
  expect_bytes((uintptr_t)bytes, 7, 10);
  expect_bytes((uintptr_t)bytes + 10, 0, 20);
  expect_bytes((uintptr_t)bytes + 30, 7, 70);
  expect_bytes(other, 0, 50);
  expect_bytes(other + 50, 7, 50);
  size_t const extents[] = {10};
  ptrdiff_t const backwards[] = {-3}, forwards[] = {4};
  umemLayout layout = {sizeof layout, 2, 1, extents, backwards, forwards};
  assert_ok(umem_copy_strided(&guarded, one + 98, &guarded, other, &layout));
  expect_bytes(other, 7, 2);
  expect_bytes(other + 2, 0, 2);
  expect_access(one, false, false);
  expect_access(other, true, false);
  umem_free(&fake, far);
  FREE(&guarded, one, other);
}

/* The pages are closed when the call returns: what it has queued must be done by then. */
GUARDED_TEST(copies_with_an_ordered_context_are_complete) {
  SCOPED(end) FakeAsync ordered;
  assert_ok(fake_async_ctor(&ordered));
  uintptr_t far = umem_alloc(&ordered, 100), adr = umem_calloc(&guarded, 1, 100);
  assert_ok(umemGuarded_protect(&guarded, adr, 100, umemGuardedClosed));
  assert_ok(umem_set(&ordered, far, 8, 100));
  assert_ok(umem_copy_to(&ordered, far, &guarded, adr, 50));
  assert_ok(umemGuarded_protect(&guarded, adr, 100, umemGuardedRead));
  expect_bytes(adr, 8, 50);
  assert_ok(umemGuarded_protect(&guarded, adr, 100, umemGuardedClosed));
  assert_ok(umem_copy_from(&ordered, far, &guarded, adr, 100));
  assert_ok(umem_synchronize(&ordered));
  char bytes[100];
  assert_ok(umem_copy_to(&ordered, far, &host, (uintptr_t)bytes, 100));
  assert_ok(umem_synchronize(&ordered));
  expect_bytes((uintptr_t)bytes, 8, 50);
  expect_bytes((uintptr_t)bytes + 50, 0, 50);
  umem_free(&ordered, far);
  umem_free(&guarded, adr);
}

GUARDED_TEST(a_block_keeps_its_bytes_when_it_is_resized) {
  uintptr_t adr = umem_alloc(&guarded, 100);
  memset((void *)adr, 3, 100);
  assert_ok(umemGuarded_protect(&guarded, adr, 100, umemGuardedClosed));
  assert_true(umem_realloc(&guarded, adr, 101, 200) == 0);
  expect_failure(&guarded, umemValueError, "old_size is 101");
  adr = umem_realloc(&guarded, adr, 100, 10000);
  expect_bytes(adr, 3, 100); /* it is a new block, and open */
  assert_true(umem_realloc(&guarded, adr + 1, 10, 20) == 0);
  expect_failure(&guarded, umemValueError, "no live block begins at");
  umem_free(&guarded, adr);
}

GUARDED_TEST(bytes_outside_of_a_block_are_refused) {
  uintptr_t adr = umem_alloc(&guarded, 90); /* six bytes are behind it, on its page */
  char bytes[100] = "";
  assert_int_equal(umem_set(&guarded, adr, 1, 91), umemIndexError);
  expect_failure(&guarded, umemIndexError, "umem_set: the 91 bytes at 0x");
  assert_int_equal(umem_copy_to(&guarded, adr + 90, &host, (uintptr_t)bytes, 1), umemIndexError);
  expect_failure(&guarded, umemIndexError, "are not inside a live block");
  assert_int_equal(umem_copy_from(&guarded, adr - 1, &host, (uintptr_t)bytes, 1), umemIndexError);
  expect_failure(&guarded, umemIndexError, "are not inside a live block");
  size_t const extents[] = {4};
  ptrdiff_t const steps[] = {30}, gapless[] = {1};
  umemLayout layout = {sizeof layout, 1, 1, extents, steps, gapless};
  expect_status(&guarded, umem_copy_strided(&guarded, adr, &host, (uintptr_t)bytes, &layout),
                umemIndexError, "the 91 bytes at 0x");
  umem_free(&guarded, adr);
  assert_int_equal(umem_set(&guarded, adr, 1, 1), umemIndexError);
  expect_failure(&guarded, umemIndexError, "are not inside a live block");
}

static uintptr_t shared;

static void *copy_out(void *number) {
  for (int i = 0; i < 200; i++) {
    char bytes[64];
    if (umem_copy_to(&guarded, shared, &host, (uintptr_t)bytes, sizeof bytes) != umemOK) abort();
    if (umem_set(&guarded, shared + 64 + (uintptr_t)number, 1, 1) != umemOK) abort();
  }
  return NULL;
}

GUARDED_TEST(a_block_is_closed_after_the_last_of_several_calls) {
  shared = umem_calloc(&guarded, 1, 100);
  assert_ok(umemGuarded_protect(&guarded, shared, 100, umemGuardedClosed));
  in_threads(copy_out);
  expect_access(shared, false, false);
  umem_free(&guarded, shared);
}

/* ---- a device without a GPU ---- */

GUARDED_TEST(a_connection_has_a_copy) {
  uintptr_t adr = umem_calloc(&guarded, 1, 100);
  uintptr_t for_host = umem_connect(&guarded, adr, 100, &host, 16);
  assert_true(for_host && for_host != adr);
  assert_ok(umemGuarded_protect(&guarded, adr, 100, umemGuardedClosed));
  memset((void *)for_host, 9, 100);
  assert_ok(umem_sync_from(&guarded, adr, &host, for_host, 100));
  assert_ok(umemGuarded_protect(&guarded, adr, 100, umemGuardedRead));
  expect_bytes(adr, 9, 100);
  assert_ok(umem_disconnect(&guarded, adr, &host, for_host, 16));
  assert_false(umem_is_same_device(&guarded, &host));
  umemStats stats; /* the same memory */
  assert_ok(umemStats_ctor(&stats, &guarded));
  assert_true(umem_connect(&stats, adr, 100, &guarded, 0) == adr);
  assert_ok(umem_disconnect(&stats, adr, &guarded, adr, 0));
  end(&stats);
  umem_free(&guarded, adr);
}

GUARDED_TEST(adaptors_over_it_protect_too) {
  umemStats stats;
  assert_ok(umemStats_ctor(&stats, &guarded));
  uintptr_t adr = umem_alloc(&stats, 100);
  assert_ok(umemGuarded_protect(&stats, adr, 100, umemGuardedClosed));
  expect_access(adr, false, false);
  assert_ok(umem_set(&stats, adr, 1, 100));
  umem_free(&stats, adr);
  end(&stats);
  CLEAN_CONTEXT(umemGuarded, other, &guarded); /* without pages, because those below are in use */
  adr = umem_alloc(&other, 100);
  assert_ok(umemGuarded_protect(&other, adr, 100, umemGuardedClosed));
  assert_int_equal(umemGuarded_access(&other, adr), umemGuardedClosed);
  expect_access(adr, false, false);
  umem_free(&other, adr);
}

GUARDED_TEST(over_a_device_it_passes_on) {
  CLEAN_CONTEXT(umemGuarded, over_device, &fake);
  uintptr_t adr = umem_alloc(&over_device, 100);
  assert_int_equal(blocks_in(&fake), 1);
  assert_ok(umemGuarded_protect(&over_device, adr, 100, umemGuardedClosed));
  assert_int_equal(umemGuarded_access(&over_device, adr), umemGuardedWrite);
  assert_true(over_device.super.capabilities & umemSeparate);
  umem_free(&over_device, adr);
  assert_int_equal(blocks_in(&fake), 0);
  assert_ptr_equal(umem_find_layer(&over_device, "guarded"), &over_device);
}

/* ---- wrong calls ---- */

GUARDED_TEST(wrong_calls_are_refused) {
  uintptr_t adr = umem_alloc(&guarded, 100);
  assert_int_equal(umemGuarded_protect(&host, adr, 100, umemGuardedRead), umemTypeError);
  expect_failure(&host, umemTypeError, "no layer of this Host is a umemGuarded");
  assert_int_equal(umemGuarded_protect(NULL, adr, 100, umemGuardedRead), umemValueError);
  assert_int_equal(umemGuarded_protect(&guarded, adr, 100, (umemGuardedAccess)3), umemValueError);
  expect_failure(&guarded, umemValueError, "umemGuarded_protect: 3 is no access");
  assert_int_equal(umemGuarded_protect(&guarded, adr + 1, 100, umemGuardedRead), umemValueError);
  expect_failure(&guarded, umemValueError, "no live block begins at");
  assert_int_equal(umemGuarded_protect(&guarded, adr, 99, umemGuardedRead), umemValueError);
  expect_failure(&guarded, umemValueError, "has 100 bytes, not 99");
  assert_int_equal(umemGuarded_access(&guarded, 0), umemGuardedClosed);
  expect_failure(&guarded, umemValueError, "umemGuarded_access: no live block begins at 0x0");
  umem_free(&guarded, adr + 8);
  expect_failure(&guarded, umemValueError, "umem_free: no live block begins at");
  FREE(&guarded, adr, adr);
  expect_failure(&guarded, umemValueError, "no live block begins at");
  assert_true(umem_alloc(&guarded, SIZE_MAX - 100) == 0);
  expect_failure(&guarded, umemMemoryError, "exceed the address space");
}

/* Without this the pages would stay closed in memory that the upstream gives to others. */
GUARDED_TEST(live_blocks_are_freed_at_the_end) {
  umemGuarded other;
  assert_ok(umemGuarded_ctor(&other, &below));
  uintptr_t adr = umem_alloc(&other, 100);
  umem_alloc(&other, 9000);
  assert_ok(umemGuarded_protect(&other, adr, 100, umemGuardedClosed));
  end(&other);
  assert_int_equal(umemTrack_count(&below, NULL), 0);
}

GUARDED_TEST(a_label_goes_with_its_block) {
  uintptr_t adr = umem_alloc(&guarded, 100);
  assert_ok(umem_set_block_label(&guarded, adr, "pressure"));
  adr = umem_realloc(&guarded, adr, 100, 200);
  assert_string_equal(umem_get_block_label(&guarded, adr + 199), "pressure");
  umemFound found = UMEM_FOUND_INIT;
  assert_true(umem_find_in(&guarded, adr + 199, &found));
  assert_true(found.adr == adr && found.nbytes == 200 && found.ctx == &guarded);
  assert_false(umem_find_in(&guarded, adr + 200, &found));
  umem_free(&guarded, adr);
}

/* ---- failures of the system ---- */

/* A call may fail while n counts down; then its status says why, and its block is as it was. */
static bool worked(umemStatusType status) {
  if (status == umemOK) return true;
  expect_failure(&guarded, umemMemoryError, strerror(ENOMEM));
  return false;
}

static void use_a_block(void) {
  uintptr_t adr = umem_alloc(&guarded, 100);
  if (!worked(umem_thread_status())) assert_true(adr == 0);
  if (!adr) return;
  memset((void *)adr, 4, 100);
  umemGuardedAccess access = umemGuardedWrite;
  if (worked(umemGuarded_protect(&guarded, adr, 100, umemGuardedClosed)))
    access = umemGuardedClosed;
  assert_int_equal(umemGuarded_access(&guarded, adr), access);
  char bytes[100];
  worked(umem_copy_to(&guarded, adr, &host, (uintptr_t)bytes, 100));
  worked(umem_set(&guarded, adr + 50, 4, 50));
  if (worked(umemGuarded_protect(&guarded, adr, 100, umemGuardedRead))) access = umemGuardedRead;
  assert_int_equal(umemGuarded_access(&guarded, adr), access);
  umem_free(&guarded, adr);
  if (worked(umem_thread_status())) return;
  assert_ok(umemGuarded_protect(&guarded, adr, 100, umemGuardedWrite)); /* it lives */
  expect_bytes(adr, 4, 100);
  umem_free(&guarded, adr);
}

GUARDED_TEST(a_refusal_of_the_system_loses_nothing) {
  unsigned n = 0;
  do {
    failing_protect = ++n;
    use_a_block();
    assert_int_equal(umemTrack_count(&below, NULL), 0);
    assert_int_equal(closed.count, 0);
  } while (failing_protect == 0);
  assert_true(n > 8);
  failing_protect = 0;
}

GUARDED_TEST(a_lack_of_memory_loses_nothing) {
  unsigned n = 0, failures = 0;
  do {
    failing_realloc = ++n;
    uintptr_t adr = umem_calloc(&guarded, 1, 100);
    if (!adr) {
      failures++;
      assert_int_equal(umem_thread_status(), umemMemoryError);
      FORGET(&below, &guarded);
    }
    umem_free(&guarded, adr);
    assert_int_equal(umemTrack_count(&below, NULL), 0);
  } while (failing_realloc == 0);
  failing_realloc = 0;
  assert_true(failures > 0);
}

GUARDED_TEST(what_cannot_be_opened_at_the_end_stays) {
  umemHost plain;
  umemGuarded other;
  assert_ok(umemHost_ctor(&plain));
  assert_ok(umemGuarded_ctor(&other, &plain));
  uintptr_t adr = umem_alloc(&other, 100);
  failing_protect = 1;
  umem_dtor(&other);
  expect_failure(&other, umemMemoryError, "umem_dtor: cannot open the pages of the block");
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (adr & ~(page - 1)) - page;
  assert_int_equal(mprotect((void *)first, 3 * page, PROT_READ | PROT_WRITE), 0);
  umem_free(&plain, first); /* here the block of the upstream begins */
}

/* ---- reports ---- */

/* What a process prints that makes an access after it has asked for reports, or not. Whether it
 * traps. */
static bool text_of(void (*access)(uintptr_t adr), uintptr_t adr, bool on, char *text,
                    size_t size) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    handle_by_default();
    if (dup2(ends[1], STDERR_FILENO) < 0) _exit(2);
    if (umemGuarded_report(true) != umemOK || umemGuarded_report(on) != umemOK) _exit(3);
    access(adr);
    _exit(0);
  }
  close(ends[1]);
  size_t used = 0;
  for (ssize_t n; (n = read(ends[0], text + used, size - 1 - used)) > 0;) used += (size_t)n;
  text[used] = 0;
  char *of_qemu = strstr(text, "qemu: "); /* which tells of signals, too */
  if (of_qemu) *of_qemu = 0;
  close(ends[0]);
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

GUARDED_TEST(a_report_names_the_block) {
  char text[1000], expected[1000];
  uintptr_t adr = umem_alloc(&guarded, 800);
  assert_ok(umem_set_label(&guarded, "gpu"));
  assert_ok(umem_set_block_label(&guarded, adr, "temperature"));
  assert_ok(umemGuarded_protect(&guarded, adr, 800, umemGuardedClosed));
  assert_true(text_of(read_byte, adr + 16, true, text, sizeof text));
  snprintf(expected, sizeof expected,
           "umem: SIGSEGV at byte 16 of the block \"temperature\" of 800 bytes at 0x%jx of a "
           "Guarded \"gpu\": it is "
           "closed. The other side of the array is in use, or the guard has ended\n",
           (uintmax_t)adr);
  assert_string_equal(text, expected);
  assert_true(text_of(read_byte, adr + 16, false, text, sizeof text));
  assert_string_equal(text, "");
  assert_ok(umemGuarded_protect(&guarded, adr, 800, umemGuardedRead));
  assert_true(text_of(write_byte, adr, true, text, sizeof text));
  assert_non_null(strstr(text, "open only for reading"));
  assert_true(text_of(read_byte, adr + 800, true, text, sizeof text));
  assert_non_null(strstr(text, "SIGSEGV at 0 bytes behind the end of the block \"temperature\""));
  assert_true(text_of(read_byte, (adr & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1)) - 8, true, text,
                      sizeof text));
  assert_non_null(strstr(text, "bytes before the block"));
  assert_true(text_of(read_byte, 64, true, text, sizeof text)); /* of nobody */
  assert_string_equal(text, "");
  umem_free(&guarded, adr);
}

static void handle_by_exit(int number UNUSED) { _exit(42); }

GUARDED_TEST(the_handler_of_the_program_comes_afterwards) {
  uintptr_t adr = umem_alloc(&guarded, 800);
  assert_ok(umemGuarded_protect(&guarded, adr, 800, umemGuardedClosed));
  for (int sent = 0; sent < 2; sent++) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      signal(SIGSEGV, handle_by_exit);
      close(STDERR_FILENO);
      if (umemGuarded_report(true) != umemOK) _exit(3);
      if (sent)
        raise(SIGSEGV);
      else
        read_byte(adr);
      _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
  }
  umem_free(&guarded, adr);
}

int main(void) {
  alarm(60); /* a failure may leave pages closed, which malloc then meets with its locks taken */
  return run_cases(NULL, NULL);
}
