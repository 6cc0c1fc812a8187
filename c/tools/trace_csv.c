/* trace_csv.c - allocations and frees as the logging adaptor of RMM writes them:
 *
 *     Thread,Time,Action,Pointer,Size,Stream
 *     4711,20:10:49:123456,allocate,0x7f3a5c000000,1024,0
 *
 * Time is that of the day (UTC) down to the microsecond; Action allocate, free or allocate failure.
 * A resize is a free and an allocate. The size of a block that the log has not seen being allocated
 * is 0. */
#include "trace.h"

#include <inttypes.h>

typedef struct Csv {
  Trace const *trace;
  FILE *out;
} Csv;

static void write_line(Csv *csv, umemLogRecord const *r, char const *action, uint64_t adr,
                       uint64_t size) {
  umemLogHeader const *header = &csv->trace->header;
  uint64_t us = (header->begun_calendar + (r->time - header->begun)) / 1000;
  uint64_t s = us / 1000000;
  fprintf(csv->out,
          "%" PRIu32 ",%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 ":%06" PRIu64 ",%s,0x%" PRIx64
          ",%" PRIu64 ",%" PRIu64 "\n",
          r->thread, s / 3600 % 24, s / 60 % 60, s % 60, us % 1000000, action, adr, size,
          csv->trace->contexts[r->ctx].stream);
}

static bool visit(void *user, TraceStep const *step) {
  Csv *csv = user;
  umemLogRecord const *r = step->record;
  uint64_t size = step->block ? step->block->size : 0;
  bool allocates = r->kind == umemLogAlloc || r->kind == umemLogResizeEnd;
  if (allocates && r->status)
    write_line(csv, r, "allocate failure", 0, r->size);
  else if (r->kind == umemLogAlloc)
    write_line(csv, r, "allocate", r->adr, r->size);
  else if (r->kind == umemLogFree && !r->status)
    write_line(csv, r, "free", r->adr, size);
  else if (r->kind == umemLogResizeEnd) {
    write_line(csv, r, "free", r->other_adr, size);
    write_line(csv, r, "allocate", r->adr, r->size);
  }
  return true;
}

bool trace_write_csv(Trace const *trace, FILE *out) {
  Csv csv = {trace, out};
  fprintf(out, "Thread,Time,Action,Pointer,Size,Stream\n");
  return trace_walk(trace, visit, &csv);
}
