/* trace_chrome.c - the JSON that Perfetto and chrome://tracing open ("Trace Event Format"): a
 * counter of live bytes for each context, a slice on its thread for each set and copy, an instant
 * for each failure of another kind; with flows, an arrow from each copy into a block to those that
 * then read from it. */
#include "trace.h"

#include <inttypes.h>
#include <umem/status.h>

typedef struct Chrome {
  Trace const *trace;
  FILE *out;
  bool flows, comma;
  uint64_t last; /* of the log: where what was not finished ends */
} Chrome;

/* ---- pieces ---- */

/* Times are microseconds. */
static void write_us(FILE *out, char const *key, uint64_t ns) {
  fprintf(out, ",\"%s\":%" PRIu64 ".%03" PRIu64, key, ns / 1000, ns % 1000);
}

/* The beginning of an event, up to where its name goes. */
static void begin(Chrome *chrome, char phase, uint32_t thread, uint64_t time) {
  fprintf(chrome->out, "%s\n{\"ph\":\"%c\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32,
          chrome->comma ? "," : "", phase, chrome->trace->header.process, thread);
  write_us(chrome->out, "ts", trace_time(chrome->trace, time));
  chrome->comma = true;
}

static void write_status(Chrome *chrome, umemLogRecord const *r) {
  fprintf(chrome->out, ",\"status\":");
  trace_write_json(chrome->out, umem_get_status_name((umemStatusType)r->status));
}

static void write_name(Chrome *chrome, char const *name) {
  fprintf(chrome->out, ",\"name\":");
  trace_write_json(chrome->out, name);
}

/* ---- events ---- */

static void write_counter(Chrome *chrome, unsigned ctx, uint64_t time, uint64_t nbytes) {
  TraceName text;
  begin(chrome, 'C', 0, time);
  write_name(chrome, trace_name(chrome->trace, ctx, text));
  fprintf(chrome->out, ",\"args\":{\"live bytes\":%" PRIu64 "}}", nbytes);
}

static void write_failure(Chrome *chrome, umemLogRecord const *r) {
  static char const *const names[] = {
      [umemLogAlloc] = "allocation failed",
      [umemLogFree] = "free failed",
      [umemLogResizeEnd] = "resize failed",
  };
  TraceName text;
  begin(chrome, 'i', r->thread, r->time);
  write_name(chrome, names[r->kind]);
  fprintf(chrome->out, ",\"s\":\"t\",\"args\":{\"bytes\":%" PRIu64, r->size);
  write_status(chrome, r);
  fprintf(chrome->out, ",\"context\":");
  trace_write_json(chrome->out, trace_name(chrome->trace, r->ctx, text));
  fprintf(chrome->out, "}}");
}

static uint64_t duration_of(Chrome const *chrome, umemLogRecord const *r) {
  if (!(r->flags & umemLogUnfinished)) return r->duration;
  return chrome->last > r->time ? chrome->last - r->time : 0;
}

static void write_slice(Chrome *chrome, umemLogRecord const *r) {
  TraceName from, to;
  bool copies = r->kind == umemLogCopy;
  char name[2 * sizeof(TraceName) + 16];
  trace_name(chrome->trace, r->ctx, from);
  trace_name(chrome->trace, r->other_ctx, to);
  snprintf(name, sizeof name, copies ? "copy %s to %s" : "set %s", from, to);
  begin(chrome, 'X', r->thread, r->time);
  write_us(chrome->out, "dur", duration_of(chrome, r));
  write_name(chrome, name);
  fprintf(chrome->out, ",\"cat\":\"%s\",\"args\":{\"bytes\":%" PRIu64 ",\"%s\":\"0x%" PRIx64 "\"",
          copies ? "copy" : "set", r->size, copies ? "from" : "at", r->adr);
  if (copies) fprintf(chrome->out, ",\"to\":\"0x%" PRIx64 "\"", r->other_adr);
  if (r->status) write_status(chrome, r);
  if (r->flags & umemLogUnfinished) fprintf(chrome->out, ",\"unfinished\":true");
  fprintf(chrome->out, "}}");
}

/* An arrow from the slice of one record to that of a later one. */
static void write_flow(Chrome *chrome, umemLogRecord const *from, umemLogRecord const *to) {
  for (int end = 0; end < 2; end++) {
    umemLogRecord const *r = end ? to : from;
    begin(chrome, end ? 'f' : 's', r->thread, r->time);
    write_name(chrome, "data");
    fprintf(chrome->out, ",\"cat\":\"flow\",\"id\":%" PRIu64 "%s}", to->number,
            end ? ",\"bp\":\"e\"" : "");
  }
}

static bool visit(void *user, TraceStep const *step) {
  Chrome *chrome = user;
  umemLogRecord const *r = step->record;
  if (r->kind == umemLogSet || r->kind == umemLogCopy) {
    write_slice(chrome, r);
    if (chrome->flows && r->kind == umemLogCopy && step->block && step->block->writer)
      write_flow(chrome, step->block->writer, r);
  } else if (r->kind != umemLogResizeBegin) {
    if (r->status) write_failure(chrome, r);
    write_counter(chrome, r->ctx, r->time, step->live[r->ctx]);
  }
  return true;
}

/* ---- the whole ---- */

bool trace_write_chrome(Trace const *trace, FILE *out, bool flows) {
  Chrome chrome = {.trace = trace, .out = out, .flows = flows, .comma = true};
  for (size_t i = 0; i < trace->count; i++)
    if (trace->records[i].time > chrome.last) chrome.last = trace->records[i].time;
  fprintf(out,
          "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"overwritten\":%" PRIu64
          ",\"incomplete\":%" PRIu64 "},\"traceEvents\":[\n"
          "{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"name\":\"process_name\",\"args\":{\"name\":",
          trace->overwritten, trace->incomplete, trace->header.process);
  trace_write_json(out, trace->file ? trace->file : "umem");
  fprintf(out, "}}");
  for (unsigned ctx = 1; ctx <= trace->header.contexts; ctx++)
    if (!trace->overwritten && trace_wants(trace, ctx))
      write_counter(&chrome, ctx, trace->contexts[ctx].begun, 0);
  bool walked = trace_walk(trace, visit, &chrome);
  fprintf(out, "\n]}\n");
  return walked;
}
