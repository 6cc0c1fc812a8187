/* cudart_state.h - what the files of the CUDA double share: its records, and the way in and out. */
#pragma once

#include "cudart.h"
#include "scoped.h"
#include "store.h"

/* Errors of CUDA that umem does not tell apart. */
enum {
  cudartInvalidPitch = 12,
  cudartPeerUnsupported = 217,
  cudartCaptureUnmatched = 903,
  cudartCaptureUnjoined = 904,
  cudartCaptureWrongThread = 908
};

/* ---- kinds of things; handles are pointers to them ---- */

/* What other processes have, too (cudart_ipc.c). */
typedef struct Shared Shared;

typedef struct Pool {
  struct Pool *next;
  bool destroyed;
  int device;
  uint64_t most, threshold, reserved, used;
  unsigned allowed; /* bit d: device d may access */
  Shared *shared;   /* owned; NULL: other processes cannot have it */
  bool opened;      /* it is of another process */
  struct Freed *freed;
} Pool;

typedef struct Block {
  uintptr_t start;
  size_t size;
  unsigned char *bytes; /* where they are */
  umemCudaMemory kind;
  int device;
  bool registered;     /* others' memory */
  Pool *pool;          /* NULL: of none */
  bool ready;          /* its stream has come to the allocation */
  bool freed;          /* its stream has not come to the free yet */
  struct Range *range; /* owned; of addresses, into which pages are mapped; else NULL */
  Shared *shared;      /* owned: where the bytes are; NULL: no other process has them */
  bool opened;         /* the bytes are of another process */
  bool *resident;      /* owned; of managed memory, for each page: it takes memory of the device */
} Block;

/* One end of a copy: a range of addresses that has been checked. */
typedef struct Side {
  uintptr_t adr;
  size_t nbytes;
  umemCudaMemory kind;
  int device; /* -1: the host */
} Side;

typedef enum WorkKind {
  workNothing,
  workCopy,
  workSet,
  workReady,
  workFree,
  workWait,
  workPrefetch,
  workKernel,
  workReach, /* an event that other processes know */
  workAwait  /* one of another process */
} WorkKind;

typedef struct Work {
  struct Work *next;
  WorkKind kind;
  Side to, from;
  umemCudaBox box;       /* of a copy: its shape; the addresses are those of the sides */
  unsigned char *staged; /* owned; what a copy writes in place of from's bytes */
  int value;             /* of a set; of a prefetch: the device, or -1 */
  struct Stream *other;  /* what to wait for */
  uint64_t until;
  Shared const *event;
  void (*run)(void *argument);
  void *argument;
} Work;

typedef struct Graph {
  struct Graph *next;
  Work *first, **last; /* owned */
  bool broken, ended;
  uint64_t id;
  int mode;         /* cudaStreamCaptureMode */
  pthread_t thread; /* that has begun the capture */
  struct Stream *origin;
} Graph;

/* Streams and events stay in memory until the reset, so that stale handles are known for such. */
typedef struct Stream {
  struct Stream *next;
  bool legacy, per_thread, destroyed;
  bool is_barred; /* for the thread barred */
  pthread_t barred;
  bool blocking; /* it and the legacy stream wait for each other */
  int device;
  uint64_t queued, done; /* counts of work */
  Work *first, **last;   /* owned; queued and not done */
  Graph *capture;        /* NULL: it is not being captured */
  uint64_t captured;     /* counts what it has recorded and waited for in the capture */
  struct Stream
      *joined; /* the stream of the same capture that waits for all of this one; NULL: none */
  uint64_t joined_at; /* captured, then */
} Stream;

typedef struct Event {
  struct Event *next;
  bool destroyed;
  int device;
  Stream *stream; /* where it was recorded; NULL: nowhere */
  uint64_t until;
  Graph *capture;    /* it was recorded while being captured */
  uint64_t captured; /* of the stream, then */
  Shared *shared;    /* owned; NULL: no other process knows it */
} Event;

typedef struct Device {
  int ordinal;
  unsigned retained;
  bool implicit; /* the runtime has made a context, as nobody had */
  bool had_context;
  int broken;       /* the sticky error of its context */
  unsigned peers;   /* bit d: may access device d */
  uint64_t plain;   /* bytes in use that belong to no pool */
  uint64_t managed; /* bytes of managed memory that are on the device */
  FakeStore *store; /* owned */
  Stream *legacy;
} Device;

typedef struct Thread {
  unsigned generation; /* the reset that this is younger than */
  unsigned inside;     /* how often it holds the mutex */
  char const *call;
  Device *stack[16];
  int depth;
  int device; /* of the runtime, where no context is current */
  int last_error;
  int capture_mode;
  struct Stream *own[fakeCudartMost]; /* cudaStreamPerThread of each device; NULL: not used yet */
} Thread;

typedef struct CudartState {
  unsigned generation;
  FakeCudartMachine machine;
  FakeCudartDone done;
  Device device[fakeCudartMost];
  FakeStore *real; /* pinned and managed memory */
  Block *blocks;   /* by rising address */
  size_t block_count, block_room;
  struct Page *pages; /* that were ever made; a handle is the number of one, from 1 on */
  size_t page_count, page_room;
  uintptr_t next_range; /* the lowest address that no range has had; 0: none has had any */
  Stream *streams;
  bool has_blocking; /* one of them is, or was, blocking */
  Event *events;
  Pool *pools;
  Graph *graphs;
  char misuse[256];
} CudartState;

/* Used with the mutex held, that is between enter and leave. */
extern CudartState cudart_state;

/* ---- in and out ---- */

/* What a function needs. */
enum {
  needNothing = 0,
  needDriver = 1,
  needContext = 2 | needDriver,
  needUncaptured = 4 | needContext /* "potentially unsafe": not while a stream is being captured */
};

/* Begins a call of the table: returns an error that it must leave with. */
int cudart_enter(char const *function, int needs);

/* Ends it. Returns error. */
int cudart_leave(int error);

/* Whether this is a child of fork. */
bool cudart_is_inherited(void);

/* For functions that are not of the table: LOCKED(cudart_mutex()). */
pthread_mutex_t *cudart_mutex(void);

Thread *cudart_thread(void);

/* The device of the current context. Where there is none it makes one, like the runtime. NULL, and
 * *error, when that is broken. */
Device *cudart_current(int *error);

/* Likewise, in a function that needs a context. */
Device *cudart_here(void);

/* NULL where there is no such device. */
Device *cudart_device_of(int ordinal);

bool cudart_are_peers(int device, int peer);

/* Keeps what happened, with the name of the call, unless there is a misuse already. */
void cudart_misuse(char const *what, ...) __attribute__((format(printf, 1, 2)));

/* Counts a call for a thing of device while another is current. */
void cudart_note_device(int device);

/* ---- blocks (cudart_memory.c) ---- */

Block *cudart_block_at(uintptr_t adr);

/* Whether a block begins in the range or reaches into it. */
bool cudart_is_touched(uintptr_t adr, size_t nbytes);

/* Enters a block into the records. False without memory. */
bool cudart_block_add(Block const *block);
void cudart_block_remove(Block *block);

/* A new block of device memory, not counted as plain. NULL without memory. */
Block *cudart_device_block(Device *device, size_t nbytes);

uint64_t cudart_available(Device const *device);

/* Checks a range when it is queued. */
int cudart_side(Side *side, void const *adr, size_t nbytes);

/* The bytes of a range when its turn comes; NULL, and a misuse, when they are gone. */
unsigned char *cudart_side_bytes(Side const *side);

/* Puts pages of managed memory on the device as far as it has room, or takes them off it. */
void cudart_populate(Block *block, uintptr_t adr, size_t nbytes, bool on_device);

/* ---- pages (cudart_pages.c) ---- */

/* Those that have not ended; of all devices where device is -1. */
size_t cudart_pages_live(int device);

/* Frees what a range has. */
void cudart_range_end(Block *block);

/* Why these bytes of a range cannot be used; NULL where they can, by *device, to which they
 * belong. */
char const *cudart_range_wrong(Block const *block, uintptr_t adr, size_t nbytes, int *device);

/* Whether device may use all of them. */
bool cudart_range_allows(Block const *block, uintptr_t adr, size_t nbytes, int device);

/* ---- pools (cudart_pool.c) ---- */

/* What synchronising a device does to its pools. */
void cudart_pools_shrink(int device);

/* Takes the bytes of a block out of its pool, as of a place in stream; NULL: of now. */
void cudart_pool_leave(Pool *pool, uint64_t nbytes, Stream *stream);

void cudart_pools_destroy(void);

/* The pool of a handle; NULL, and *error, when there is none. */
Pool *cudart_pool(void *handle, int *error);
int cudart_pool_make(void **pool, int device, size_t most);

/* ---- other processes (cudart_ipc.c) ---- */

/* Releases what others may have, too; NULL is allowed. */
void cudart_shared_end(Shared *shared);

int cudart_pool_make_shared(Pool *pool);

/* The event of a handle; NULL, and *error, when there is none. */
Event *cudart_event(void *handle, int *error);
bool cudart_event_is_foreign(Event const *event);

/* Counts a record of the event, and returns its number; the number of the last one. */
uint64_t cudart_event_next(Event const *event);
uint64_t cudart_event_last(Event const *event);

/* The stream has come to the record with this number; waits for it, with a misuse when that takes
 * too long. */
void cudart_shared_reach(Shared const *shared, uint64_t count);
void cudart_shared_await(Shared const *shared, uint64_t count);

/* ---- streams (cudart_queue.c) ---- */

/* The stream of a handle; NULL, and *error, when there is none. */
Stream *cudart_stream(void *handle, int *error);

/* Queues work, whose staged bytes it takes. On a stream that is being captured it becomes part of
 * the graph. */
int cudart_push(Stream *stream, Work const *work);

/* What any use of a stream begins with: the legacy stream waits for what is queued on the blocking
 * streams of its device, and they for what is queued on it. An error, which breaks the capture,
 * where one of these streams is being captured. */
int cudart_join(Stream *stream);

/* Whether a blocking stream of the legacy stream's device is being captured. */
bool cudart_is_legacy_barred(Stream const *legacy);

/* Does the first until pieces of work of stream, and what they wait for. */
void cudart_demand(Stream *stream, uint64_t until);
void cudart_demand_device(int device);

/* Breaks the captures that forbid the calling thread what is "potentially unsafe", and returns
 * umemCudaCaptureUnsupported; success where none does. */
int cudart_forbid_unsafe(void);

/* Breaks the capture of stream. Returns error; of one that is broken already,
 * umemCudaCaptureInvalidated. */
int cudart_break_capture(Stream *stream, int error);

void cudart_work_destroy(Work *work);

/* ---- the members of the table, without what each call begins and ends with ---- */

#define FUNCTION(name, parameters, arguments, needs, made, change) int cudart_##name parameters;
#include "cudart_functions.h"
