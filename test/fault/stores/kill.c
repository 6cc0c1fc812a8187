/* kill.c - the process is killed between two calls: what it had written is in the file, what was
 * there before is untouched, and the next writer can start at once. */

#include "fault/trial.h"

enum { step_count = 12, block = 3000 };

/* What the child reports after each step: these bytes of the file have these values. */
typedef struct Report {
  size_t step;
  uintptr_t offset;
  size_t nbytes; /* 0: nothing new was written */
} Report;

typedef struct Job {
  Place const *place;
  char path[256];
  int go[2], done[2]; /* pipes: parent to child, child to parent */
} Job;

/* The byte i of what a step writes. */
static unsigned char step_byte(size_t step, size_t i) {
  if (step % 4 == 2) return 0;
  return step % 4 == 1 ? (unsigned char)(step + 100) : (unsigned char)(i * 7 + step);
}

/* ---- the child ---- */

static uintptr_t offset_of(umemVirtual *ctx, PlaceKind kind, uintptr_t adr) {
  return kind == kindMMap ? umemMMap_offset((umemMMap *)ctx, adr) : adr;
}

/* Through the pointer, where there is one. */
static void fill_by_hand(umemVirtual *ctx, PlaceKind kind, uintptr_t adr,
                         unsigned char const *bytes) {
  if (kind == kindMMap)
    memcpy((void *)adr, bytes, block);
  else
    EXPECT(umem_set(ctx, adr, bytes[0], block) == umemOK);
}

/* In turns: a copy, a set, a calloc, and a flush or a trim. */
static Report write_step(umemVirtual *ctx, PlaceKind kind, size_t step) {
  umemHost host;
  unsigned char bytes[block];
  if (step % 4 == 3) {
    EXPECT((step % 8 == 3 ? umem_flush(ctx) : umem_trim(ctx, 0)) == umemOK);
    return (Report){step, 0, 0};
  }
  uintptr_t adr = step % 4 == 2 ? umem_calloc(ctx, 1, block) : umem_alloc(ctx, block);
  EXPECT(adr != umem_null(ctx));
  for (size_t i = 0; i < block; i++) bytes[i] = step_byte(step, i);
  umemHost_ctor(&host);
  if (step % 4 == 0) EXPECT(umem_copy_from(ctx, adr, &host, (uintptr_t)bytes, block) == umemOK);
  if (step % 8 == 1) EXPECT(umem_set(ctx, adr, step_byte(step, 0), block) == umemOK);
  if (step % 8 == 5) fill_by_hand(ctx, kind, adr, bytes);
  umem_dtor(&host);
  return (Report){step, offset_of(ctx, kind, adr), block};
}

static void work(void *argument) {
  Job const *job = argument;
  Any ctx;
  char go;
  close(job->go[1]);
  if (job->place->kind == kindFile)
    EXPECT(umemFile_ctor(&ctx.file, job->path, job->place->mode) == umemOK);
  else
    EXPECT(umemMMap_ctor(&ctx.mmap, job->path, job->place->mode) == umemOK);
  for (size_t step = 0; step < step_count; step++) {
    EXPECT(read(job->go[0], &go, 1) == 1);
    Report report = write_step(&ctx.super, job->place->kind, step);
    EXPECT(write(job->done[1], &report, sizeof report) == sizeof report);
  }
  pause();
}

/* ---- the parent ---- */

/* The bytes that must be in the file, and which of them are known. */
typedef struct Expected {
  size_t length;
  unsigned char bytes[old_size + step_count * (block + 16) + 16];
  bool known[old_size + step_count * (block + 16) + 16];
} Expected;

static void begin(Expected *expected, Place const *place) {
  memset(expected, 0, sizeof *expected);
  if (place->mode[0] == 'w') return;
  expected->length = old_size;
  for (size_t i = 0; i < old_size; i++) {
    expected->bytes[i] = old_byte(i);
    expected->known[i] = true;
  }
}

static void note(Expected *expected, Report const *report) {
  size_t end = report->offset + report->nbytes;
  assert_true(end <= sizeof expected->bytes);
  if (report->nbytes && end > expected->length) expected->length = end;
  for (size_t i = 0; i < report->nbytes; i++) {
    expected->bytes[report->offset + i] = step_byte(report->step, i);
    expected->known[report->offset + i] = true;
  }
}

/* A step that was begun but not reported may have written its block: the place of the last one is
 * not known, only that it is the next in order. */
static void forget(Expected *expected, uintptr_t offset, size_t nbytes) {
  for (size_t i = offset; i < offset + nbytes && i < sizeof expected->known; i++)
    expected->known[i] = false;
}

static void check_file(Job const *job, Expected const *expected) {
  static unsigned char found[sizeof expected->bytes];
  umemFile file;
  CONTEXT(umemHost, host);
  assert_int_equal(umemFile_ctor(&file, job->path, "r+"), umemOK); /* no lock is left */
  assert_true(file_length(job->path) >= expected->length);
  if (expected->length)
    assert_int_equal(umem_copy_to(&file, 0, &host, (uintptr_t)found, expected->length), umemOK);
  for (size_t i = 0; i < expected->length; i++)
    if (expected->known[i]) assert_int_equal(found[i], expected->bytes[i]);
  umem_dtor(&file);
}

static pid_t begin_job(Job *job, Place const *place) {
  job->place = place;
  temporary_name(job->path, sizeof job->path);
  write_file(job->path, old_size);
  assert_int_equal(pipe(job->go), 0);
  assert_int_equal(pipe(job->done), 0);
  pid_t child = child_start(work, job);
  close(job->go[0]);
  close(job->done[1]);
  return child;
}

static void close_job(Job *job) {
  close(job->go[1]);
  close(job->done[0]);
  unlink(job->path);
}

/* Killed while it waits to be told to go on, after `steps` steps. */
static void kill_after(Place const *place, size_t steps) {
  static Expected expected;
  Job job;
  Report report;
  begin(&expected, place);
  pid_t child = begin_job(&job, place);
  for (size_t step = 0; step < steps; step++) {
    assert_int_equal(write(job.go[1], "g", 1), 1);
    assert_int_equal(read(job.done[0], &report, sizeof report), sizeof report);
    note(&expected, &report);
  }
  child_kill(child);
  check_file(&job, &expected);
  close_job(&job);
}

static void killed_between_calls(void **state) {
  for (size_t steps = 0; steps <= step_count; steps++) kill_after(*state, steps);
}

/* Killed at any time: what was reported is there; only one step more can have been under way, and
 * it wrote to a block of its own. In r+ that block is over old bytes, next to those reported. */
static void kill_at(Place const *place, long nanoseconds) {
  static Expected expected;
  Job job;
  Report report;
  begin(&expected, place);
  pid_t child = begin_job(&job, place);
  for (size_t step = 0; step < step_count; step++) assert_int_equal(write(job.go[1], "g", 1), 1);
  nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
  child_kill(child);
  uintptr_t end = 0;
  while (read(job.done[0], &report, sizeof report) == sizeof report) {
    note(&expected, &report);
    if (report.nbytes) end = report.offset + report.nbytes;
  }
  if (place->mode[0] == 'r') forget(&expected, end, block + 32);
  check_file(&job, &expected);
  close_job(&job);
}

static void killed_at_any_time(void **state) {
  for (long microseconds = 0; microseconds < 2000; microseconds += 100)
    kill_at(*state, microseconds * 1000);
}

int main(void) {
  for (size_t i = 0; i < place_count; i++) {
    Place const *place = &places[i];
    bool writes = place->mode && !place->scratch && !place->adopts && !place->fresh &&
                  strcmp(place->mode, "r");
    if (!writes) continue;
    add_case(killed_between_calls, place, "%s, killed between calls", place->name);
    add_case(killed_at_any_time, place, "%s, killed at any time", place->name);
  }
  return run_cases(NULL, NULL);
}
