/* trial.h - one context under fault, the file that it stands on, and what must hold afterwards.
 *
 * A trial prepares a file with known bytes where the place needs one, constructs the context, runs
 * a scenario on it (scenarios.h) and compares the world with what it was. All checks end in
 * cmocka's fail_msg, with the place, the scenario and the fault named. */
#pragma once

#include "backends.h"
#include "child.h"
#include "fake/fake.h"
#include "fault/inject.h"
#include "fault/small_disk.h"
#include "temporary.h"

/* The fake device has no methods but those it must have: it stands for the defaults of the base. */
typedef enum PlaceKind { kindHost, kindFile, kindMMap, kindFake } PlaceKind;

/* A way to construct a context. */
typedef struct Place {
  char const *name;
  PlaceKind kind;
  char const *mode; /* NULL where there is no file */
  bool scratch;     /* without a file name */
  bool adopts;      /* by descriptor, opened as mode says */
  bool fresh;       /* no file is there before */
} Place;

/* A context over a file, of either kind. */
typedef union Any {
  umemVirtual super;
  umemFile file;
  umemMMap mmap;
} Any;

extern Place const places[];
extern size_t const place_count;

Place const *place_by_name(char const *name);

/* Whether a file with bytes stands there before, which the context must keep. */
bool place_keeps_file(Place const *place);

/* The bytes in the file before: more than a page, and no multiple of anything. */
enum { old_size = 40001 };
unsigned char old_byte(size_t offset);

/* Bytes [start, end) of a file that a scenario may have written. */
typedef struct Span {
  uintptr_t start, end;
} Span;

/* Kept from run to run, so that a call that failed may have touched what its good twin did. */
typedef struct Spans {
  size_t count;
  Span items[64];
} Spans;

typedef struct Trial {
  Place const *place;
  char const *scenario, *fault; /* for messages */
  unsigned long nth;
  Spans *written, own_spans;
  char path[256]; /* "" where the place has no named file */
  union {
    umemVirtual super;
    umemHost host;
    umemFile file;
    umemMMap mmap;
    Fake fake;
  } own;
  umemVirtual *ctx; /* &own.super */
  umemHost host;
  Backend const *row; /* of the peer, or NULL */
  umemVirtual *peer;
  size_t peer_blocks;    /* live in the peer, where it counts them */
  umemStatusType result; /* of the first step that failed */
  bool unsure;           /* the context could not see whether others have appended */
  uint64_t failures;     /* of this thread, after the last step */
  long descriptors;
  size_t mapped;
} Trial;

/* Prepares file, host and peer (a row of test/backends.c, or NULL), with all faults held back.
 * written: kept by the caller from run to run; NULL: the trial's own. */
void trial_prepare(Trial *trial, Place const *place, char const *peer, Spans *written);
umemStatusType trial_construct(Trial *trial);

/* Both, for a test whose faults come later: the constructor must succeed. */
void trial_open(Trial *trial, Place const *place, char const *peer);

/* Compares the file, removes it, closes the peer, and looks for descriptors and mappings left. The
 * context must be destructed. */
void trial_finish(Trial *trial);

/* Destructs the context, which must not fail, and finishes. */
void trial_close(Trial *trial);

/* Whether the file, if the place has one, is byte for byte what it was. */
bool trial_file_is_untouched(Trial *trial);

/* Whether no block of the context is live: what it then gives back is all that it took, unless
 * others may have added some. */
bool trial_holds_nothing(Trial *trial);

/* Fails the test with a message of where it was. */
void trial_complain(Trial *trial, char const *what, int line) __attribute__((noreturn));
#define REQUIRE(trial, condition)                                                                  \
  ((condition) ? (void)0 : trial_complain((trial), #condition, __LINE__))

/* ---- steps of a scenario: what a call returns must agree with what the thread recorded ---- */

/* A call that returned status. Whether it succeeded. */
bool trial_step(Trial *trial, umemStatusType status, char const *call, int line);
#define STEP(trial, call) trial_step((trial), (call), #call, __LINE__)

/* A call that returned an address in ctx. Whether it is one. */
bool trial_got(Trial *trial, void *ctx, uintptr_t adr, char const *call, int line);
#define GOT(trial, ctx, adr, call) trial_got((trial), (ctx), (adr) = (call), #call, __LINE__)

/* Calls that return nothing: what the thread recorded becomes the trial's. */
void trial_settle(Trial *trial);

/* Frees adr, null or not, in ctx, and settles. */
void trial_free(Trial *trial, void *ctx, uintptr_t adr);

/* Notes that nbytes at adr of the context may be written from now on; not where blocks must lie
 * after what was there before (mode a). */
void trial_note(Trial *trial, uintptr_t adr, size_t nbytes);

/* ---- with all faults held back: no failure allowed ---- */

/* A block of the context with nbytes that are also stored in bytes: new ones where it is writable,
 * those of the file elsewhere. */
uintptr_t trial_block(Trial *trial, unsigned char *bytes, size_t nbytes);

/* Reads nbytes at adr of the context: through the system where that can be. */
void trial_peek(Trial *trial, uintptr_t adr, unsigned char *bytes, size_t nbytes);

/* Whether nbytes at adr of the context are these. */
bool trial_holds(Trial *trial, uintptr_t adr, unsigned char const *bytes, size_t nbytes);

/* ---- the system; failures of these abort ---- */

long open_descriptors(void);
void write_file(char const *path, size_t nbytes); /* of old_byte */
size_t read_file(char const *path, unsigned char *bytes,
                 size_t size); /* returns the file's length */

size_t file_length(char const *path);
