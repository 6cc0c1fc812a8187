/* trace_summary.c - what a log holds, in a few lines. */
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

typedef struct Figures {
  uint64_t allocations, frees, sets, copies, failures, unfinished, peak, live;
} Figures;

static void count(Figures *figures, umemLogRecord const *r) {
  bool allocates = r->kind == umemLogAlloc || r->kind == umemLogResizeEnd;
  figures->failures += r->status != 0;
  figures->unfinished += (r->flags & umemLogUnfinished) != 0;
  figures->allocations += allocates && !r->status;
  figures->frees += (r->kind == umemLogFree || r->kind == umemLogResizeEnd) && !r->status;
  figures->sets += r->kind == umemLogSet;
  figures->copies += r->kind == umemLogCopy;
}

static bool visit(void *user, TraceStep const *step) {
  umemLogRecord const *r = step->record;
  Figures *figures = (Figures *)user + r->ctx;
  count(figures, r);
  if (r->kind == umemLogCopy && r->other_ctx && r->other_ctx != r->ctx)
    ((Figures *)user)[r->other_ctx].copies++;
  figures->live = step->live[r->ctx];
  if (figures->peak < figures->live) figures->peak = figures->live;
  return true;
}

static void write_context(Trace const *trace, FILE *out, unsigned ctx, Figures const *figures) {
  TraceName text;
  fputc('\n', out);
  trace_write_text(out, trace_name(trace, ctx, text));
  fprintf(out,
          "\n  %" PRIu64 " allocations, %" PRIu64 " frees, %" PRIu64 " sets, %" PRIu64
          " copies\n  live at the end: %" PRIu64 " bytes; peak: %" PRIu64 " bytes\n",
          figures->allocations, figures->frees, figures->sets, figures->copies, figures->live,
          figures->peak);
  if (figures->failures) fprintf(out, "  failed: %" PRIu64 "\n", figures->failures);
  if (figures->unfinished) fprintf(out, "  not finished: %" PRIu64 "\n", figures->unfinished);
}

static void write_header(Trace const *trace, FILE *out) {
  umemLogHeader const *header = &trace->header;
  time_t seconds = (time_t)(header->begun_calendar / 1000000000u);
  struct tm tm;
  char text[64] = "an unknown time";
  if (gmtime_r(&seconds, &tm)) strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &tm);
  fprintf(out, "process %" PRIu32 ", begun %s, %s\n", header->process, text,
          header->ended
              ? "complete"
              : "not completed: the program runs, was killed, or did not end its contexts");
  fprintf(out, "%zu records", trace->count);
  if (trace->overwritten) fprintf(out, ", after %" PRIu64 " overwritten ones", trace->overwritten);
  if (trace->incomplete) fprintf(out, ", %" PRIu64 " incomplete", trace->incomplete);
  fputc('\n', out);
}

bool trace_write_summary(Trace const *trace, FILE *out) {
  Figures *figures = calloc(umemLog_context_count, sizeof *figures);
  bool walked = figures && trace_walk(trace, visit, figures);
  write_header(trace, out);
  for (unsigned ctx = 1; walked && ctx <= trace->header.contexts; ctx++)
    if (trace_wants(trace, ctx)) write_context(trace, out, ctx, &figures[ctx]);
  free(figures);
  return walked;
}
