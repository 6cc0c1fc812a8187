/* cuda_room.c - checks that all live managed memory fits on the GPU.
 *
 * If a program uses more managed memory than the GPU has, the driver moves pages all the time, which can stop the
 * whole machine. So all live blocks of managed memory together must fit into the memory of the GPU that nothing else
 * uses. CUDA reports the free bytes of the GPU. Pages of managed memory that are on the GPU do not count as free, but
 * CUDA does not report how many these are, and pages can leave the GPU whenever the CPU touches them. So the check
 * has two steps:
 *
 * 1. All bytes of all live blocks must fit into the free bytes, as if none of their pages were on the GPU.
 * 2. If they do not fit, umem finds pages that are on the GPU: it prefetches live blocks to the GPU piece by piece;
 *    a piece has at most a quarter of the bytes that are free then. If the free bytes do not fall, the piece was on
 *    the GPU already, and umem does not count it again. Of a block that is elsewhere it moves at most one piece. */
#include "cuda/cuda_room.h"

#include <pthread.h>

enum { room_share = 4 };
static uint64_t const least_piece = 2 << 20; /* what the driver moves pages in, at most */
static uint64_t const first_piece = 64 << 20, largest_piece = 1 << 30;

/* Guards the list, and lets only one thread search. It is not a umemLock, because fork would wait for this. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static umemCudaState *states; /* of managed memory */

/* In a child no thread holds it. */
static void renew_lock(void) { pthread_mutex_init(&lock, NULL); }

__attribute__((constructor(101))) static void watch_fork(void) {
  pthread_atfork(NULL, NULL, renew_lock);
}

void umemCudaRoom_enter(umemCudaState *state) {
  pthread_mutex_lock(&lock);
  state->next = states;
  states = state;
  pthread_mutex_unlock(&lock);
}

void umemCudaRoom_leave(umemCudaState *state) {
  pthread_mutex_lock(&lock);
  umemCudaState **link = &states;
  while (*link && *link != state) link = &(*link)->next;
  if (*link) *link = state->next;
  pthread_mutex_unlock(&lock);
}

/* ---- finding pages that are on the GPU ---- */

/* Bytes. */
typedef struct Search {
  umemCudaGpu *gpu;
  void *stream;
  uint64_t wanted;    /* that should be found on the GPU */
  uint64_t resident;  /* that were found there */
  uint64_t sure;      /* that are there now: these, and what was moved */
  uint64_t available; /* that the GPU has free */
  int error;
} Search;

static bool is_over(Search const *search) {
  return search->error || search->resident >= search->wanted ||
         search->available / room_share < least_piece;
}

/* The next piece of rest bytes. */
static uint64_t piece_of(Search const *search, uint64_t size, uint64_t rest) {
  uint64_t most = search->available / room_share / least_piece * least_piece;
  if (size > most) size = most;
  return size < rest ? size : rest;
}

/* Prefetches the bytes, and returns how many of them were not on the GPU. Memory that others allocate at the same
 * time counts, too. */
static uint64_t move(Search *search, uintptr_t adr, uint64_t nbytes) {
  umemCudaRt const *rt = search->gpu->rt;
  size_t available = 0, capacity;
  search->error = rt->prefetch((void const *)adr, nbytes, search->gpu->device, search->stream);
  if (!search->error) search->error = rt->stream_synchronize(search->stream);
  if (!search->error) search->error = rt->memory_info(&available, &capacity);
  if (search->error) return nbytes;
  uint64_t moved = search->available > available ? search->available - available : 0;
  search->available = available;
  search->sure += nbytes;
  return moved < nbytes ? moved : nbytes;
}

static void look_at_block(Search *search, uintptr_t adr, uint64_t nbytes) {
  uint64_t size = first_piece, moved = 0;
  for (uint64_t at = 0; at < nbytes && !moved && !is_over(search);) {
    uint64_t piece = piece_of(search, size, nbytes - at);
    moved = move(search, adr + at, piece);
    search->resident += piece - moved;
    at += piece;
    if (size < largest_piece) size *= 2;
  }
}

/* Blocks leave the table before they are freed, so no block of the table is freed while its lock is held. */
static void look_at_state(Search *search, umemCudaState *state) {
  umemTableCell *cell;
  umemLock_acquire(&state->lock);
  for (size_t at = 0; !is_over(search) && (cell = umemTable_next(&state->blocks, &at)); at++)
    if (cell->value >= least_piece) look_at_block(search, umemTable_key(cell), cell->value);
  umemLock_release(&state->lock);
}

/* Finds how many bytes of live blocks are certainly on the GPU, beyond what available counts: as many as wanted, or
 * as many as there are. Fails if there is not enough room. */
static uint64_t find_resident(umemCudaGpu *gpu, uint64_t wanted, uint64_t available) {
  umemCudaRt const *rt = gpu->rt;
  Search search = {.gpu = gpu, .wanted = wanted, .available = available};
  if (rt->stream_create(&search.stream)) {
    rt->last_error();
    return 0;
  }
  for (umemCudaState *state = states; state && !is_over(&search); state = state->next)
    if (state->gpu == gpu) look_at_state(&search, state);
  if (search.error) rt->last_error();
  if (rt->stream_destroy(search.stream)) rt->last_error();
  /* What is free and what is sure to be there now; but no more than was when this began. */
  uint64_t now = search.available + search.sure, then = available + search.resident;
  uint64_t both = now < then ? now : then;
  return both > available ? both - available : 0;
}

/* ---- room ---- */

static int reserve(umemCudaGpu *gpu, uint64_t nbytes) {
  size_t available = 0, capacity = 0;
  int error = gpu->rt->memory_info(&available, &capacity);
  if (error) return error;
  uint64_t live = __atomic_load_n(&gpu->managed, __ATOMIC_RELAXED);
  if (nbytes > available) return umemCudaOutOfMemory;
  uint64_t rest = available - nbytes;
  if (live > rest && gpu->concurrent_managed && live <= capacity - nbytes)
    rest += find_resident(gpu, live - rest, available);
  if (live > rest) return umemCudaOutOfMemory;
  __atomic_fetch_add(&gpu->managed, nbytes, __ATOMIC_RELAXED);
  return umemCudaSuccess;
}

int umemCudaRoom_take(umemCudaGpu *gpu, size_t nbytes) {
  pthread_mutex_lock(&lock);
  int error = reserve(gpu, nbytes);
  pthread_mutex_unlock(&lock);
  return error;
}

void umemCudaRoom_give(umemCudaGpu *gpu, size_t nbytes) {
  __atomic_fetch_sub(&gpu->managed, nbytes, __ATOMIC_RELAXED);
}
