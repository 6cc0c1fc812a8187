/* trace_read.c - reads a log, of which nothing is believed. */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- where the bytes come from ---- */

/* A file, or memory. */
typedef struct Source {
  int fd; /* -1: memory */
  unsigned char const *bytes;
  uint64_t length; /* of memory */
} Source;

static uint64_t length_of(Source const *source) {
  struct stat about;
  if (source->fd < 0) return source->length;
  return fstat(source->fd, &about) == 0 ? (uint64_t)about.st_size : 0;
}

/* Reads up to nbytes, fewer only where the source ends. -1 and errno when it cannot. */
static ssize_t read_at(Source const *source, void *to, size_t nbytes, uint64_t at) {
  size_t done = 0;
  if (source->fd < 0) {
    if (at >= source->length) return 0;
    done = nbytes < source->length - at ? nbytes : (size_t)(source->length - at);
    memcpy(to, source->bytes + at, done);
  } else {
    while (done < nbytes) {
      ssize_t n = pread(source->fd, (char *)to + done, nbytes - done, (off_t)(at + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return -1;
      if (!n) break;
      done += (size_t)n;
    }
  }
  return (ssize_t)done;
}

/* Where something stands in the file at or after at: nothing does in a hole. */
static uint64_t next_data(Source const *source, uint64_t at) {
  if (source->fd < 0) return at;
  off_t there = lseek(source->fd, (off_t)at, SEEK_DATA);
  if (there < 0) return errno == ENXIO ? UINT64_MAX : at; /* no more; or it does not say */
  return (uint64_t)there;
}

/* ---- the header ---- */

#define REFUSE(...) return snprintf(trace->why, sizeof trace->why, __VA_ARGS__), false

static bool check_header(Trace *trace, uint64_t nbytes) {
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
    REFUSE("it is truncated: %" PRIu64 " records do not fit into its %" PRIu64 " bytes",
           header->capacity, nbytes);
  return true;
}

/* ---- the records ---- */

/* When the log ends, at the latest. Of one that is not complete, a year from now: clocks differ,
 * and that of the calendar may have been set since the log was begun. */
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

enum { piece = 1024 }; /* records that are read at a time */

static bool has_bytes(umemLogRecord const *records, size_t count) {
  static umemLogRecord const zeros;
  return count && (memcmp(records, &zeros, sizeof zeros) != 0 ||
                   memcmp(records, records + 1, (count - 1) * sizeof *records) != 0);
}

/* Room for count records more: of a file that has little there is little. */
static bool make_room(Trace *trace, size_t *room, size_t count) {
  if (trace->count + count <= *room) return true;
  size_t more = 2 * *room + piece;
  umemLogRecord *records = realloc(trace->records, more * sizeof *records);
  if (!records) REFUSE("there is no memory for more than %zu records", trace->count);
  trace->records = records;
  *room = more;
  return true;
}

/* Keeps those of count places, from that of record number n + 1, which hold it. */
static void take(Trace *trace, umemLogRecord const *places, size_t count, uint64_t n) {
  for (size_t i = 0; i < count; i++)
    if (places[i].number == n + i + 1 && is_sound(trace, &places[i]))
      trace->records[trace->count++] = places[i];
    else
      trace->incomplete++;
}

/* Reads count places from that of record number n + 1 on, up to a piece and not around the end of
 * the ring. Tells how many have been dealt with in *count: more, where nothing stands behind
 * them. */
static bool collect_piece(Trace *trace, Source const *source, uint64_t n, uint64_t *count,
                          size_t *room) {
  umemLogRecord places[piece];
  size_t want = *count < piece ? (size_t)*count : piece;
  uint64_t at = umemLog_ring_at + (n & (trace->header.capacity - 1)) * sizeof *places;
  ssize_t got = read_at(source, places, want * sizeof *places, at);
  if (got < 0) REFUSE("%s", strerror(errno));
  if ((size_t)got < want * sizeof *places) REFUSE("it was truncated while it was read");
  if (!has_bytes(places, want)) {
    uint64_t data = next_data(source, at + (uint64_t)got);
    uint64_t skipped = (data - at) / sizeof *places;
    *count = skipped < want ? want : skipped < *count ? skipped : *count;
    trace->incomplete += *count;
    return true;
  }
  if (!make_room(trace, room, want)) return false;
  take(trace, places, want, n);
  *count = want;
  return true;
}

/* The places of the ring in the order of their records; those that hold another are left out. */
static bool collect(Trace *trace, Source const *source) {
  uint64_t const next = trace->header.next, capacity = trace->header.capacity;
  size_t room = 0;
  trace->overwritten = next > capacity ? next - capacity : 0;
  for (uint64_t n = trace->overwritten, count; n < next; n += count) {
    uint64_t to_end = capacity - (n & (capacity - 1));
    count = next - n < to_end ? next - n : to_end;
    if (!collect_piece(trace, source, n, &count, &room)) return false;
  }
  return true;
}

/* The length is asked after the header: a file grows before it gets that of a longer log. */
static bool read_header(Trace *trace, Source const *source) {
  umemLogHeader *header = &trace->header;
  ssize_t got = read_at(source, header, sizeof *header, 0);
  if (got < 0) REFUSE("%s", strerror(errno));
  uint64_t length = length_of(source);
  if (length < umemLog_ring_at || got < (ssize_t)sizeof *header) {
    bool begins = got >= (ssize_t)sizeof header->magic &&
                  memcmp(header->magic, UMEM_LOG_MAGIC, sizeof header->magic) == 0;
    REFUSE(begins ? "it is truncated: %" PRIu64 " bytes"
                  : "it is no log of umem: %" PRIu64 " bytes",
           length);
  }
  return check_header(trace, length);
}

static bool read_contexts(Trace *trace, Source const *source) {
  ssize_t got = read_at(source, trace->contexts, sizeof trace->contexts, umemLog_contexts_at);
  if (got < 0) REFUSE("%s", strerror(errno));
  if (got < (ssize_t)sizeof trace->contexts) REFUSE("it was truncated while it was read");
  for (int i = 0; i < umemLog_context_count; i++)
    trace->contexts[i].name[sizeof trace->contexts[i].name - 1] = 0;
  return true;
}

static bool parse(Trace *trace, Source const *source) {
  memset(trace, 0, sizeof *trace);
  if (!read_header(trace, source) || !read_contexts(trace, source)) return false;
  trace->latest = latest_time(&trace->header);
  correct_contexts(trace);
  if (collect(trace, source)) return true;
  trace_close(trace);
  return false;
}

bool trace_parse(Trace *trace, void const *bytes, size_t nbytes) {
  return parse(trace, &(Source){.fd = -1, .bytes = bytes, .length = nbytes});
}

/* ---- the file ---- */

/* Of a log that is being written, records may have been overwritten while they were read: those
 * that the ring has no room for by now. */
static void forget_overwritten(Trace *trace, uint64_t next) {
  uint64_t capacity = trace->header.capacity;
  if (next <= trace->header.next) return;
  size_t gone = 0;
  while (gone < trace->count && trace->records[gone].number + capacity <= next) gone++;
  if (!gone) return;
  memmove(trace->records, trace->records + gone, (trace->count - gone) * sizeof *trace->records);
  trace->count -= gone;
  trace->overwritten += gone;
}

/* Whether the header is that of the log which was read: another program may have begun its own. */
static bool is_still(Trace const *trace, umemLogHeader const *now) {
  return now->begun == trace->header.begun && now->process == trace->header.process &&
         now->capacity == trace->header.capacity;
}

static bool parse_file(Trace *trace, Source const *source) {
  enum { most_tries = 3 };
  for (int i = 0; i < most_tries; i++) {
    umemLogHeader now = {.next = 0};
    bool parsed = parse(trace, source);
    if (read_at(source, &now, sizeof now, 0) >= 0 && is_still(trace, &now)) {
      if (parsed) forget_overwritten(trace, now.next);
      return parsed;
    }
    trace_close(trace);
  }
  REFUSE("it was begun anew while it was read");
}

static bool read_fd(Trace *trace, int fd) {
  struct stat about;
  if (fd < 0 || fstat(fd, &about) != 0) REFUSE("%s", strerror(errno));
  if (!S_ISREG(about.st_mode)) REFUSE("it is no regular file");
  return parse_file(trace, &(Source){.fd = fd});
}

bool trace_read(Trace *trace, char const *path) {
  memset(trace, 0, sizeof *trace);
  char const *slash = strrchr(path, '/');
  int fd;
  do fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* no waiting at a FIFO */
  while (fd < 0 && errno == EINTR);
  bool read = read_fd(trace, fd);
  if (fd >= 0) close(fd);
  trace->file = slash ? slash + 1 : path;
  return read;
}

void trace_close(Trace *trace) {
  free(trace->records);
  trace->records = NULL;
  trace->count = 0;
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
