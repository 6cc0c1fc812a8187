/* umem_trace.c - umem-trace: reads a log of umemLog and makes of it what other programs open. */
#include "trace.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <umem.h>

static char const usage[] =
    "Usage: umem-trace FILE [--chrome OUT [--flows]] [--csv OUT] [--replay [--on NAME]]\n"
    "                  [--context N]\n"
    "\n"
    "Reads FILE, a log written by umemLog. Without --chrome, --csv and --replay, prints what\n"
    "it holds.\n"
    "\n"
    "  --chrome OUT  writes JSON for Perfetto (https://ui.perfetto.dev) and chrome://tracing:\n"
    "                live bytes of each context, copies and sets, failures\n"
    "  --flows       with arrows from each copy into a block to those that then read from it\n"
    "  --csv OUT     writes allocations and frees as CSV in the columns of RMM\n"
    "  --replay      runs the log again, in one thread; prints time and peak\n"
    "  --on NAME     on the context that umem_open makes of this name; host: without it\n"
    "  --context N   any of these, and what is printed, of the context with this number only\n"
    "\n"
    "OUT may be - for the standard output.\n";

enum { failure = 1, misuse = 2 };

typedef struct Arguments {
  char const *file, *chrome, *csv, *on;
  unsigned ctx;
  bool flows, replay;
} Arguments;

static int complain(char const *what, char const *about, char const *why) {
  fprintf(stderr, "umem-trace: %s", what);
  trace_write_text(stderr, about);
  if (*why) fputs(": ", stderr);
  trace_write_text(stderr, why);
  fputc('\n', stderr);
  return failure;
}

/* ---- arguments ---- */

static bool read_number(char const *text, unsigned *number) {
  char *end;
  errno = 0;
  unsigned long n = strtoul(text, &end, 10);
  *number = (unsigned)n;
  return !errno && *text >= '0' && *text <= '9' && !*end && n > 0 && n < umemLog_context_count;
}

/* The place for the value of an option that has one, else NULL. */
static char const **value_of(Arguments *arguments, char const *option, char const **number) {
  if (!strcmp(option, "--chrome")) return &arguments->chrome;
  if (!strcmp(option, "--csv")) return &arguments->csv;
  if (!strcmp(option, "--on")) return &arguments->on;
  return strcmp(option, "--context") ? NULL : number;
}

static bool read_word(Arguments *arguments, char const *word) {
  if (!strcmp(word, "--flows"))
    arguments->flows = true;
  else if (!strcmp(word, "--replay"))
    arguments->replay = true;
  else if (*word != '-' && !arguments->file)
    arguments->file = word;
  else
    return complain("unknown argument ", word, ""), false;
  return true;
}

static bool read_arguments(Arguments *arguments, int argc, char **argv) {
  char const *number = NULL;
  for (int i = 1; i < argc; i++) {
    char const **value = value_of(arguments, argv[i], &number);
    if (value && i + 1 == argc) return complain("no value after ", argv[i], ""), false;
    if (value && *value) return complain("given twice: ", argv[i], ""), false;
    if (value)
      *value = argv[++i];
    else if (!read_word(arguments, argv[i]))
      return false;
  }
  if (!arguments->file) return complain("no FILE is given", "", ""), false;
  if (number && !read_number(number, &arguments->ctx))
    return complain("no number of a context: ", number, ""), false;
  if (arguments->flows && !arguments->chrome)
    return complain("--flows is of --chrome, which is not given", "", ""), false;
  if (arguments->on && !arguments->replay)
    return complain("--on is of --replay, which is not given", "", ""), false;
  return true;
}

/* ---- output ---- */

typedef bool Write(Trace const *trace, FILE *out, Arguments const *arguments);

static bool write_chrome(Trace const *trace, FILE *out, Arguments const *arguments) {
  return trace_write_chrome(trace, out, arguments->flows);
}
static bool write_csv(Trace const *trace, FILE *out, Arguments const *arguments) {
  (void)arguments;
  return trace_write_csv(trace, out);
}
static bool write_summary(Trace const *trace, FILE *out, Arguments const *arguments) {
  (void)arguments;
  return trace_write_summary(trace, out);
}

static int write_to(char const *path, Write *write, Trace const *trace,
                    Arguments const *arguments) {
  bool standard = !strcmp(path, "-");
  FILE *out = standard ? stdout : fopen(path, "wb");
  if (!out) return complain("cannot write ", path, strerror(errno));
  bool has_memory = write(trace, out, arguments);
  bool is_written = !fflush(out) && !ferror(out);
  if (!is_written) complain("cannot write ", path, strerror(errno));
  if (!has_memory) complain("there is no memory for the blocks of ", arguments->file, "");
  if (!standard && fclose(out) && is_written)
    return complain("cannot write ", path, strerror(errno));
  return has_memory && is_written ? 0 : failure;
}

/* ---- replay ---- */

static int replay(Trace const *trace, Arguments const *arguments) {
  char const *name = arguments->on ? arguments->on : "host:";
  int status = 0;
  Replay *replay = replay_make(trace);
  if (!replay) return complain("there is no memory for the operations of ", arguments->file, "");
  void *ctx = umem_open(name);
  if (!ctx)
    status = complain("cannot replay on ", name, umem_thread_message());
  else if (replay_run(replay, ctx, stdout))
    status = complain("operations failed on ", name, umem_get_message(ctx));
  if (umem_close(ctx) != umemOK && !status)
    status = complain("cannot close ", name, umem_thread_message());
  replay_free(replay);
  return status;
}

/* Whether the log has the context that is wanted. */
static bool select_context(Trace *trace, unsigned ctx) {
  char what[40], why[80];
  trace->only = ctx;
  if (ctx <= trace->header.contexts) return true;
  snprintf(why, sizeof why, "its contexts are numbered from 1 to %u", trace->header.contexts);
  if (!trace->header.contexts) snprintf(why, sizeof why, "it has none");
  snprintf(what, sizeof what, "there is no context %u in ", ctx);
  complain(what, trace->file, why);
  return false;
}

int main(int argc, char **argv) {
  Arguments arguments = {.file = NULL};
  setlocale(LC_CTYPE, ""); /* that of the C language stays where it cannot be had */
  if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
    return fputs(usage, stdout) < 0 || fflush(stdout) ? failure : 0;
  if (!read_arguments(&arguments, argc, argv)) {
    fputs(usage, stderr);
    return misuse;
  }
  Trace trace;
  if (!trace_read(&trace, arguments.file))
    return complain("cannot read ", arguments.file, trace.why);
  if (!select_context(&trace, arguments.ctx)) {
    trace_close(&trace);
    return misuse;
  }
  int status = 0;
  if (arguments.chrome) status |= write_to(arguments.chrome, write_chrome, &trace, &arguments);
  if (arguments.csv) status |= write_to(arguments.csv, write_csv, &trace, &arguments);
  if (arguments.replay) status |= replay(&trace, &arguments);
  if (!arguments.chrome && !arguments.csv && !arguments.replay)
    status |= write_to("-", write_summary, &trace, &arguments);
  trace_close(&trace);
  return status;
}
