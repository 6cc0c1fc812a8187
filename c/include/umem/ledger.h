/* umem/ledger.h - what the copies of the process have moved, and by which routes.
 *
 *     umem_ledger_start();
 *     ...
 *     umem_ledger_print(2);
 *
 * While the ledger is on, umem sums up all copies of all threads: umem_copy_to, umem_copy_from,
 * umem_copy_strided, umem_connect, the copies of blocks, and so on. A record holds those between
 * the same two places by the same route. A copy counts once, when it ends, however many layers its
 * contexts have, and however many threads share it. A block (umem/blocks.h) that is read, with its
 * ghost rows, or written is one copy. One that is refused before a byte could move (a null address,
 * a read past the end of memory) does not count. Copies that began before umem_ledger_start or end
 * after umem_ledger_stop count or not.
 *
 * The ledger has room for UMEM_LEDGER_RECORDS records. When all are taken, copies by further routes
 * are summed up in one more record, whose places and route are "other".
 *
 * On an ordered context the seconds are those until a copy is queued, but those of a block until it
 * is there.
 *
 * While it is off, a copy costs one branch more in each of its steps. A child of fork goes on with
 * the records that its parent had.
 *
 * All functions may be called from any thread at any time. */
#ifndef UMEM_LEDGER_H
#define UMEM_LEDGER_H

#include <umem/base.h>

/* How many routes have a record of their own. */
#define UMEM_LEDGER_RECORDS 256

/* The copies between two places by one route. */
typedef struct umemLedgerRecord {
  size_t size;             /* sizeof(umemLedgerRecord) as the caller was compiled */
  umemRoutePlace src, dst; /* ends of the route */
  char route[160];         /* as of umemRoute_text, without the numbers of workers; cut if longer */
  uint64_t calls;          /* copies, failed ones too */
  uint64_t failed;         /* copies that failed */
  uint64_t bytes;          /* of the copies that did not fail */
  double seconds; /* of all copies, from beginning to end; copies of several threads overlap */
} umemLedgerRecord;

/* What a umemLedgerRecord starts as. */
#define UMEM_LEDGER_RECORD_INIT                                                                    \
  { sizeof(umemLedgerRecord), {"", 0, 0}, {"", 0, 0}, "", 0, 0, 0, 0 }

/* Switches the ledger on; nothing where it is on. It keeps the records that it has.
 * Errors: umemMemoryError without memory for the records: then the ledger stays off. */
UMEM_EXTERN umemStatusType umem_ledger_start(void);

/* Switches the ledger off; nothing where it is off. It keeps the records. */
UMEM_EXTERN void umem_ledger_stop(void);

/* Whether it is on. */
UMEM_EXTERN bool umem_ledger_is_on(void);

/* Removes all records, whether the ledger is on or off. */
UMEM_EXTERN void umem_ledger_clear(void);

/* Writes the records, those with the most seconds first, to records[0], records[1], ..., and how
 * many there are to *count, whose value before the call is how many fit. When more exist, the call
 * writes those that fit and sets *count to how many there are. records[0].size says how long each
 * is. records may be NULL where *count is 0. Errors: umemValueError where count is NULL, where
 * records is NULL but *count is not 0, or where records[0].size is not a multiple of 8 or too small
 * to be true; umemMemoryError. Then nothing is written. */
UMEM_EXTERN umemStatusType umem_ledger_read(umemLedgerRecord *records, size_t *count);

/* Writes a table of the records to the file descriptor fd: those with the most seconds first, with
 * calls, failed calls, bytes, seconds, percent of the seconds, and GB/s. Errors: umemIOError where
 * fd cannot be written; umemMemoryError. */
UMEM_EXTERN umemStatusType umem_ledger_print(int fd);

#endif
