/* clocks.h - a double of a device with several queues, that does no work at all: it keeps records
 * about what is ordered after what, and finds each use of memory that is not ordered after the last
 * ones.
 *
 * Every queue has a vector clock (C. J. Fidge, "Timestamps in Message-Passing Systems That Preserve
 * the Partial Ordering", 1988; F. Mattern, "Virtual Time and Global States of Distributed Systems",
 * 1989): for each queue, how many of its uses of memory it comes after. Each 256 bytes of memory
 * have a stamp of each queue's last use. A use by a queue whose clock has not come to all stamps is
 * a race, however the work would have been done on a real device.
 *
 * Threads: safe; the host is one for all threads, which may hide races but finds no wrong ones. */
#pragma once

#include <umem.h>

enum { clockQueues = 6, clockGrain = 256, clockBytes = 64 << 20 };

static uintptr_t const clock_base = (uintptr_t)1 << 40;

/* The device; owns what its queues share. */
typedef struct Clocks Clocks;

/* NULL without memory. */
Clocks *clocks_create(void);
void clocks_destroy(Clocks *clocks);

/* A context for one queue of the device, 0 ... clockQueues - 1; -1: for none, which is not ordered:
 * its frees demand that the host has waited for all uses. */
typedef struct ClockQueue {
  umemVirtual super;
  Clocks *clocks; /* borrowed */
  int number;
} ClockQueue;

umemStatusType clock_queue_ctor(ClockQueue *ctx, Clocks *clocks, int number);

/* From now on ctx has the method mark, before it is used. */
void clock_queue_have_marks(ClockQueue *ctx);

/* Work of ctx that uses [adr, adr + nbytes). umem_set and copies do the same. */
void clock_use(ClockQueue *ctx, uintptr_t adr, size_t nbytes);

/* The first race, or other wrong use, in words; NULL when there was none. */
char const *clocks_race(Clocks *clocks);

/* How often a queue had to wait for another, or was waited for. */
unsigned long clocks_waits(Clocks *clocks);

/* From now on waiting has no effect: as if events were left out. */
void clocks_forget_waits(Clocks *clocks);

/* The next count waits fail. */
void clocks_fail_waits(Clocks *clocks, unsigned count);

/* Bit q: whether calls on queue q are allowed now, if it has marks; all are at first. Another one
 * counts as a race. */
void clocks_allow(Clocks *clocks, unsigned queues);

/* Bytes that are allocated. */
size_t clocks_allocated(Clocks *clocks);
