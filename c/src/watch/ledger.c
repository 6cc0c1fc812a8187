/* ledger.c - sums up the routes of all copies of the process.
 *
 * The global lock protects the records. They are in one block, allocated when the ledger is first
 * switched on. */
#include "watch/watch.h"
#include "base/files.h"
#include "base/number.h"
#include "core/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <umem/ledger.h>

typedef struct Record {
  umemLedgerRecord sum;
  uint64_t key; /* of the route, but for its figures */
  uint32_t leg_count;
  umemRouteLeg entries[UMEM_ROUTE_LEGS]; /* of the route, without figures */
} Record;

static struct {
  Record *records; /* [UMEM_LEDGER_RECORDS + 1]; NULL until the first start; owned, never freed */
  size_t count;
  bool on; /* atomic */
} ledger;

static bool is_on(void) { return __atomic_load_n(&ledger.on, __ATOMIC_RELAXED); }

/* With the lock held. */
static void switch_off(void) {
  if (ledger.on) __atomic_fetch_sub(&umem_watched, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&ledger.on, false, __ATOMIC_RELAXED);
  __atomic_store_n(&umem_sink, NULL, __ATOMIC_RELAXED);
}

__attribute__((destructor)) static void free_records(void) {
  UMEM_TEXTS_LOCKED();
  switch_off();
  free(ledger.records);
  ledger.records = NULL;
  ledger.count = 0;
}

static void count_copy(umemTrace const *trace, bool failed);

/* ---- on and off ---- */

/* Takes over the records, or, where there are some, leaves them to the caller. */
static Record *switch_on(Record *records) {
  if (!ledger.records) {
    ledger.records = records;
    ledger.count = 0;
    records = NULL;
  }
  if (!ledger.on) __atomic_fetch_add(&umem_watched, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&ledger.on, true, __ATOMIC_RELAXED);
  __atomic_store_n(&umem_sink, count_copy, __ATOMIC_RELEASE);
  return records;
}

umemStatusType umem_ledger_start(void) {
  UMEM_ENTER();
  if (is_on()) return umemOK;
  umem_defer_cancel();
  Record *records = malloc((UMEM_LEDGER_RECORDS + 1) * sizeof *records);
  if (!records) return umemVirtual_fail(NULL, umemMemoryError, "no memory for the ledger");
  if (umem_texts_lock()) {
    records = switch_on(records);
    umem_texts_unlock();
  }
  free(records);
  return umemOK;
}

void umem_ledger_stop(void) {
  UMEM_ENTER();
  umem_defer_cancel();
  UMEM_TEXTS_LOCKED();
  switch_off();
}

bool umem_ledger_is_on(void) { return is_on(); }

void umem_ledger_clear(void) {
  UMEM_ENTER();
  umem_defer_cancel();
  UMEM_TEXTS_LOCKED();
  ledger.count = 0;
}

/* ---- a copy ---- */

static uint64_t mix(uint64_t key, char const *text) {
  for (; *text; text++) key = (key ^ (unsigned char)*text) * 0x100000001b3;
  return (key ^ 0xff) * 0x100000001b3; /* FNV-1a: G. Fowler, L. C. Noll, K.-P. Vo */
}

static uint64_t mix_place(uint64_t key, umemRoutePlace const *place) {
  return mix((key ^ (uint32_t)place->ordinal) * 0x100000001b3, place->kind);
}

static uint64_t key_of(umemTrace const *trace) {
  uint64_t key = mix_place(mix_place(0xcbf29ce484222325, &trace->src), &trace->dst);
  for (uint32_t i = 0; i < trace->route.leg_count; i++) {
    umemRouteLeg const *entry = &trace->route.legs[i];
    key = mix(mix_place(mix_place(key, &entry->src), &entry->dst), entry->way);
  }
  return key;
}

static bool is_same_route(Record const *record, umemRoute const *route) {
  if (record->leg_count != route->leg_count) return false;
  for (uint32_t i = 0; i < route->leg_count; i++) {
    umemRouteLeg const *a = &record->entries[i], *b = &route->legs[i];
    if (!umem_is_same_place(&a->src, &b->src) || !umem_is_same_place(&a->dst, &b->dst) ||
        strcmp(a->way, b->way) != 0)
      return false;
  }
  return true;
}

/* A route without entries, of a copy that failed before its first transfer, has the ends of its
 * call. */
static void describe(Record *record, umemTrace const *trace) {
  umemRoute const *route = &trace->route;
  *record = (Record){.sum = UMEM_LEDGER_RECORD_INIT, .leg_count = route->leg_count};
  record->sum.src = trace->src;
  record->sum.dst = trace->dst;
  for (uint32_t i = 0; i < route->leg_count; i++) {
    umemRouteLeg *entry = &record->entries[i];
    *entry = (umemRouteLeg){.src = route->legs[i].src, .dst = route->legs[i].dst, .workers = 1};
    strcpy(entry->way, route->legs[i].way);
  }
  umem_entries_text(record->entries, record->leg_count, record->sum.route,
                    sizeof record->sum.route);
}

/* With the lock held. */
static Record *record_of(umemTrace const *trace) {
  uint64_t key = key_of(trace);
  for (size_t i = 0; i < ledger.count; i++) {
    Record *record = &ledger.records[i];
    if (record->key == key && umem_is_same_place(&record->sum.src, &trace->src) &&
        umem_is_same_place(&record->sum.dst, &trace->dst) && is_same_route(record, &trace->route))
      return record;
  }
  if (ledger.count > UMEM_LEDGER_RECORDS) return &ledger.records[UMEM_LEDGER_RECORDS];
  Record *record = &ledger.records[ledger.count++];
  describe(record, trace);
  record->key = key;
  if (ledger.count <= UMEM_LEDGER_RECORDS) return record;
  *record = (Record){.sum = UMEM_LEDGER_RECORD_INIT};
  strcpy(record->sum.src.kind, "other");
  strcpy(record->sum.dst.kind, "other");
  strcpy(record->sum.route, "other");
  record->sum.src.ordinal = record->sum.dst.ordinal = -1;
  return record;
}

static void count_copy(umemTrace const *trace, bool failed) {
  UMEM_TEXTS_LOCKED();
  if (!ledger.on) return;
  umemLedgerRecord *sum = &record_of(trace)->sum;
  sum->calls++;
  sum->failed += failed;
  sum->bytes += failed ? 0 : trace->route.bytes;
  sum->seconds += trace->route.seconds;
}

/* ---- the records ---- */

static int by_seconds(void const *a, void const *b) {
  umemLedgerRecord const *one = a, *other = b;
  if (one->seconds != other->seconds) return one->seconds < other->seconds ? 1 : -1;
  return strcmp(one->route, other->route);
}

/* A sorted copy of the records, for the caller to free; NULL and a status without memory. */
static umemLedgerRecord *take_records(size_t *count) {
  umemLedgerRecord *records = malloc((UMEM_LEDGER_RECORDS + 1) * sizeof *records);
  if (!records)
    return UMEM_FAIL_NULL(NULL, umemMemoryError, "no memory for the records of the ledger");
  *count = 0;
  if (umem_texts_lock()) {
    *count = ledger.count;
    for (size_t i = 0; i < *count; i++) records[i] = ledger.records[i].sum;
    umem_texts_unlock();
  }
  if (*count) qsort(records, *count, sizeof *records, by_seconds);
  return records;
}

static bool check(umemLedgerRecord const *records, size_t const *count) {
  if (!count) return UMEM_FAIL(NULL, umemValueError, "count is NULL");
  if (!*count) return true;
  if (!records) return UMEM_FAIL(NULL, umemValueError, "records is NULL, but count %zu", *count);
  size_t size = records->size;
  if (size >= offsetof(umemLedgerRecord, dst) && size % sizeof(uint64_t) == 0) return true;
  return UMEM_FAIL(NULL, umemValueError,
                   "records[0].size is %zu: set it to sizeof(umemLedgerRecord) before the call",
                   size);
}

umemStatusType umem_ledger_read(umemLedgerRecord *records, size_t *count) {
  UMEM_ENTER();
  if (!check(records, count)) return umemValueError;
  umem_defer_cancel();
  size_t there;
  umemLedgerRecord *all = take_records(&there);
  if (!all) return umemMemoryError;
  size_t size = *count ? records->size : 0;
  for (size_t i = 0; i < there && i < *count; i++) {
    char *out = (char *)records + i * size;
    memcpy(out, &all[i], size < sizeof *all ? size : sizeof *all);
    memcpy(out, &size, sizeof size);
  }
  *count = there;
  free(all);
  return umemOK;
}

static bool write_text(int fd, char const *text, size_t length) {
  int error = umem_write_all(fd, text, length);
  return !error ||
         UMEM_FAIL(NULL, umemIOError, "cannot write to descriptor %d: %s", fd, UMEM_WORDS(error));
}

static bool print_record(int fd, umemLedgerRecord const *record, double seconds) {
  char line[320], none[64];
  double share = seconds > 0 ? 100 * record->seconds / seconds : 0;
  double speed = record->seconds > 0 ? (double)record->bytes / record->seconds * 1e-9 : 0;
  snprintf(none, sizeof none, "%s -> nothing -> %s", record->src.kind, record->dst.kind);
  int n = snprintf(line, sizeof line, "%10" PRIu64 " %8" PRIu64 " %16" PRIu64 " %11s %5s %8s  %s\n",
                   record->calls, record->failed, record->bytes,
                   umem_fixed_text(record->seconds, 6).text, umem_fixed_text(share, 1).text,
                   umem_fixed_text(speed, 3).text, *record->route ? record->route : none);
  return n > 0 && write_text(fd, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

umemStatusType umem_ledger_print(int fd) {
  UMEM_ENTER();
  static char const head[] =
      "     calls   failed            bytes     seconds     %     GB/s  route\n";
  umem_defer_cancel();
  size_t count;
  umemLedgerRecord *records = take_records(&count);
  if (!records) return umemMemoryError;
  double seconds = 0;
  for (size_t i = 0; i < count; i++) seconds += records[i].seconds;
  bool good = write_text(fd, head, sizeof head - 1);
  for (size_t i = 0; good && i < count; i++) good = print_record(fd, &records[i], seconds);
  free(records);
  return good ? umemOK : umemIOError;
}
