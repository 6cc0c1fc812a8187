/* backends.h - the table of every context of this build, for tests and benchmarks alike.
 *
 * A new context is one new row in backends.c; the contract tests run on every row and on all
 * ordered pairs of rows, the benchmarks likewise. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <umem.h>

/* What the tests must know of a context beyond its own capabilities. */
enum {
  backendChecksFrees = 1 << 0,  /* every free of what is no live block is umemValueError */
  backendKeepsRecords = 1 << 1, /* every write outside of a live block is umemIndexError as well */
  backendWrapped =
      1 << 2, /* goes over another context: paired with the host and the fake device only */
  backendTestOnly = 1 << 3,     /* exists in the tests only: no benchmarks */
  backendMayLack = 1 << 4,      /* needs hardware: where open says umemNotSupportedError or
                                umemValueError there is no such row */
  backendReportsLeaks = 1 << 5, /* blocks that are live at its end are a umemRuntimeError */
  backendTrustsSizes = 1 << 6,  /* knows no sizes: takes the old one of umem_realloc as it is */
  backendHasPages = 1 << 7,     /* memory by pages (umemPages), if its device has */
  backendNeedsGpu = 1 << 8,     /* of the real runtime */
  backendWaits = 1 << 9,        /* for a server: reports are repeated meanwhile */
  backendMade = 1 << 10         /* by a flush: nothing is written after it, nor without all bytes of
                                its blocks */
};

/* What a context counts of itself. */
typedef struct BackendRecords {
  size_t blocks; /* live now */
  size_t moves;  /* sets and copies that have reached it, in its life; or BACKEND_MOVES_UNKNOWN */
} BackendRecords;

/* Of a context that counts its blocks alone. */
#define BACKEND_MOVES_UNKNOWN SIZE_MAX

typedef struct Backend {
  char const *name; /* unique: "host", "file", "mmap", "fake", ... */
  umemStatusType (*construct)(void *ctx, void *upstream); /* upstream: of the row over, or NULL */
  char const *over; /* the row that upstream is of; NULL: it goes over none */
  char const *text; /* what umem_open opens instead; NULL: construct makes it */
  unsigned traits;
  /* What memory it is: contexts whose rows name the same one are one device. NULL: its own. */
  char const *memory;
  /* NULL where a context does not count. For tests of what must not leak and must not move. */
  BackendRecords (*records)(umemVirtual *ctx);
  /* Makes a context of this kind over a file of the caller's, in a mode of umemFile_ctor; NULL for
   * those that live in no file. */
  umemStatusType (*at)(void *ctx, char const *path, char const *mode);
  void (*end)(umemVirtual *ctx); /* NULL: umem_dtor */
} Backend;

extern Backend const backends[];
extern size_t const backend_count;

/* The row with this name, or NULL. */
Backend const *backend_by_name(char const *name);

/* A new, empty context of row on the heap; NULL if that failed. */
umemVirtual *backend_open(Backend const *row);

/* Likewise over the file at path, for rows that can. */
umemVirtual *backend_open_at(Backend const *row, char const *path, char const *mode);

/* Destructs it, frees it and removes its files. */
void backend_close(Backend const *row, umemVirtual *ctx);

/* Makes ctx, by umemLog_ctor or umemLog_adopt, a log in a file of its own that vanishes with it. */
umemStatusType backend_log(umemStatusType (*construct)(umemLog *, void *, umemLogOptions const *),
                           void *ctx, void *upstream);

/* A construction that fails, and as what: refusals.c. */
typedef struct BackendRefusal {
  char const *name;
  umemStatusType (*construct)(void *ctx); /* ctx: BACKEND_CONTEXT_SIZE bytes, or NULL */
  umemStatusType status;
  uintptr_t null;    /* the null of such a context, also when it was not constructed */
  char const *words; /* in the message */
} BackendRefusal;

enum { BACKEND_CONTEXT_SIZE = 1024 };

extern BackendRefusal const backend_refusals[];
extern size_t const backend_refusal_count;

enum { BACKEND_PATH_SIZE = 512 };

/* Creates an empty file of a new name in $TMPDIR (or /tmp) and writes its path. The caller removes
 * it. False, and path "", when that failed. */
bool backend_temp_file(char path[BACKEND_PATH_SIZE]);
