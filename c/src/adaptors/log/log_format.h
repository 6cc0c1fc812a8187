/* log_format.h - the file that umemLog writes and umem-trace reads.
 *
 *     offset  bytes
 *          0   4096  umemLogHeader, the rest zero
 *       4096  32768  256 umemLogContexts; the context with number n is at index n, from 1
 *      36864         the ring: umemLogRecords, capacity of them (a power of two)
 *
 * All numbers are of the byte order of the machine that wrote them, which the header names. Times
 * are nanoseconds of CLOCK_MONOTONIC; the header holds one moment by both that and the calendar.
 *
 * The slot of record number n, from 1, has the index (n - 1) % capacity. next counts the records
 * that have got a slot: the file has those from next - capacity + 1, or 1, to next. A slot holds
 * record n when its first word is n. With any other word the record is not complete: the word is
 * UINT64_MAX while the rest is written, and that of the record before until the writing begins.
 *
 * A record is dropped if a later one has taken its slot before it was written. */
#ifndef UMEM_LOG_FORMAT_H
#define UMEM_LOG_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define UMEM_LOG_MAGIC "umemlog"
#define UMEM_LOG_BUSY UINT64_MAX

enum {
  umemLog_version = 1,
  umemLog_byte_order = 0x01020304,
  umemLog_contexts_at = 4096,
  umemLog_context_count = 256,
  umemLog_ring_at = 36864,
};

typedef struct umemLogHeader {
  char magic[8];       /* UMEM_LOG_MAGIC with its terminating zero */
  uint32_t version;    /* umemLog_version */
  uint32_t byte_order; /* umemLog_byte_order */
  uint32_t record_size, context_size;
  uint64_t capacity;       /* records */
  uint64_t begun;          /* when the file was begun */
  uint64_t begun_calendar; /* the same in nanoseconds since 1970, UTC */
  uint64_t ended;          /* when its last context ended; 0 before */
  uint32_t process;        /* the number of the process */
  uint32_t contexts;       /* how many there have been; atomic */
  uint8_t zeros[64];       /* a cache line of its own for what follows */
  uint64_t next;           /* records that have got a slot; atomic */
} umemLogHeader;
static_assert(offsetof(umemLogHeader, next) == 128, "as documented");

typedef struct umemLogContext {
  uint64_t begun, ended; /* when; 0 for not yet */
  uint64_t stream;       /* of CUDA, where the context has one */
  uint64_t alignment;    /* bytes */
  uint32_t type;         /* umemDeviceType */
  uint32_t capabilities; /* umemCapability, or-ed */
  /* Of what it logs, outermost first, with the labels: "Pool over Host", "\"solver\": Pool
   * \"fields\" over Host"; ends with a zero. Written when the context begins, when it gets a
   * label, and when it ends. */
  char name[88];
} umemLogContext;
static_assert(sizeof(umemLogContext) == 128, "as documented");
static_assert(umemLog_contexts_at + umemLog_context_count * sizeof(umemLogContext) ==
                  umemLog_ring_at,
              "as documented");

typedef enum umemLogKind {
  umemLogAlloc = 1,   /* adr, size */
  umemLogFree,        /* adr */
  umemLogResizeBegin, /* adr, size: the block that is to change, which is gone then */
  umemLogResizeEnd,   /* adr, size: the new block; other_adr: of the old one, which is back after a
                         failure */
  umemLogSet,         /* adr, size, duration; value */
  umemLogCopy,        /* ctx, adr: from; other_ctx, other_adr: to; size, duration */
  umemLog_kinds
} umemLogKind;

/* Bits of a record's flags. */
enum {
  umemLogZeroed = 1,     /* umem_calloc */
  umemLogAligned = 2,    /* umem_aligned_alloc, umem_aligned_free */
  umemLogUnfinished = 4, /* a set or copy whose end was not seen */
};

typedef struct umemLogRecord {
  uint64_t number;    /* atomic */
  uint64_t time;      /* when it began; for umemLogAlloc and umemLogResizeEnd when it was done */
  uint64_t adr;       /* after a failed allocation: null */
  uint64_t size;      /* bytes; 0 for umemLogFree */
  uint64_t other_adr; /* 0 where there is none */
  uint64_t duration;  /* ns */
  uint32_t thread;    /* its number in the system */
  uint16_t ctx, other_ctx; /* 0: one that is not logged here */
  uint8_t kind;            /* umemLogKind */
  uint8_t flags;
  uint8_t status;         /* umemStatusType: what failed, or 0 */
  uint8_t log2_alignment; /* of an aligned block */
  uint8_t value;          /* of a set */
  uint8_t zeros[3];
} umemLogRecord;
static_assert(sizeof(umemLogRecord) == 64, "a cache line");

#endif
