/* old_backend.c - a context compiled against an older, shorter table of methods, on today's
 * library.
 *
 * This file declares struct umemVtbl itself, as it was at first: eleven methods. It includes no
 * header that declares more. The table is at the very end of readable memory, so that a library
 * that looks for a method beyond it dies here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <umem/connect.h>
#include <umem/context.h>
#include <umem/copy.h>
#include <umem/memory.h>

#include "scoped.h"

struct umemVtbl {
  void (*dtor)(umemVirtual *ctx);
  bool (*is_same_device)(umemVirtual *ctx, umemVirtual *other);
  uintptr_t (*alloc)(umemVirtual *ctx, size_t nbytes);
  uintptr_t (*calloc)(umemVirtual *ctx, size_t nmemb, size_t size);
  void (*free)(umemVirtual *ctx, uintptr_t adr);
  uintptr_t (*aligned_alloc)(umemVirtual *ctx, size_t alignment, size_t size);
  uintptr_t (*aligned_origin)(umemVirtual *ctx, uintptr_t adr);
  void (*aligned_free)(umemVirtual *ctx, uintptr_t adr);
  void (*set)(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes);
  void (*copy_to)(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                  size_t nbytes);
  void (*copy_from)(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                    size_t nbytes);
};

/* The functions as the old header declared them. */
UMEM_EXTERN void umemVirtual_ctor(umemVirtual *ctx, void *host);
UMEM_EXTERN void umemVirtual_ctor_sized(umemVirtual *ctx, void *host, size_t vtbl_size);
UMEM_EXTERN uintptr_t umemVirtual_calloc(umemVirtual *ctx, size_t nmemb, size_t size);
UMEM_EXTERN uintptr_t umemVirtual_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size);
UMEM_EXTERN uintptr_t umemVirtual_aligned_origin(umemVirtual *ctx, uintptr_t adr);
UMEM_EXTERN void umemVirtual_aligned_free(umemVirtual *ctx, uintptr_t adr);

/* Enough of umem/host.h, whose types are fixed too. */
typedef struct umemHost {
  umemVirtual super;
} umemHost;
UMEM_EXTERN umemStatusType umemHost_ctor(umemHost *ctx);

/* ---- the old context: memory whose addresses only it understands ---- */

#define KEY ((uintptr_t)1 << 62)

typedef struct Old {
  umemVirtual super;
  umemHost host;
  char *page; /* the readable one of two; the table of methods stands at its end */
  int dtors;
} Old;

static char *pointer(uintptr_t adr) { return (char *)(adr ^ KEY); }

static void old_dtor(umemVirtual *ctx) { ((Old *)ctx)->dtors++; }

static bool old_is_same_device(umemVirtual *ctx, umemVirtual *other) { return ctx == other; }

static uintptr_t old_alloc(umemVirtual *ctx, size_t nbytes) {
  (void)ctx;
  char *block = malloc(nbytes);
  /* cppcheck-suppress memleak */
  return block ? (uintptr_t)block ^ KEY : 0;
}

static void old_free(umemVirtual *ctx, uintptr_t adr) {
  (void)ctx;
  free(pointer(adr));
}

static void old_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  (void)ctx;
  memset(pointer(adr), c, nbytes);
}

static void old_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                        size_t nbytes) {
  (void)ctx, (void)that;
  memcpy((char *)dst_adr, pointer(src_adr), nbytes);
}

static void old_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                          size_t nbytes) {
  (void)ctx, (void)that;
  memcpy(pointer(dst_adr), (char *)src_adr, nbytes);
}

static struct umemVtbl const methods = {old_dtor,
                                        old_is_same_device,
                                        old_alloc,
                                        umemVirtual_calloc,
                                        old_free,
                                        umemVirtual_aligned_alloc,
                                        umemVirtual_aligned_origin,
                                        umemVirtual_aligned_free,
                                        old_set,
                                        old_copy_to,
                                        old_copy_from};

enum { method_size = sizeof(void (*)(void)), first_methods = sizeof methods / method_size };

/* Puts the table, with NULL for all methods after the first eleven, at the end of readable
 * memory. */
static struct umemVtbl const *table_at_the_edge(Old *old, size_t table_size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(pages, MAP_FAILED);
  old->page = pages;
  assert_int_equal(mprotect(old->page + page, page, PROT_NONE), 0);
  return memcpy(old->page + page - table_size, &methods, sizeof methods);
}

static Old old;

/* As a program compiled against a header with this many methods; 0: the first one, which names no
 * size. */
static void open_with(size_t count) {
  old = (Old){.dtors = 0};
  assert_int_equal(umemHost_ctor(&old.host), umemOK);
  if (count)
    umemVirtual_ctor_sized(&old.super, &old.host, count * method_size);
  else
    umemVirtual_ctor(&old.super, &old.host);
  old.super.vptr = table_at_the_edge(&old, count ? count * method_size : sizeof methods);
}

static int open_old(void **state UNUSED) {
  open_with(0);
  return 0;
}

static int close_old(void **state UNUSED) {
  umem_dtor(&old.super);
  assert_int_equal(old.dtors, 1);
  umem_dtor(&old.host);
  return munmap(old.page, 2 * (size_t)sysconf(_SC_PAGESIZE));
}

/* ---- tests ---- */

static void allocates_sets_and_frees(void **state UNUSED) {
  uintptr_t adr = umem_calloc(&old, 10, 10);
  assert_int_not_equal(adr, umem_null(&old));
  for (int i = 0; i < 100; i++) assert_int_equal(pointer(adr)[i], 0);
  assert_int_equal(umem_set(&old, adr + 50, 7, 50), umemOK);
  assert_int_equal(pointer(adr)[49], 0);
  assert_int_equal(pointer(adr)[50], 7);
  umem_free(&old, adr);
  assert_true(umem_is_ok(&old));
}

static void aligns(void **state UNUSED) {
  for (size_t alignment = 1; alignment <= 65536; alignment *= 2) {
    uintptr_t adr = umem_aligned_alloc(&old, alignment, 100);
    assert_int_not_equal(adr, umem_null(&old));
    assert_int_equal(adr % alignment, 0);
    assert_true(umem_aligned_origin(&old, adr) <= adr);
    assert_int_equal(umem_set(&old, adr, 1, 100), umemOK);
    umem_aligned_free(&old, adr);
  }
  assert_true(umem_is_ok(&old));
}

static void copies_to_host_and_back_and_to_itself(void **state UNUSED) {
  char text[] = "the same bytes", back[sizeof text] = "";
  uintptr_t one = umem_alloc(&old, sizeof text), two = umem_alloc(&old, sizeof text);
  assert_int_equal(umem_copy_to(&old.host, (uintptr_t)text, &old, one, sizeof text), umemOK);
  assert_int_equal(umem_copy_to(&old, one, &old, two, sizeof text), umemOK);
  assert_int_equal(umem_copy_from(&old.host, (uintptr_t)back, &old, two, sizeof text), umemOK);
  assert_string_equal(back, text);
  umem_free(&old, one);
  umem_free(&old, two);
  assert_true(umem_is_ok(&old));
}

static void copies_strided(void **state UNUSED) {
  char letters[] = "a-b-c-d-", picked[5] = "";
  uintptr_t adr = umem_alloc(&old, sizeof letters);
  assert_int_equal(umem_copy_to(&old.host, (uintptr_t)letters, &old, adr, sizeof letters), umemOK);
  umemLayout layout = {.size = sizeof layout,
                       .item_size = 1,
                       .rank = 1,
                       .extents = (size_t[]){4},
                       .src_strides = (ptrdiff_t[]){2}};
  assert_int_equal(umem_copy_strided(&old, adr, &old.host, (uintptr_t)picked, &layout), umemOK);
  assert_string_equal(picked, "abcd");
  umem_free(&old, adr);
}

static void connects_and_syncs(void **state UNUSED) {
  uintptr_t adr = umem_calloc(&old, 1, 100);
  uintptr_t host_adr = umem_connect(&old, adr, 100, &old.host, 64);
  assert_int_not_equal(host_adr, 0);
  ((char *)host_adr)[99] = 5;
  assert_int_equal(umem_sync_from(&old, adr, &old.host, host_adr, 100), umemOK);
  assert_int_equal(pointer(adr)[99], 5);
  assert_int_equal(umem_disconnect(&old, adr, &old.host, host_adr, 64), umemOK);
  umem_free(&old, adr);
}

static void expect_defaults(void) {
  umemInfo info = UMEM_INFO_INIT;
  assert_int_equal(umem_synchronize(&old), umemOK);
  assert_int_equal(umem_wait(&old, &old.host), umemOK);
  assert_int_equal(umem_wait(&old.host, &old), umemOK);
  assert_int_equal(umem_flush(&old), umemOK);
  assert_int_equal(umem_trim(&old, 0), umemOK);
  assert_int_equal(umem_get_info(&old, &info), umemOK);
  assert_true(info.capacity == UMEM_UNKNOWN);
  uintptr_t adr = umem_realloc(&old, umem_null(&old), 0, 10);
  assert_int_equal(umem_set(&old, adr, 9, 10), umemOK);
  adr = umem_realloc(&old, adr, 10, 1000);
  assert_int_equal(pointer(adr)[9], 9);
  umem_free(&old, adr);
  assert_false(umem_is_same_device(&old, &old.host));
  assert_true(umem_is_ok(&old));
}

static void later_methods_have_their_defaults(void **state UNUSED) { expect_defaults(); }

/* What is no block is refused by the default before its bytes are read, where addresses are
 * pointers. */
static void resizing_what_is_no_block_is_refused(void **state UNUSED) {
  uintptr_t adr = umem_alloc(&old, 100);
  assert_int_equal(umem_set(&old, adr, 3, 100), umemOK);
  old.super.capabilities |= umemCpuReadable; /* of a 11-method binary that says so */
  old.super.alignment = 16;
  assert_int_equal(umem_realloc(&old, adr, 100, 200), 0); /* KEY makes it an address of nobody's */
  assert_int_equal(umem_get_status(&old), umemValueError);
  assert_int_equal(umem_realloc(&old, 4096, SIZE_MAX, 200), 0);
  assert_int_equal(umem_get_status(&old), umemValueError);
  umem_clear_status(&old);
  old.super.capabilities &= ~(uint32_t)umemCpuReadable;
  adr = umem_realloc(&old, adr, 100, 200);
  assert_int_equal(pointer(adr)[99], 3);
  umem_free(&old, adr);
}

/* Of every length between the first header's and one that is newer than this library. */
static void tables_of_other_lengths(void **state UNUSED) {
  for (size_t count = first_methods; count < 3 * first_methods; count++) {
    open_with(count);
    expect_defaults();
    close_old(NULL);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_old, close_old)

int main(void) {
  struct CMUnitTest const tests[] = {
      TEST(allocates_sets_and_frees),
      TEST(aligns),
      TEST(copies_to_host_and_back_and_to_itself),
      TEST(copies_strided),
      TEST(connects_and_syncs),
      TEST(later_methods_have_their_defaults),
      TEST(resizing_what_is_no_block_is_refused),
      cmocka_unit_test(tables_of_other_lengths),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
