/* lock.c - one writer at a time, in this process or another; readers beside it. */
#include "fault/trial.h"

typedef umemStatusType Open(Any *ctx, char const *path, char const *mode);

static umemStatusType open_file(Any *ctx, char const *path, char const *mode) {
  return umemFile_ctor(&ctx->file, path, mode);
}

static umemStatusType open_mmap(Any *ctx, char const *path, char const *mode) {
  return umemMMap_ctor(&ctx->mmap, path, mode);
}

/* By a descriptor of its own; modes as those of open. */
static umemStatusType open_adopted(Any *ctx, char const *path, char const *mode) {
  int fd = open(path, (mode[1] == '+' ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  umemStatusType status = umemFile_adopt(&ctx->file, fd);
  if (status != umemOK) close(fd);
  return status;
}

typedef struct Way {
  char const *name;
  Open *open;
  char const *mode;
} Way;

static Way const writers[] = {
    {"file r+", open_file, "r+"}, {"file w", open_file, "w"},   {"file w+", open_file, "w+"},
    {"file a", open_file, "a"},   {"file a+", open_file, "a+"}, {"mmap r+", open_mmap, "r+"},
    {"mmap w+", open_mmap, "w+"}, {"mmap a+", open_mmap, "a+"}, {"adopted r+", open_adopted, "r+"},
};
static Way const readers[] = {
    {"file r", open_file, "r"}, {"mmap r", open_mmap, "r"}, {"adopted r", open_adopted, "r"}};

enum {
  writer_count = sizeof writers / sizeof *writers,
  reader_count = sizeof readers / sizeof *readers
};

static char path[256];
static unsigned char bytes[old_size], found[old_size];

static void set_up(void **state UNUSED) {
  temporary_name(path, sizeof path);
  write_file(path, old_size);
  for (size_t i = 0; i < old_size; i++) bytes[i] = old_byte(i);
}

static void tear_down(void **state UNUSED) { assert_int_equal(unlink(path), 0); }

#define LOCK_TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

static bool file_is_untouched(void) {
  return read_file(path, found, old_size) == old_size && !memcmp(bytes, found, old_size);
}

/* Refused, with the other writer named, and the file not even emptied. */
static bool is_refused(Way const *way) {
  Any second;
  umem_thread_clear();
  bool refused = way->open(&second, path, way->mode) == umemIOError &&
                 umem_get_status(&second) == umemIOError &&
                 strstr(umem_get_message(&second), "another writer") &&
                 umem_thread_status() == umemIOError &&
                 umem_alloc(&second, 1) == umem_null(&second);
  umem_dtor(&second);
  umem_thread_clear();
  return refused && file_is_untouched();
}

/* Opens and closes; the mode w would empty the file for the next test. */
static bool can_write(void) {
  SCOPED(umem_dtor) Any other;
  return open_file(&other, path, "r+") == umemOK;
}

static bool can_read(Way const *way) {
  Any reader;
  umemHost host;
  memset(found, 0, sizeof found);
  bool good = umemHost_ctor(&host) == umemOK && way->open(&reader, path, way->mode) == umemOK;
  if (good) {
    uintptr_t adr = umem_alloc(&reader, old_size);
    good = adr != umem_null(&reader) &&
           umem_copy_to(&reader, adr, &host, (uintptr_t)found, old_size) == umemOK &&
           !memcmp(bytes, found, old_size);
    umem_dtor(&reader);
  }
  return good;
}

static void try_everything(void *argument) {
  (void)argument;
  for (size_t i = 0; i < writer_count; i++) EXPECT(is_refused(&writers[i]));
  for (size_t i = 0; i < reader_count; i++) EXPECT(can_read(&readers[i]));
}

static void check_with_writer(Way const *first) {
  Any one;
  if (first->mode[0] == 'w') return; /* empties: see a_new_file_is_locked */
  assert_int_equal(first->open(&one, path, first->mode), umemOK);
  for (size_t i = 0; i < writer_count; i++) assert_true(is_refused(&writers[i]));
  for (size_t i = 0; i < reader_count; i++) assert_true(can_read(&readers[i]));
  assert_true(child_run(try_everything, NULL));
  assert_true(umem_is_ok(&one)); /* what happened to others is not its business */
  umem_dtor(&one);
  assert_true(can_write());
}

LOCK_TEST(a_second_writer_is_refused) {
  for (size_t i = 0; i < writer_count; i++) check_with_writer(&writers[i]);
}

LOCK_TEST(a_new_file_is_locked) {
  for (size_t i = 0; i < writer_count; i++) {
    Any one, two;
    if (writers[i].mode[0] != 'w') continue;
    assert_int_equal(writers[i].open(&one, path, writers[i].mode), umemOK);
    assert_int_equal(open_file(&two, path, "r+"), umemIOError);
    umem_dtor(&one);
    assert_true(can_write());
    umem_thread_clear();
  }
}

/* A writer that comes while others read. */
LOCK_TEST(readers_lock_nobody_out) {
  for (size_t i = 0; i < reader_count; i++) {
    Any reader;
    assert_int_equal(readers[i].open(&reader, path, readers[i].mode), umemOK);
    assert_true(can_write());
    umem_dtor(&reader);
  }
}

/* What a writer has written, a reader that is already open sees. */
LOCK_TEST(readers_see_what_is_written) {
  Any writer, reader;
  umemHost host;
  umemHost_ctor(&host);
  for (size_t i = 0; i < reader_count; i++) {
    unsigned char byte = 0, value = (unsigned char)(100 + i);
    assert_int_equal(readers[i].open(&reader, path, readers[i].mode), umemOK);
    assert_int_equal(open_file(&writer, path, "r+"), umemOK);
    uintptr_t seen = umem_alloc(&reader, 500), adr = umem_alloc(&writer, 500);
    assert_int_equal(umem_set(&writer, adr + 400, value, 1), umemOK);
    assert_int_equal(umem_copy_to(&reader, seen + 400, &host, (uintptr_t)&byte, 1), umemOK);
    assert_int_equal(byte, value);
    DESTRUCT(&writer, &reader);
  }
}

/* Holds the lock until it is killed. */
static void hold(void *argument) {
  int const *pipe_ends = argument;
  Any ctx;
  EXPECT(open_file(&ctx, path, "r+") == umemOK);
  EXPECT(write(pipe_ends[1], "x", 1) == 1);
  pause();
}

LOCK_TEST(a_killed_writer_leaves_no_lock) {
  int pipe_ends[2];
  char ready;
  assert_int_equal(pipe(pipe_ends), 0);
  pid_t child = child_start(hold, pipe_ends);
  assert_int_equal(read(pipe_ends[0], &ready, 1), 1);
  for (size_t i = 0; i < writer_count; i++) assert_true(is_refused(&writers[i]));
  child_kill(child);
  assert_true(can_write());
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}
