/* trace_read.c - reads a log, of which nothing is believed. */
#include "trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- the header ---- */

#define REFUSE(...) return snprintf(trace->why, sizeof trace->why, __VA_ARGS__), false

static bool check_header(Trace *trace, size_t nbytes) {
  umemLogHeader const *header = &trace->header;
  if (memcmp(header->magic, UMEM_LOG_MAGIC, sizeof header->magic) != 0)
    REFUSE("it is no log of umem");
  if (header->byte_order == __builtin_bswap32(umemLog_byte_order))
    REFUSE("it was written on a machine of the other byte order");
  if (header->byte_order != umemLog_byte_order) REFUSE("its header is damaged");
  if (header->version != umemLog_version)
    REFUSE("it is of version %" PRIu32 ", and this program reads %d", header->version,
           umemLog_version);
  if (header->record_size != sizeof(umemLogRecord) ||
      header->context_size != sizeof(umemLogContext) || header->contexts >= umemLog_context_count ||
      !header->capacity || (header->capacity & (header->capacity - 1)) ||
      (header->ended && header->ended < header->begun))
    REFUSE("its header is damaged");
  if ((nbytes - umemLog_ring_at) / sizeof(umemLogRecord) < header->capacity)
    REFUSE("it is truncated: %" PRIu64 " records do not fit into its %zu bytes", header->capacity,
           nbytes);
  return true;
}

/* ---- the records ---- */

/* When the log ends, at the latest. Of one that is not complete, a year from now: clocks differ, and
 * that of the calendar may have been set since the log was begun. */
static uint64_t latest_time(umemLogHeader const *header) {
  uint64_t const second = 1000000000, year = 366 * 24 * 3600 * second;
  time_t seconds = time(NULL);
  uint64_t now = seconds > 0 ? (uint64_t)seconds * second : 0;
  uint64_t span = (now > header->begun_calendar ? now - header->begun_calendar : 0) + year;
  if (header->ended) return header->ended;
  return header->begun < UINT64_MAX - span ? header->begun + span : UINT64_MAX;
}

/* Contexts whose beginning cannot be right begin with the log. */
static void correct_contexts(Trace *trace) {
  for (unsigned ctx = 1; ctx <= trace->header.contexts; ctx++) {
    uint64_t *begun = &trace->contexts[ctx].begun;
    if (*begun < trace->header.begun || *begun > trace->latest) *begun = trace->header.begun;
  }
}

/* Whether it can be of this log. Those of different threads may be out of order. */
static bool is_time(Trace const *trace, umemLogRecord const *record) {
  return record->time >= trace->header.begun && record->time <= trace->latest &&
         record->duration <= trace->latest - record->time;
}

static bool is_sound(Trace const *trace, umemLogRecord const *record) {
  bool has_size = record->kind != umemLogFree;
  return record->kind > 0 && record->kind < umemLog_kinds && is_time(trace, record) &&
         record->ctx <= trace->header.contexts && record->other_ctx <= trace->header.contexts &&
         record->log2_alignment < 64 && (record->size != 0) == has_size &&
         record->size <= UINT64_MAX - (record->status ? 0 : record->adr) &&
         (record->kind != umemLogResizeBegin || !record->status) &&
         (record->kind != umemLogCopy || record->size <= UINT64_MAX - record->other_adr);
}

/* The places of the ring in the order of their records; those that hold another are left out. */
static bool collect(Trace *trace, umemLogRecord const *ring) {
  uint64_t next = trace->header.next, capacity = trace->header.capacity;
  uint64_t first = next > capacity ? next - capacity : 0;
  trace->overwritten = first;
  trace->records = malloc((size_t)(next - first + 1) * sizeof *trace->records);
  if (!trace->records) REFUSE("there is no memory for its %" PRIu64 " records", next - first);
  for (uint64_t n = first; n < next; n++) {
    umemLogRecord record;
    memcpy(&record, &ring[n & (capacity - 1)], sizeof record);
    if (record.number == n + 1 && is_sound(trace, &record))
      trace->records[trace->count++] = record;
    else
      trace->incomplete++;
  }
  return true;
}

bool trace_parse(Trace *trace, void const *bytes, size_t nbytes) {
  memset(trace, 0, sizeof *trace);
  if (nbytes < umemLog_ring_at) {
    bool begins = nbytes >= sizeof trace->header.magic &&
                  memcmp(bytes, UMEM_LOG_MAGIC, sizeof trace->header.magic) == 0;
    REFUSE(begins ? "it is truncated: %zu bytes" : "it is no log of umem: %zu bytes", nbytes);
  }
  memcpy(&trace->header, bytes, sizeof trace->header);
  memcpy(trace->contexts, (char const *)bytes + umemLog_contexts_at, sizeof trace->contexts);
  for (int i = 0; i < umemLog_context_count; i++)
    trace->contexts[i].name[sizeof trace->contexts[i].name - 1] = 0;
  if (!check_header(trace, nbytes)) return false;
  trace->latest = latest_time(&trace->header);
  correct_contexts(trace);
  return collect(trace, (umemLogRecord const *)((char const *)bytes + umemLog_ring_at));
}

/* ---- the file ---- */

/* Of a log that is being written, records may have been overwritten while they were read: those
 * that the ring has no room for by now. */
static void forget_overwritten(Trace *trace, FILE *file) {
  uint64_t next = 0, capacity = trace->header.capacity;
  ssize_t got = pread(fileno(file), &next, sizeof next, offsetof(umemLogHeader, next));
  if (got != sizeof next || next <= trace->header.next) return;
  size_t gone = 0;
  while (gone < trace->count && trace->records[gone].number + capacity <= next) gone++;
  memmove(trace->records, trace->records + gone, (trace->count - gone) * sizeof *trace->records);
  trace->count -= gone;
  trace->overwritten += gone;
}

static bool parse_file(Trace *trace, FILE *file, size_t length) {
  char *bytes = malloc(length + 1);
  if (!bytes) REFUSE("there is no memory for its %zu bytes", length);
  size_t got = fread(bytes, 1, length, file);
  bool read = !ferror(file) && trace_parse(trace, bytes, got);
  if (ferror(file)) snprintf(trace->why, sizeof trace->why, "%s", strerror(errno));
  if (read) forget_overwritten(trace, file);
  free(bytes);
  return read;
}

bool trace_read(Trace *trace, char const *path) {
  memset(trace, 0, sizeof *trace);
  char const *slash = strrchr(path, '/');
  FILE *file = fopen(path, "rb");
  struct stat about;
  bool read = false;
  if (!file || fstat(fileno(file), &about) != 0)
    snprintf(trace->why, sizeof trace->why, "%s", strerror(errno));
  else if (!S_ISREG(about.st_mode))
    snprintf(trace->why, sizeof trace->why, "it is no regular file");
  else
    read = parse_file(trace, file, (size_t)about.st_size);
  if (file) fclose(file);
  trace->file = slash ? slash + 1 : path;
  return read;
}

void trace_close(Trace *trace) {
  free(trace->records);
  trace->records = NULL;
}

/* ---- names and times ---- */

char const *trace_name(Trace const *trace, unsigned ctx, TraceName text) {
  if (ctx)
    snprintf(text, sizeof(TraceName), "%u %s", ctx, trace->contexts[ctx].name);
  else
    snprintf(text, sizeof(TraceName), "elsewhere");
  return text;
}

uint64_t trace_time(Trace const *trace, uint64_t time) {
  return time > trace->header.begun ? time - trace->header.begun : 0;
}
