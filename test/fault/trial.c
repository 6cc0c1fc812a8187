
#include "fault/trial.h"

Place const places[] = {
    {.name = "host", .kind = kindHost},
    {.name = "fake", .kind = kindFake},
    {.name = "file r", .kind = kindFile, .mode = "r"},
    {.name = "file r+", .kind = kindFile, .mode = "r+"},
    {.name = "file w", .kind = kindFile, .mode = "w"},
    {.name = "file w+", .kind = kindFile, .mode = "w+"},
    {.name = "file w+, new", .kind = kindFile, .mode = "w+", .fresh = true},
    {.name = "file a", .kind = kindFile, .mode = "a"},
    {.name = "file a+", .kind = kindFile, .mode = "a+"},
    {.name = "file scratch", .kind = kindFile, .mode = "w+", .scratch = true},
    {.name = "file adopted", .kind = kindFile, .mode = "r+", .adopts = true},
    {.name = "mmap r", .kind = kindMMap, .mode = "r"},
    {.name = "mmap r+", .kind = kindMMap, .mode = "r+"},
    {.name = "mmap w+", .kind = kindMMap, .mode = "w+"},
    {.name = "mmap a+", .kind = kindMMap, .mode = "a+"},
    {.name = "mmap a+, new", .kind = kindMMap, .mode = "a+", .fresh = true},
    {.name = "mmap scratch", .kind = kindMMap, .mode = "w+", .scratch = true},
};
size_t const place_count = sizeof places / sizeof *places;

Place const *place_by_name(char const *name) {
  for (size_t i = 0; i < place_count; i++)
    if (!strcmp(places[i].name, name)) return &places[i];
  abort();
}

bool place_keeps_file(Place const *place) {
  return place->mode && !place->scratch && !place->fresh && place->mode[0] != 'w';
}

unsigned char old_byte(size_t offset) {
  return (unsigned char)(offset * 2654435761u >> 11 ^ offset >> 3);
}

void trial_complain(Trial *trial, char const *what, int line) {
  inject_reset();
  print_error("on %s, scenario %s, %s at call %lu, line %d:\n  thread: %s \"%s\"\n",
              trial->place->name, trial->scenario, trial->fault, trial->nth, line,
              umem_get_status_name(umem_thread_status()), umem_thread_message());
  print_error("  context: %s \"%s\"\n", umem_get_status_name(umem_get_status(trial->ctx)),
              umem_get_message(trial->ctx));
  fail_msg("%s", what);
  abort(); /* not reached: fail_msg leaves the test */
}

/* ---- the system ---- */

/* Also for children, where cmocka must not take over. */
static void must(bool condition, char const *what) {
  if (condition) return;
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  abort();
}

long open_descriptors(void) { return count_entries("/proc/self/fd", ""); }

void write_file(char const *path, size_t nbytes) {
  SCOPED(free_bytes) unsigned char *bytes = malloc(nbytes + 1);
  must(bytes, "no memory");
  for (size_t i = 0; i < nbytes; i++) bytes[i] = old_byte(i);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  must(fd >= 0, path);
  must(pwrite(fd, bytes, nbytes, 0) == (ssize_t)nbytes, path);
  must(close(fd) == 0, path);
}

size_t read_file(char const *path, unsigned char *bytes, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  must(fd >= 0, path);
  struct stat status;
  must(fstat(fd, &status) == 0, path);
  size_t length = (size_t)status.st_size;
  if (size > length) size = length;
  must(pread(fd, bytes, size, 0) == (ssize_t)size, path);
  must(close(fd) == 0, path);
  return length;
}

size_t file_length(char const *path) { return read_file(path, NULL, 0); }

/* ---- a trial ---- */

static size_t live_blocks(Trial const *trial) {
  return trial->row->records ? trial->row->records(trial->peer).blocks : 0;
}

void trial_prepare(Trial *trial, Place const *place, char const *peer, Spans *written) {
  inject_pause();
  *trial = (Trial){.place = place, .scenario = "?", .fault = "?"};
  trial->written = written ? written : &trial->own_spans;
  trial->descriptors = open_descriptors();
  trial->mapped = inject_mapped();
  trial->ctx = &trial->own.super;
  if (place->mode && !place->scratch) {
    temporary_name(trial->path, sizeof trial->path);
    if (!place->fresh) write_file(trial->path, old_size);
  }
  assert_int_equal(umemHost_ctor(&trial->host), umemOK);
  if (peer) {
    trial->row = backend_by_name(peer);
    assert_non_null(trial->row);
    trial->peer = backend_open(trial->row);
    assert_non_null(trial->peer);
    trial->peer_blocks = live_blocks(trial);
  }
  umem_thread_clear();
  trial->failures = umem_thread_failures();
  inject_resume();
}

static umemStatusType adopt(Trial *trial) {
  inject_pause();
  int fd = open(trial->path, O_RDWR | O_CLOEXEC);
  assert_true(fd >= 0);
  inject_resume();
  umemStatusType status = umemFile_adopt(&trial->own.file, fd);
  inject_pause();
  if (status != umemOK) assert_return_code(close(fd), errno); /* it is still ours */
  inject_resume();
  return status;
}

umemStatusType trial_construct(Trial *trial) {
  char const *path = trial->place->scratch ? NULL : trial->path;
  char const *mode = trial->place->mode;
  switch (trial->place->kind) {
  case kindHost:
    return umemHost_ctor(&trial->own.host);
  case kindMMap:
    return umemMMap_ctor(&trial->own.mmap, path, mode);
  case kindFake:
    return fake_ctor(&trial->own.fake);
  default:
    break;
  }
  return trial->place->adopts ? adopt(trial) : umemFile_ctor(&trial->own.file, path, mode);
}

void trial_open(Trial *trial, Place const *place, char const *peer) {
  trial_prepare(trial, place, peer, NULL);
  REQUIRE(trial, trial_construct(trial) == umemOK);
}

static bool was_written(Spans const *spans, size_t offset) {
  for (size_t i = 0; i < spans->count; i++)
    if (spans->items[i].start <= offset && offset < spans->items[i].end) return true;
  return false;
}

/* Whether the file still begins with what it held before, but for the bytes that were written. */
static bool is_kept(Trial *trial) {
  static unsigned char bytes[old_size];
  if (read_file(trial->path, bytes, sizeof bytes) < old_size) return false;
  for (size_t i = 0; i < old_size; i++)
    if (bytes[i] != old_byte(i) && !was_written(trial->written, i)) return false;
  return true;
}

bool trial_file_is_untouched(Trial *trial) {
  static unsigned char bytes[old_size];
  if (!*trial->path || trial->place->fresh) return true;
  inject_pause();
  bool same = read_file(trial->path, bytes, sizeof bytes) == old_size;
  for (size_t i = 0; i < old_size; i++) same = same && bytes[i] == old_byte(i);
  inject_resume();
  return same;
}

bool trial_holds_nothing(Trial *trial) {
  if (trial->place->kind == kindFake) return fake_store_blocks(trial->own.fake.store) == 0;
  if (!*trial->path || !(trial->ctx->capabilities & umemWritable)) return true;
  inject_pause();
  size_t before = place_keeps_file(trial->place) ? old_size : 0;
  bool all = umem_trim(trial->ctx, 0) == umemOK;
  size_t now = file_length(trial->path);
  all = all && (trial->place->adopts || trial->unsure ? now >= before : now == before);
  inject_resume();
  return all;
}

void trial_finish(Trial *trial) {
  inject_pause();
  if (place_keeps_file(trial->place)) REQUIRE(trial, is_kept(trial));
  if (trial->peer) {
    REQUIRE(trial, live_blocks(trial) == trial->peer_blocks);
    backend_close(trial->row, trial->peer);
  }
  umem_dtor(&trial->host);
  if (*trial->path) unlink(trial->path);
  REQUIRE(trial, open_descriptors() == trial->descriptors);
  REQUIRE(trial, inject_mapped() == trial->mapped);
  inject_resume();
}

void trial_close(Trial *trial) {
  umem_dtor(trial->ctx);
  REQUIRE(trial, umem_thread_status() == umemOK);
  trial_finish(trial);
}

/* ---- steps ---- */

/* Whether the thread recorded something since the last step; the first failure is the trial's. */
static bool has_failed(Trial *trial) {
  bool failed = umem_thread_failures() != trial->failures;
  trial->failures = umem_thread_failures();
  if (failed && trial->result == umemOK) trial->result = umem_thread_status();
  return failed;
}

bool trial_step(Trial *trial, umemStatusType status, char const *call, int line) {
  bool failed = has_failed(trial);
  if (failed != (status != umemOK)) trial_complain(trial, call, line);
  if (failed && status != umem_thread_status()) trial_complain(trial, call, line);
  return !failed;
}

bool trial_got(Trial *trial, void *ctx, uintptr_t adr, char const *call, int line) {
  bool failed = has_failed(trial);
  if (failed != (adr == umem_null(ctx))) trial_complain(trial, call, line);
  return !failed;
}

void trial_settle(Trial *trial) { has_failed(trial); }

void trial_free(Trial *trial, void *ctx, uintptr_t adr) {
  umem_free(ctx, adr);
  trial_settle(trial);
}

void trial_note(Trial *trial, uintptr_t adr, size_t nbytes) {
  if (!place_keeps_file(trial->place) || trial->place->mode[0] == 'a') return;
  inject_pause();
  uintptr_t start = adr;
  if (trial->place->kind == kindMMap) start = umemMMap_offset(&trial->own.mmap, adr);
  inject_resume();
  Spans *spans = trial->written;
  for (size_t i = 0; i < spans->count; i++)
    if (spans->items[i].start <= start && start + nbytes <= spans->items[i].end) return;
  assert_true(spans->count < sizeof spans->items / sizeof *spans->items);
  spans->items[spans->count++] = (Span){start, start + nbytes};
}

/* ---- with all faults held back ---- */

void trial_peek(Trial *trial, uintptr_t adr, unsigned char *bytes, size_t nbytes) {
  inject_pause();
  if (trial->place->kind == kindHost || trial->place->kind == kindMMap) {
    memcpy(bytes, (void const *)adr, nbytes);
  } else if (*trial->path) {
    int fd = open(trial->path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(pread(fd, bytes, nbytes, (off_t)adr) == (ssize_t)nbytes);
    assert_return_code(close(fd), errno);
  } else {
    REQUIRE(trial, umem_copy_to(trial->ctx, adr, &trial->host, (uintptr_t)bytes, nbytes) == umemOK);
  }
  inject_resume();
}

bool trial_holds(Trial *trial, uintptr_t adr, unsigned char const *bytes, size_t nbytes) {
  inject_pause();
  unsigned char *found = malloc(nbytes);
  assert_non_null(found);
  trial_peek(trial, adr, found, nbytes);
  bool same = !memcmp(found, bytes, nbytes);
  free(found);
  inject_resume();
  return same;
}

uintptr_t trial_block(Trial *trial, unsigned char *bytes, size_t nbytes) {
  inject_pause();
  uintptr_t adr = umem_alloc(trial->ctx, nbytes);
  REQUIRE(trial, adr != umem_null(trial->ctx));
  if (trial->ctx->capabilities & umemWritable) {
    for (size_t i = 0; i < nbytes; i++) bytes[i] = (unsigned char)(i * 167 >> 3 ^ i);
    trial_note(trial, adr, nbytes);
    REQUIRE(trial,
            umem_copy_from(trial->ctx, adr, &trial->host, (uintptr_t)bytes, nbytes) == umemOK);
  } else {
    trial_peek(trial, adr, bytes, nbytes);
  }
  trial->failures = umem_thread_failures();
  inject_resume();
  return adr;
}
