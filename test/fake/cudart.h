/* cudart.h - a CUDA runtime that exists in tests only: a double of the table umemCudaRt.
 *
 * It is as unhelpful as CUDA's documents allow. Nothing that is queued on a stream is done before
 * somebody demands it: by waiting for the stream or for an event after it, by a blocking copy, or
 * by cudaFree of plain device memory. The legacy stream and blocking streams wait for each other as
 * the manual says ("Stream synchronization behavior"), and for no more. Addresses of device memory
 * mean nothing to the CPU, are never handed out twice, and every use outside of a live block is
 * found; new memory is full of junk. What a program must not do, though a real runtime may let it
 * pass, is kept as misuse.
 *
 * There is one double in a process; it unloads itself at the end. Everything here is thread-safe,
 * but for the settings, and for a child of fork, which may only call the table. */
#pragma once

#include <stdbool.h>

#include "cuda/cuda_rt.h"

umemCudaRt const *fake_cudart(void);

/* Everything as it was at first: no memory, streams, contexts, failures, misuse; plain settings. */
void fake_cudart_reset(void);

/* ---- settings ---- */

enum { fakeCudartMost = 4 };

typedef struct FakeCudartDevice {
  bool no_pools, no_managed, no_concurrent_managed, pageable_access;
  bool no_shared_pools;  /* none that other processes can have */
  bool no_pages, no_bus; /* no memory by pages; none that the bus reaches */
  uint64_t capacity;     /* of the records: memory costs what is allocated */
} FakeCudartDevice;

typedef struct FakeCudartMachine {
  int devices;         /* 3, of which 0 and 1 are peers; 0: umemCudaNoGpu */
  int driver_version;  /* older than the runtime, or 0: umemCudaInsufficientDriver */
  int runtime_version; /* 12020 */
  bool
      late_pageable; /* copies with pageable memory are as late as the manual allows: a blocking one
                          to a device when the source has been read, a queued one to the host in its
                          turn; else both are done on return, as drivers have it so far */
  bool shares_with_itself; /* opens handles of its own process, too, which CUDA refuses */
  FakeCudartDevice device[fakeCudartMost];
} FakeCudartMachine;

/* To be changed while no other thread uses the table; fake_cudart_reset undoes it. */
FakeCudartMachine *fake_cudart_machine(void);

/* What a user's cudaSetDevice does to this thread: the device's primary context is current. */
void fake_cudart_set_device(int device);

/* ---- failures ---- */

/* The nth call from now (1: the next) of any function fails with error, and does nothing. Calls of
 * error_name, error_string and last_error are neither counted nor fail. nth 0: none fails. */
void fake_cudart_fail(unsigned long nth, int error);

/* Fails calls of one function, a member of the table. */
void fake_cudart_fail_in(char const *function, unsigned long nth, int error);

/* Before the nth call of function from now (1: the next) runs run(argument) once, in the calling
 * thread, with no lock held: there another thread may do what comes in between. NULL: nothing. */
void fake_cudart_before(char const *function, unsigned long nth, void (*run)(void *argument),
                        void *argument);

/* Calls so far, of any function or of one. */
unsigned long fake_cudart_calls(void);
unsigned long fake_cudart_calls_of(char const *function);

/* A kernel of the device has crashed, say: from now on every call in its context answers error. */
void fake_cudart_break(int device, int error);

/* The process is ending: every call answers umemCudaUnloading. */
void fake_cudart_unload(void);

/* ---- records ---- */

/* What there is. Freed memory counts until its stream has come to the free. */
typedef struct FakeCudartLive {
  size_t blocks;     /* of device memory, those of pools too */
  size_t managed;    /* blocks */
  size_t pinned;     /* blocks that the runtime has allocated */
  size_t registered; /* ranges of others' host memory */
  size_t streams, events, pools;
  size_t pages, ranges; /* of memory that is mapped page by page */
  size_t primaries;     /* retained primary contexts, each as often as it is retained */
  size_t contexts;      /* devices that have a context */
} FakeCudartLive;

FakeCudartLive fake_cudart_live(void);
bool fake_cudart_is_clean(void); /* nothing of it is live */

/* Whether device has had a context since the reset. */
bool fake_cudart_had_context(int device);

/* The mode of captures of the calling thread: exchange_capture_mode itself demands a context. */
int fake_cudart_capture_mode(void);

/* What has been done. */
typedef struct FakeCudartDone {
  unsigned long
      direct_peer; /* copies between two devices of which one reaches the other's memory */
  unsigned long indirect_peer; /* those without */
  unsigned long pageable;      /* copies with a host side that is not pinned */
  unsigned long foreign; /* calls for another device's stream, event or memory than the current */
} FakeCudartDone;

FakeCudartDone fake_cudart_done(void);

/* The first misuse, or NULL: text that stays until the next reset or forget. */
char const *fake_cudart_misuse(void);
void fake_cudart_forget_misuse(void);

/* ---- the device's side ---- */

/* Where the bytes of [adr, adr + nbytes) really are, as they are now; NULL when that is not inside
 * one live block of the device or pinned memory. */
void *fake_cudart_at(uintptr_t adr, size_t nbytes);

/* Reads and writes bytes as they are now. False where there are none. */
bool fake_cudart_peek(uintptr_t adr, void *bytes, size_t nbytes);
bool fake_cudart_poke(uintptr_t adr, void const *bytes, size_t nbytes);

/* Queues run(argument), which may use the three functions above and nothing else here. Returns an
 * error of the table's. */
int fake_cudart_launch(void *stream, void (*run)(void *argument), void *argument);

/* Whether work queued on stream is not done yet. Demands nothing. */
bool fake_cudart_is_late(void *stream);

/* Handles of cudaStreamLegacy, which is NULL's too, and of cudaStreamPerThread: a blocking stream
 * of the calling thread for the device that is current. */
#define FAKE_STREAM_LEGACY ((void *)1)
#define FAKE_STREAM_PER_THREAD ((void *)2)

/* A stream as of cudaStreamCreate, without cudaStreamNonBlocking: the legacy stream and it wait for
 * each other. Returns an error of the table's. */
int fake_cudart_create_blocking(void **stream);

/* ---- managed memory ---- */

/* Bytes of managed memory that are on the device: sets, copies and prefetches move pages when their
 * turn in a queue comes. Pages for which the device has no room stay in RAM. */
uint64_t fake_cudart_resident(int device);

/* ---- graphs ---- */

/* From now on each call of the calling thread that names stream is a misuse, or no longer: another
 * thread uses it. CUDA's driver can crash in such a call while the other thread begins or ends a
 * capture. */
void fake_cudart_bar(void *stream, bool barred);

/* Captures stream in global mode, or in a cudaStreamCaptureMode: 0 global, 1 thread-local, 2
 * relaxed. */
int fake_cudart_begin_capture(void *stream);
int fake_cudart_begin_capture_in(void *stream, int mode);

/* *graph is what has been captured, or NULL when the capture is broken, which is answered with
 * umemCudaCaptureInvalidated; or where another stream was drawn into it, which stream does not wait
 * for in the end; or in another thread than the one that began it, unless in relaxed mode. */
int fake_cudart_end_capture(void *stream, void **graph);

/* Queues the work of graph, which may be done repeatedly. */
int fake_cudart_launch_graph(void *graph, void *stream);
