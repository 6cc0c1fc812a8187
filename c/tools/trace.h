/* trace.h - what the parts of umem-trace share: a log that was read, and a walk over it that knows
 * which blocks are live. */
#ifndef UMEM_TRACE_H
#define UMEM_TRACE_H

#include "adaptors/log/log_format.h"

#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a log that was read ---- */

typedef struct Trace {
  umemLogHeader header;
  umemLogContext contexts[umemLog_context_count]; /* those from 1 to header.contexts */
  umemLogRecord *records;                         /* owned; those that are complete, in order */
  size_t count;
  uint64_t overwritten; /* records that newer ones have taken the place of */
  uint64_t latest;      /* no record can be later */
  uint64_t incomplete;  /* places whose record was not completed, or makes no sense */
  unsigned only;        /* for the caller to set: the context that is wanted; 0 for all */
  char const *file;     /* its name without folders, borrowed; NULL of bytes */
  char why[256];        /* what was wrong with it */
} Trace;

/* Reads the file, or nbytes that are as a file. False, with trace->why, when it is no log that can
 * be read. trace_close is due after true. */
bool trace_read(Trace *trace, char const *path);
bool trace_parse(Trace *trace, void const *bytes, size_t nbytes);
void trace_close(Trace *trace);

/* What a context is called: "1 Pool over Host"; "elsewhere" for 0. The name is as it stands in the
 * file: any bytes, for the two functions below. Uses text. */
typedef char TraceName[128];
char const *trace_name(Trace const *trace, unsigned ctx, TraceName text);

/* Write text of which nothing is believed. The first shows it to people: what is no printable
 * character of the locale, would move the cursor or turn the direction of writing is \xNN, byte by
 * byte, and a backslash is two. The second is for messages of the library, which have such escapes:
 * a backslash stays one. The third writes a JSON string in ASCII; what is no UTF-8 is U+FFFD. */
void trace_write_text(FILE *out, char const *text);
void trace_write_message(FILE *out, char const *text);
void trace_write_json(FILE *out, char const *text);

/* Nanoseconds since the log was begun. */
uint64_t trace_time(Trace const *trace, uint64_t time);

/* Whether this context is wanted. */
static inline bool trace_wants(Trace const *trace, unsigned ctx) {
  return !trace->only || trace->only == ctx;
}

/* ---- a walk over it ---- */

/* A block that is live at some record. */
typedef struct TraceBlock {
  unsigned ctx;
  uint64_t adr, size;
  size_t index;                /* counts the blocks of the log, also those that a resize makes */
  umemLogRecord const *writer; /* the last copy into it, or NULL */
} TraceBlock;

/* What a visitor is shown with each record. Blocks are NULL where the log does not know them: they
 * were allocated before its oldest record, or elsewhere. */
typedef struct TraceStep {
  umemLogRecord const *record;
  TraceBlock *block; /* that which the record names first; what a resize or a free leaves behind */
  TraceBlock *other; /* of a copy: where it goes; of a resize: the new block */
  uint64_t live[umemLog_context_count]; /* bytes of each context, after the record */
  uint64_t all;                         /* of all contexts together */
  size_t blocks;                        /* how many indices there have been */
} TraceStep;

/* Shows visit every record of what is wanted in order, also failures: of one context, also its
 * copies to and from others, whose blocks are not known then. False without memory, or when visit
 * returns false. */
bool trace_walk(Trace const *trace, bool (*visit)(void *user, TraceStep const *step), void *user);

/* ---- what can be made of it ---- */

/* Each writes to out; whether that worked is for the caller to ask out. False without memory. */
bool trace_write_chrome(Trace const *trace, FILE *out, bool flows);
bool trace_write_csv(Trace const *trace, FILE *out);
bool trace_write_summary(Trace const *trace, FILE *out);

/* The operations of a log, without their addresses. */
typedef struct Replay Replay;
Replay *replay_make(Trace const *trace); /* NULL without memory */
void replay_free(Replay *replay);

typedef struct ReplayFigures {
  size_t operations, failed;
  size_t left_out; /* operations on blocks that the log does not know */
  uint64_t nanoseconds;
  uint64_t peak_bytes; /* live in the log at once, of all contexts that are wanted together */
} ReplayFigures;

/* Runs it on ctx, a context of umem. The second prints the figures, and returns how many operations
 * have failed. */
ReplayFigures replay_measure(Replay *replay, void *ctx);
size_t replay_run(Replay *replay, void *ctx, FILE *out);

#ifdef __cplusplus
}
#endif

#endif
