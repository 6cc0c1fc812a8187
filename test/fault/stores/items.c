/* items.c - copies of single items go through mapped pages, which can go away while they are
 * copied: another process cuts the file, or the disk is full. The process lives, and a status says
 * what has happened. */
#include "fault/trial.h"

enum { item = 16, stride = 400, count = 5000, length = count * stride, rounds = 60 };

static umemHost host;
static unsigned char packed[count * item], found[count * item];

static umemLayout layout_of(bool to_file) {
  static size_t const extents[] = {count};
  static ptrdiff_t const strides[] = {stride};
  return (umemLayout){.size = sizeof(umemLayout),
                      .item_size = item,
                      .rank = 1,
                      .extents = extents,
                      .src_strides = to_file ? NULL : strides,
                      .dst_strides = to_file ? strides : NULL};
}

static void open_own(Any *ctx, bool mapped, char const *name, char const *mode, bool sparse) {
  umemFileOptions options = UMEM_FILE_OPTIONS_INIT;
  if (sparse) options.reserve = umemReserveNone;
  EXPECT((mapped ? umemMMap_ctor_with(&ctx->mmap, name, mode, &options)
                 : umemFile_ctor_with(&ctx->file, name, mode, &options)) == umemOK);
}

/* ---- cut ---- */

/* Cuts the file and makes it longer again until it is killed. */
static void cut_for_ever(void *path) {
  for (unsigned i = 0;; i++) {
    EXPECT(truncate(path, (i * 4096) % length) == 0);
    EXPECT(truncate(path, length) == 0);
  }
}

static umemStatusType copy_once(Any *ctx, uintptr_t adr, bool to_file) {
  umemLayout layout = layout_of(to_file);
  return to_file ? umem_copy_strided(&host, (uintptr_t)packed, ctx, adr, &layout)
                 : umem_copy_strided(ctx, adr, &host, (uintptr_t)found, &layout);
}

/* Each item read is what was written, or zero where a cut has taken it. */
static void require_items(void) {
  for (size_t i = 0; i < count * item; i++) assert_true(found[i] == packed[i] || !found[i]);
}

/* A block that has lost bytes is refused until it is freed. A new one makes the file longer, unless
 * it is cut meanwhile. */
static uintptr_t renew(Any *ctx, uintptr_t adr) {
  assert_int_equal(umem_clear_status(ctx), umemOK);
  umem_thread_clear();
  umem_free(ctx, adr);
  adr = umem_alloc(ctx, length);
  assert_true(adr != umem_null(ctx));
  return adr;
}

static void copy_while_others_cut(bool mapped) {
  Any ctx;
  SCOPED(unlink_path) char path[256];
  temporary_name(path, sizeof path);
  assert_int_equal(umemHost_ctor(&host), umemOK);
  memset(packed, 0x5A, sizeof packed);
  open_own(&ctx, mapped, path, "w+", true);
  uintptr_t adr = umem_alloc(&ctx, length);
  assert_true(adr != umem_null(&ctx));
  pid_t other = child_start(cut_for_ever, path);
  unsigned whole = 0, refused = 0;
  for (unsigned i = 0; i < rounds; i++) {
    umemStatusType status = copy_once(&ctx, adr, i % 2 == 0);
    if (status == umemOK) {
      whole++;
      if (i % 2) require_items();
      continue;
    }
    refused++;
    assert_int_equal(status, umemIOError);
    assert_int_equal(umem_get_status(&ctx), umemIOError);
    assert_non_null(strstr(umem_get_message(&ctx), "truncated by another process"));
    adr = renew(&ctx, adr);
  }
  child_kill(other);
  assert_int_equal(whole + refused, rounds);
  assert_int_equal(truncate(path, length), 0);
  adr = renew(&ctx, adr);
  assert_int_equal(copy_once(&ctx, adr, true), umemOK); /* and it goes on */
  assert_int_equal(copy_once(&ctx, adr, false), umemOK);
  assert_memory_equal(packed, found, sizeof packed);
  DESTRUCT(&ctx, &host);
}

TEST_CASE(others_cut_a_file) { copy_while_others_cut(false); }

TEST_CASE(others_cut_a_mapped_file) { copy_while_others_cut(true); }

/* ---- a full disk ---- */

/* The holes of a sparse file are filled until there is no page left. */
static void fill_holes(void *mapped) {
  Any ctx;
  SmallDisk disk;
  char path[256];
  if (!small_disk_mount(&disk, "tmpfs", 1)) _exit(child_not_permitted);
  snprintf(path, sizeof path, "%s/a.bin", disk.folder);
  EXPECT(umemHost_ctor(&host) == umemOK);
  open_own(&ctx, mapped != NULL, path, "w+", true);
  uintptr_t adr = umem_alloc(&ctx, length);
  EXPECT(adr != umem_null(&ctx));
  EXPECT(copy_once(&ctx, adr, true) == umemIOError);
  EXPECT(umem_get_status(&ctx) == umemIOError);
  EXPECT(strstr(umem_get_message(&ctx), strerror(ENOSPC)));
  EXPECT(umem_clear_status(&ctx) == umemOK);
  EXPECT(copy_once(&ctx, adr, false) == umemOK);
  EXPECT(found[0] == packed[0]);
  DESTRUCT(&ctx, &host);
  unlink(path);
  small_disk_unmount(&disk);
}

TEST_CASE(a_full_disk) {
  static char yes;
  memset(packed, 0x5A, sizeof packed);
  if (!child_run(fill_holes, NULL) || !child_run(fill_holes, &yes)) {
    print_message("mounting is not permitted here\n");
    skip();
  }
}

/* ---- no mapping ---- */

/* The n-th mmap fails, or all from there on, for each of them: a smaller mapping or calls do the
 * work. Nothing stays mapped. */
static void fail_mappings(bool lasting) {
  SCOPED(unlink_path) char path[256];
  temporary_name(path, sizeof path);
  assert_int_equal(umemHost_ctor(&host), umemOK);
  for (size_t i = 0; i < sizeof packed; i++) packed[i] = (unsigned char)(i * 31 >> 3);
  size_t before = inject_mapped();
  for (unsigned long nth = 1;; nth++) {
    Any ctx;
    open_own(&ctx, false, path, "w+", false);
    uintptr_t adr = umem_alloc(&ctx, length);
    memset(found, 0, sizeof found);
    inject_fail(callMap, nth, ENOMEM, lasting);
    assert_int_equal(copy_once(&ctx, adr, true), umemOK);
    assert_int_equal(copy_once(&ctx, adr, false), umemOK);
    unsigned long met = inject_off();
    assert_memory_equal(packed, found, sizeof packed);
    assert_true(umem_is_ok(&ctx) && umem_thread_status() == umemOK);
    umem_dtor(&ctx);
    assert_int_equal(inject_mapped(), before);
    if (!met) break;
  }
  umem_dtor(&host);
}

TEST_CASE(mappings_that_fail) {
  fail_mappings(false);
  fail_mappings(true);
}

/* A file system without mappings: a transpose makes one call for some hundred items, however far
 * apart the rows are. */
TEST_CASE(transposes_without_mappings) {
  enum { edge = 1000, pitch = 64 << 10 };
  static size_t const extents[] = {edge, edge};
  static ptrdiff_t const rows[] = {pitch, sizeof(double)}, across[] = {sizeof(double), pitch};
  umemLayout const in = {sizeof in, sizeof(double), 2, extents, NULL, rows};
  umemLayout const turned = {sizeof turned, sizeof(double), 2, extents, across, NULL};
  size_t const size = (size_t)edge * edge * sizeof(double);
  SCOPED(unlink_path) char path[256], other[256];
  Any from, to;
  SCOPED_BYTES(double, values, size);
  for (size_t i = 0; i < (size_t)edge * edge; i++) values[i] = (double)i;
  temporary_name(path, sizeof path);
  temporary_name(other, sizeof other);
  assert_int_equal(umemHost_ctor(&host), umemOK);
  open_own(&from, false, path, "w+", true);
  open_own(&to, false, other, "w+", true);
  uintptr_t src = umem_alloc(&from, (size_t)edge * pitch), dst = umem_alloc(&to, size);
  assert_int_equal(umem_copy_strided(&host, (uintptr_t)values, &from, src, &in), umemOK);
  inject_count();
  inject_lacking(callMap, ENODEV);
  umem_trim(&from, 0); /* no mapping from before */
  assert_int_equal(umem_copy_strided(&from, src, &to, dst, &turned), umemOK);
  unsigned long calls = inject_calls(callRead) + inject_calls(callWrite);
  inject_lacking(callMap, 0);
  inject_off();
  assert_in_range(calls, 1, edge * edge / 100);
  assert_int_equal(umem_copy_to(&to, dst, &host, (uintptr_t)values, size), umemOK);
  for (size_t i = 0; i < (size_t)edge * edge; i++) {
    size_t whence = i % edge * edge + i / edge;
    if (values[i] != (double)whence) fail_msg("item %zu is wrong", i);
  }
  DESTRUCT(&to, &from, &host);
}

/* A short set is one call wherever it begins: only pieces of long ones end at multiples of their
 * size. */
TEST_CASE(a_short_set_is_one_write) {
  SCOPED(unlink_path) char path[256];
  SCOPED(umem_dtor) Any file;
  temporary_name(path, sizeof path);
  open_own(&file, false, path, "w+", true);
  uintptr_t adr = umem_alloc(&file, 1 << 20);
  for (size_t n = 24; n < 4000; n *= 5) { /* longer ones may be cut, see store_ahead.c */
    inject_count();
    for (size_t i = 0; i < 100; i++) assert_int_equal(umem_set(&file, adr + 296 * i, 1, n), umemOK);
    assert_int_equal(inject_calls(callWrite), 100);
    inject_off();
  }
}
