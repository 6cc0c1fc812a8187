/* log.c - umem/log.h: what becomes a record, and what is in it. */
#include "log_help.h"
#include "fake/doubles.h"

#include <sys/syscall.h>

static umemLog one, two;

/* The record at index i, of this kind. */
static umemLogRecord const *record(size_t i, umemLogKind kind) {
  assert_true(i < trace.count);
  umemLogRecord const *r = &trace.records[i];
  assert_int_equal(r->kind, kind);
  assert_int_equal(r->thread, syscall(SYS_gettid));
  assert_true(r->time >= trace.header.begun);
  return r;
}

#define EXPECT_RECORD(i, what, where, bytes)                                                       \
  do {                                                                                             \
    umemLogRecord const *r_ = record(i, what);                                                     \
    assert_true(r_->adr == (where) && r_->size == (bytes));                                        \
    assert_true(r_->ctx == 1 && r_->status == umemOK && !r_->other_ctx);                           \
  } while (0)

/* ---- records ---- */

LOG_TEST(each_event_is_a_record) {
  void *const below[] = {&host, &fake, &offsets};
  for (int i = 0; i < 3; i++) {
    assert_ok(umemLog_ctor(&one, below[i], &options));
    assert_int_equal(umemLog_number(&one), 1);
    uintptr_t plain = umem_alloc(&one, 100);
    uintptr_t zeroed = umem_calloc(&one, 3, 70);
    uintptr_t aligned = umem_aligned_alloc(&one, 4096, 50);
    uintptr_t moved = umem_realloc(&one, plain, 100, 5000);
    umem_set(&one, moved + 1, 300, 40);
    umem_free(&one, zeroed);
    umem_aligned_free(&one, aligned);
    umem_free(&one, moved);
    end(&one);
    read_back();
    assert_int_equal(trace.count, 9);
    assert_true(trace.header.ended && !trace.incomplete && !trace.overwritten);
    EXPECT_RECORD(0, umemLogAlloc, plain, 100);
    EXPECT_RECORD(1, umemLogAlloc, zeroed, 210);
    EXPECT_RECORD(2, umemLogAlloc, aligned, 50);
    EXPECT_RECORD(3, umemLogResizeBegin, plain, 100);
    EXPECT_RECORD(4, umemLogResizeEnd, moved, 5000);
    EXPECT_RECORD(5, umemLogSet, moved + 1, 40);
    EXPECT_RECORD(6, umemLogFree, zeroed, 0);
    EXPECT_RECORD(7, umemLogFree, aligned, 0);
    EXPECT_RECORD(8, umemLogFree, moved, 0);
    assert_int_equal(trace.records[0].flags, 0);
    assert_int_equal(trace.records[1].flags, umemLogZeroed);
    assert_int_equal(trace.records[2].flags, umemLogAligned);
    assert_int_equal(trace.records[2].log2_alignment, 12);
    assert_true(trace.records[4].other_adr == plain);
    assert_int_equal(trace.records[5].value, 300 - 256);
    assert_int_equal(trace.records[7].flags, umemLogAligned);
    for (size_t k = 1; k < trace.count; k++)
      assert_true(trace.records[k].time >= trace.records[k - 1].time);
  }
}

LOG_TEST(the_contexts_are_named) {
  umemPool pool;
  assert_ok(umemPool_ctor(&pool, &host, NULL));
  assert_ok(umemLog_ctor(&one, &pool, &options));
  read_back();
  assert_int_equal(trace.header.contexts, 1);
  assert_int_equal(trace.header.process, getpid());
  assert_int_equal(trace.header.ended, 0);
  assert_string_equal(trace.contexts[1].name, "Pool over Host");
  assert_true(trace.contexts[1].begun && !trace.contexts[1].ended);
  assert_int_equal(trace.contexts[1].alignment, pool.super.alignment);
  assert_int_equal(trace.contexts[1].type, umemHostDevice);
  assert_int_equal(trace.contexts[1].stream, 0);
  end(&one);
  umem_dtor(&pool);
  read_back();
  assert_true(trace.contexts[1].ended && trace.header.ended >= trace.contexts[1].ended);
}

static char const *name_read_back(void) {
  read_back();
  return trace.contexts[1].name;
}

LOG_TEST(labels_stand_beside_the_names) {
  char longest[UMEM_LABEL_SIZE];
  CONTEXT(umemPool, pool, &host, NULL);
  assert_ok(umem_set_label(&pool, "fields"));
  assert_ok(umemLog_ctor(&one, &pool, &options));
  assert_string_equal(name_read_back(), "Pool \"fields\" over Host");
  assert_ok(umem_set_label(&one, "solver"));
  assert_string_equal(name_read_back(), "\"solver\": Pool \"fields\" over Host");
  assert_ok(umem_set_label(&one, ""));
  assert_string_equal(name_read_back(), "Pool \"fields\" over Host");
  memset(longest, 'x', sizeof longest - 1);
  longest[sizeof longest - 1] = 0;
  assert_ok(umem_set_label(&one, longest)); /* what has no room is cut */
  assert_int_equal(strlen(name_read_back()), sizeof trace.contexts[1].name - 1);
  assert_ok(umem_set_label(&one, NULL));
  assert_ok(umem_set_label(&pool, "late"));
  end(&one);
  assert_string_equal(name_read_back(), "Pool \"late\" over Host");
}

/* That of the innermost context; 0 where there is no order. */
LOG_TEST(the_stream_is_told) {
  umemCudaAsync ordered;
  umemCudaHost pinned;
  umemLimit limit;
  assert_ok(umemCudaAsync_ctor(&ordered, 0, UMEM_STREAM_NEW));
  assert_ok(umemCudaHost_ctor(&pinned, 0));
  assert_ok(umemLimit_ctor(&limit, &ordered, 1000));
  assert_ok(umemLog_ctor(&one, &limit, &options));
  assert_ok(umemLog_ctor(&two, &pinned, &options));
  uintptr_t stream = umemCudaAsync_stream(&ordered);
  assert_true(stream != 0);
  end(&two), end(&one), end(&limit), end(&pinned), end(&ordered);
  read_back();
  assert_true(trace.contexts[1].stream == stream);
  assert_true(trace.contexts[2].stream == 0);
}

/* ---- copies ---- */

static void expect_copy(size_t i, unsigned from, uintptr_t src, unsigned to, uintptr_t dst,
                        uint64_t nbytes) {
  umemLogRecord const *r = record(i, umemLogCopy);
  assert_int_equal(r->ctx, from);
  assert_int_equal(r->other_ctx, to);
  assert_true(r->adr == src && r->other_adr == dst && r->size == nbytes);
  assert_int_equal(r->status, umemOK);
  assert_int_equal(r->flags, 0);
  assert_true(r->duration > 0);
}

LOG_TEST(a_copy_is_one_record_with_both_sides) {
  umemLimit limit;
  assert_ok(umemLog_ctor(&one, &host, &options));
  assert_ok(umemLog_ctor(&two, &fake, &options));
  assert_ok(umemLimit_ctor(&limit, &two, 1000));
  assert_int_equal(umemLog_number(&two), 2);
  uintptr_t a = umem_calloc(&one, 1, 100), b = umem_calloc(&two, 1, 100);
  uintptr_t elsewhere = umem_calloc(&fake, 1, 100);
  assert_ok(umem_copy_to(&one, a, &two, b, 10));
  assert_ok(umem_copy_to(&two, b, &one, a, 11));
  assert_ok(umem_copy_to(&one, a, &limit, b, 12)); /* which is over two */
  assert_ok(umem_copy_from(&one, a, &limit, b, 13));
  assert_ok(umem_copy_to(&one, a, &one, a + 50, 14));
  assert_ok(umem_copy_to(&one, a, &fake, elsewhere, 15));
  assert_ok(umem_copy_from(&two, b, &fake, elsewhere, 16));
  size_t const extents[] = {3, 4};
  ptrdiff_t const strides[] = {20, 4};
  umemLayout const layout = {sizeof layout, 2, 2, extents, strides, strides};
  assert_ok(umem_copy_strided(&two, b, &one, a, &layout));
  umem_free(&one, a);
  umem_free(&two, b);
  umem_free(&fake, elsewhere);
  end(&limit);
  end(&two);
  end(&one);
  read_back();
  assert_int_equal(trace.count, 2 + 8 + 2);
  expect_copy(2, 1, a, 2, b, 10);
  expect_copy(3, 2, b, 1, a, 11);
  expect_copy(4, 1, a, 2, b, 12);
  expect_copy(5, 2, b, 1, a, 13);
  expect_copy(6, 1, a, 1, a + 50, 14);
  expect_copy(7, 1, a, 0, elsewhere, 15);
  expect_copy(8, 0, elsewhere, 2, b, 16);
  expect_copy(9, 2, b, 1, a, 24);
}

/* Of two files each has its own record. */
LOG_TEST(another_file_knows_one_side) {
  char first[BACKEND_PATH_SIZE];
  memcpy(first, path, sizeof first);
  assert_ok(umemLog_ctor(&one, &host, &options));
  assert_true(backend_temp_file(path));
  assert_ok(umemLog_ctor(&two, &fake, &options));
  uintptr_t a = umem_calloc(&one, 1, 100), b = umem_calloc(&two, 1, 100);
  assert_ok(umem_copy_to(&one, a, &two, b, 10));
  umem_free(&one, a);
  umem_free(&two, b);
  end(&two);
  end(&one);
  read_back();
  assert_int_equal(trace.count, 3);
  expect_copy(1, 0, a, 1, b, 10);
  unlink(path);
  memcpy(path, first, sizeof first);
  read_back();
  expect_copy(1, 1, a, 0, b, 10);
}

/* ---- failures ---- */

LOG_TEST(failures_are_in_their_records) {
  umemLimit limit;
  assert_ok(umemLimit_ctor(&limit, &fake, 1000));
  assert_ok(umemLog_ctor(&one, &limit, &options));
  uintptr_t adr = umem_alloc(&one, 100);
  assert_true(umem_alloc(&one, 2000) == 0);
  expect_both(&one, &limit, umemMemoryError, "2000");
  assert_true(umem_realloc(&one, adr, 100, 3000) == 0);
  expect_both(&one, &limit, umemMemoryError, "2900");
  assert_int_equal(umem_set(&one, adr + 90, 1, 20), umemIndexError);
  umem_clear_status(&one), umem_clear_status(&limit), umem_clear_status(&fake);
  umem_free(&one, adr + 16);
  assert_int_equal(umem_get_status(&one), umemValueError);
  umem_clear_status(&one), umem_clear_status(&limit), umem_clear_status(&fake);
  umem_free(&one, adr);
  end(&one);
  end(&limit);
  read_back();
  assert_int_equal(trace.count, 7);
  umemStatusType const expected[] = {umemOK,         umemMemoryError, umemOK, umemMemoryError,
                                     umemIndexError, umemValueError,  umemOK};
  for (size_t i = 0; i < 7; i++) assert_int_equal(trace.records[i].status, expected[i]);
  assert_true(trace.records[1].size == 2000 && trace.records[1].adr == 0);
  assert_int_equal(trace.records[4].kind, umemLogSet);
  assert_true(trace.records[5].kind == umemLogFree && trace.records[5].adr == adr + 16);
}

/* ---- files ---- */

/* This file by another name. */
LOG_TEST(a_file_is_shared_and_then_begun_anew) {
  SCOPED(unlink_path) char other[BACKEND_PATH_SIZE + 8];
  snprintf(other, sizeof other, "%s-link", path);
  assert_ok(umemLog_ctor(&one, &host, &options));
  assert_int_equal(link(path, other), 0);
  options.filename = other;
  options.max_bytes = 1 << 16; /* not looked at */
  assert_ok(umemLog_ctor(&two, &host, &options));
  umem_free(&two, umem_alloc(&two, 1));
  end(&one);
  umem_free(&two, umem_alloc(&two, 2));
  end(&two);
  read_back();
  assert_int_equal(trace.count, 4);
  assert_int_equal(trace.records[3].ctx, 2);
  assert_int_equal(trace.header.capacity, 1 << 18);
  open_small(&one, &host);
  end(&one);
  read_back();
  assert_int_equal(trace.count, 0);
}

static void expect_refusal(umemStatusType type, char const *text) {
  umemLog log;
  expect_status(&log, umemLog_ctor(&log, &host, &options), type, text);
  assert_int_equal(umemLog_number(&log), 0);
  umem_thread_clear();
}

LOG_TEST(bad_options_are_refused) {
  umemLog log;
  expect_status(&log, umemLog_ctor(&log, &host, NULL), umemValueError, "the options are NULL");
  options.size = 7;
  expect_refusal(umemValueError, "the size in the umemLogOptions is 7, too small");
  options.size = sizeof options.size;
  expect_refusal(umemValueError, "no file name");
  options.size = sizeof options;
  options.max_bytes = 65535;
  expect_refusal(umemValueError, "65535 bytes are too few");
  options.max_bytes = UINT64_MAX;
  expect_refusal(umemValueError, "more than a log can have");
  options.max_bytes = 0;
  options.filename = NULL;
  expect_refusal(umemValueError, "no file name");
  options.filename = "";
  expect_refusal(umemValueError, "no file name");
  options.filename = "/nonexistent/log";
  expect_refusal(umemIOError, "cannot open the log \"/nonexistent/log\": No such file");
  options.filename = "/dev/null";
  expect_refusal(umemIOError, "no regular file");
}

LOG_TEST(options_may_be_older) {
  options.max_bytes = 1; /* not there, for who is so short */
  options.size = offsetof(umemLogOptions, max_bytes);
  assert_ok(umemLog_ctor(&one, &host, &options));
  end(&one);
  read_back();
  assert_int_equal(trace.header.capacity, 1 << 18);
}

/* A name given by mistake costs no data. */
LOG_TEST(other_files_are_left_alone) {
  char text[32] = "";
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs("important", file) >= 0 && !fclose(file));
  expect_refusal(umemValueError, "is no log: it is not overwritten");
  file = fopen(path, "r");
  assert_non_null(file);
  assert_non_null(fgets(text, sizeof text, file));
  fclose(file);
  assert_string_equal(text, "important");
}

/* In /tmp another user may know the name, and make an empty file of it that all may write. */
LOG_TEST(a_log_in_a_file_that_others_put_into_a_folder_of_all_is_refused) {
  if (geteuid() != 0) skip();
  char folder[] = "/tmp/umem-log-XXXXXX", planted[64];
  assert_non_null(mkdtemp(folder));
  snprintf(planted, sizeof planted, "%s/log", folder);
  fclose(fopen(planted, "w"));
  options.filename = planted;
  assert_int_equal(chown(planted, 4711, 4711), 0);
  assert_int_equal(chmod(folder, 01777), 0);
  options.max_bytes = 1 << 16;
  assert_int_equal(umemLog_ctor(&one, &host, &options), umemIOError);
  assert_non_null(strstr(umem_get_message(&one), "another user has put it into a folder"));
  umem_thread_clear();
  assert_int_equal(chown(planted, 0, 0), 0);
  open_small(&one, &host);
  end(&one);
  unlink(planted);
  rmdir(folder);
}

/* People link logs to other disks: what is there is begun anew. */
LOG_TEST(a_link_to_a_file_is_followed) {
  SCOPED(unlink_path) char link_name[BACKEND_PATH_SIZE + 8];
  struct stat about;
  snprintf(link_name, sizeof link_name, "%s-link", path);
  assert_int_equal(symlink(path, link_name), 0);
  options.filename = link_name;
  for (int i = 0; i < 2; i++) { /* an empty file, then a log */
    open_small(&one, &host);
    umem_free(&one, umem_alloc(&one, 10));
    end(&one);
    read_back();
    assert_int_equal(trace.count, 2);
    assert_int_equal(lstat(link_name, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
  }
}

/* Through a link to nothing, whoever has set it would choose where a file is made. */
LOG_TEST(a_link_to_nothing_is_refused) {
  SCOPED(unlink_path) char link_name[BACKEND_PATH_SIZE + 8];
  snprintf(link_name, sizeof link_name, "%s-link", path);
  unlink(path);
  assert_int_equal(symlink(path, link_name), 0);
  options.filename = link_name;
  expect_refusal(umemIOError, "-link\": it is a symbolic link to a file that is not there");
  assert_int_equal(access(path, F_OK), -1);
  assert_int_equal(unlink(link_name), 0);
  assert_int_equal(symlink(link_name, link_name), 0);
  expect_refusal(umemIOError, strerror(ELOOP));
}

/* Owner, permissions and names of a log that is there stay; those of a new one are as of any new
 * file. */
LOG_TEST(the_file_stays_the_same) {
  struct stat before, after;
  assert_int_equal(chmod(path, 0640), 0);
  assert_int_equal(stat(path, &before), 0);
  open_small(&one, &host);
  end(&one);
  assert_int_equal(stat(path, &after), 0);
  assert_true(before.st_ino == after.st_ino && after.st_mode == before.st_mode);
  unlink(path);
  mode_t mask = umask(027);
  open_small(&one, &host);
  umask(mask);
  end(&one);
  assert_int_equal(stat(path, &after), 0);
  assert_int_equal(after.st_mode & 0777, 0640);
  assert_int_equal(after.st_nlink, 1);
}

LOG_TEST(a_log_is_opened_by_name) {
  char name[BACKEND_PATH_SIZE + 64];
  snprintf(name, sizeof name, "log+limit+host:?limit=1M&log.file=%s&max=64K", path);
  void *log = umem_open(name);
  assert_non_null(log);
  assert_int_equal(umemLog_number(log), 1);
  umem_free(log, umem_alloc(log, 10));
  assert_ok(umem_close(log));
  read_back();
  assert_int_equal(trace.count, 2);
  assert_int_equal(trace.header.capacity, 256);
  assert_string_equal(trace.contexts[1].name, "Limit over Host");
  assert_null(umem_open("log+host:")); /* the file must be named */
}

LOG_TEST(a_log_has_room_for_255_contexts) {
  open_small(&one, &host);
  for (unsigned i = 2; i < 256; i++) {
    assert_ok(umemLog_ctor(&two, &host, &options));
    assert_int_equal(umemLog_number(&two), i);
    end(&two);
  }
  expect_refusal(umemMemoryError, "the log has had its 255 contexts");
  end(&one);
  read_back();
  assert_int_equal(trace.header.contexts, 255);
}

int main(void) {
  doubles_use();
  return run_cases(NULL, NULL);
}
