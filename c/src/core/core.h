/* core.h - what the files of the library share. Includes no backend. */
#ifndef UMEM_CORE_H
#define UMEM_CORE_H

#include <stddef.h>
#include <umem/base.h>

/* ---- the calling thread ---- */

/* What every call looks at. Of no special TLS model: with initial-exec all thread variables of the
 * library, its texts too, would need room in static TLS, and dlopen of it would fail. */
typedef struct umemThread {
  char const *function; /* the outermost public function that is running: stands before messages */
  void const *caller;   /* where that returns to: the program's code */
  uint64_t failures;    /* recorded or held in the life of the thread */
  umemStatusType last;  /* type of the last of them */
  umemAttempt *attempt; /* the innermost open one */
  bool in_hook;
  bool apart;       /* see umem_wait_apart */
  bool in_texts;    /* the global lock is held for a text: a signal handler must not wait for it */
  bool deferred;    /* the outermost function has put off cancellation */
  int cancel_state; /* what that was before */
} umemThread;
extern _Thread_local umemThread umem_thread __attribute__((visibility("hidden")));

/* ---- cancellation (cancel.c) ---- */

/* Until the outermost function that is running returns, pthread_cancel does not end this thread: a thread
 * that ended inside of umem would leave locks held, and its stack to helpers that still use it. Does
 * nothing where no function is running. */
void umem_defer_cancel(void);
void umem_end_deferral(void);

/* ---- running functions ---- */

/* Makes the calling thread as one that is in no function of umem. For test programs, which leave a call by
 * longjmp when a check or a signal ends a test: no other may. What the call held, locks of its contexts
 * too, it holds for ever. Whether a call was left. */
bool umem_leave_all(void);

/* What the thread's state was when a function began. */
typedef struct umemEntry {
  umemThread *outermost; /* the thread, if this function is its outermost; else NULL */
  umemAttempt *attempt;  /* the innermost open one */
} umemEntry;

static inline umemEntry umem_enter(char const *function, void const *caller) {
  umemThread *thread = &umem_thread;
  __asm__(""
          : "+r"(thread)); /* kept, and not asked for again by umem_leave, which would be a call */
  if (thread->function) return (umemEntry){NULL, thread->attempt};
  thread->function = function;
  thread->caller = caller;
  return (umemEntry){thread, thread->attempt};
}

/* Also when an exception of C++ passes: attempts that it has left are then closed here. */
static inline void umem_leave(umemEntry const *entry) {
  umemThread *thread = entry->outermost;
  if (!thread) {
    umem_thread.attempt = entry->attempt;
    return;
  }
  thread->function = NULL;
  thread->attempt = entry->attempt;
  if (__builtin_expect(thread->deferred, 0)) umem_end_deferral();
}

/* First line of every public function that can fail. */
#define UMEM_ENTER() UMEM_ENTER_AS(__func__, __builtin_return_address(0))
/* The same for what a public function goes on with, which says for itself where it returns to. */
#define UMEM_ENTER_AS(function, caller)                                                            \
  __attribute__((cleanup(umem_leave), unused)) umemEntry const umem_entry_ =                       \
      umem_enter(function, caller)

/* The status of what this thread did since before, an earlier umem_thread.failures: umemOK, or the
 * type of its last failure. */
static inline umemStatusType umem_result(uint64_t before) {
  return umem_thread.failures == before ? umemOK : umem_thread.last;
}

/* Around a call of a function of the program: what it calls is no part of what is running here. It is
 * not named in messages, no attempt holds what fails there, and that is no failure of the running
 * call, whose results and decorators look at umem_thread.failures. Until the end of the block, also when
 * an exception passes:
 *
 *     UMEM_STEP_ASIDE(running);
 *     hook(...);
 */
static inline umemThread umem_step_aside(void) {
  umem_defer_cancel(); /* what passes through umem is its own to decide, and no cancellation may */
  umemThread running = umem_thread;
  umem_thread.function = NULL;
  umem_thread.attempt = NULL;
  umem_thread.apart = false;
  umem_thread.deferred = false;
  return running;
}
static inline void umem_step_back(umemThread const *running) { umem_thread = *running; }
#define UMEM_STEP_ASIDE(running)                                                                   \
  __attribute__((cleanup(umem_step_back), unused)) umemThread const running = umem_step_aside()

/* ---- guards and slots ---- */

/* Whether ctx, which is not NULL, stands where it was constructed: false for a copy by value. */
static inline bool umem_is_in_place(umemVirtual const *ctx) { return ctx->self == ctx; }

static inline bool umem_can(umemVirtual const *ctx, unsigned capabilities) {
  return (ctx->capabilities & capabilities) == capabilities;
}

/* ctx as a constructed context; else NULL, and a status. From here on cancellation is put off, but for
 * contexts that say that they need it not. */
umemVirtual *umem_guard_slowly(void const *ctx);
static inline umemVirtual *umem_guard(void const *ctx) {
  umemVirtual *self = (umemVirtual *)(uintptr_t)ctx;
  bool good = self && self->vptr && umem_is_in_place(self) && umem_can(self, umemPrompt);
  return __builtin_expect(good, 1) ? self : umem_guard_slowly(ctx);
}

/* The same for methods alloc and free. */
static inline umemVirtual *umem_guard_blocks(void const *ctx) {
  umemVirtual *self = (umemVirtual *)(uintptr_t)ctx;
  bool good = self && self->vptr && umem_is_in_place(self) &&
              (self->capabilities & (umemPrompt | umemPromptBlocks));
  return __builtin_expect(good, 1) ? self : umem_guard_slowly(ctx);
}

static inline uintptr_t umem_null_of(umemVirtual const *ctx) {
  return umem_can(ctx, umemOffsets) ? UINTPTR_MAX : 0;
}

/* Whether ctx allows access: umemReadable or umemWritable. False with a status otherwise. */
bool umem_allows(umemVirtual *ctx, umemCapability access);

/* Whether [adr, adr + nbytes) is one that could be: not null, no overflow, access allowed. False with
 * a status otherwise. */
bool umem_validate(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemCapability access);

/* The method in slot of a constructed ctx, or NULL where its table is too short or has none. */
#define UMEM_SLOT(ctx, slot)                                                                       \
  (offsetof(struct umemVtbl, slot) < (ctx)->vtbl_size ? (ctx)->vptr->slot : NULL)

/* Whether ctx is RAM that its own addresses point to: a genuine umemHost. */
static inline bool umem_is_plain_host(umemVirtual const *ctx) { return ctx->host == ctx; }

static inline bool umem_is_power_of_two(size_t n) { return n && !(n & (n - 1)); }

static inline uint64_t umem_lesser(uint64_t one, uint64_t other) {
  return one < other ? one : other;
}

/* Whether umem itself may read or write through ctx's addresses. */
static inline bool umem_cpu_reads(umemVirtual const *ctx) {
  return (ctx->capabilities & (umemCpuReadable | umemFaultable)) == umemCpuReadable;
}
static inline bool umem_cpu_writes(umemVirtual const *ctx) {
  return (ctx->capabilities & (umemCpuWritable | umemFaultable)) == umemCpuWritable;
}

/* Before the CPU touches memory of ctx for umem: returns when the work of a GPU that may use it is done. False
 * with a status when that fails. */
static inline bool umem_settle(umemVirtual *ctx) {
  if (!umem_can(ctx, umemDeviceShared)) return true;
  bool cpu = ctx->capabilities & (umemCpuReadable | umemCpuWritable);
  return !cpu || umem_synchronize(ctx) == umemOK;
}

/* umem_wait and umem_synchronize for contexts that the program has not named in this call. A capture into a
 * graph, which another thread may have begun by now, is left alone: ctx does not become a part of it, and
 * nobody waits for what it records. That is umemNotSupportedError. */
umemStatusType umem_wait_apart(umemVirtual *ctx, umemVirtual *other);
umemStatusType umem_synchronize_apart(umemVirtual *ctx);

/* The innermost context that ctx decorates; ctx itself where it decorates none. Records a failure, and
 * stops, at an upstream that is not constructed any more. */
umemVirtual *umem_innermost(umemVirtual *ctx);

/* umemVirtual_adopt for ctx and each layer between it and from, innermost first. from: what has done
 * the work for them, ctx itself or what it decorates; NULL: nobody, all the way down. */
umemStatusType umem_adopt_from(umemVirtual *from, umemVirtual *ctx, uint64_t before);

/* The stream of CUDA on which ctx, which decorates none, queues its work (cuda/cuda_place.c); 0 where
 * there is none. */
uintptr_t umem_stream_of(umemVirtual const *ctx);

/* Whether the work of ctx, which decorates none, is being recorded for later instead of queued: a stream of
 * CUDA in a capture (cuda/cuda_place.c). Nobody outside of it can be ordered after it then, nor it after
 * others. Records nothing, takes no lock. */
bool umem_is_captured(umemVirtual *ctx);

/* Whether a block at adr with at least size bytes may have the old_size that realloc was given: umemValueError
 * on ctx when that is more. */
bool umem_has_size(umemVirtual *ctx, uintptr_t adr, uint64_t size, size_t old_size);

/* The default of the method realloc. */
uintptr_t umem_move_unknown(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size);

/* realloc by a new block, a copy and a free, for those who know that adr is a block of old_size bytes. */
uintptr_t umem_move_block(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size);

/* ---- copies: the router and its two helpers ---- */

/* Copies a validated layout in normal form (see copy_direct in virtual.h) by the best route. */
void umem_route(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                umemLayout const *layout);

/* stage.c: copies a run through host memory in chunks. */
void umem_stage(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                size_t nbytes);

/* strided.c: copies a layout of rank > 0 that no side could copy directly. */
void umem_copy_items(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                     umemLayout const *layout);

/* Whether nbytes exceed neither of the bounds that a _safe function was given; else false, and
 * umemIndexError on the context, or contexts, at fault. */
bool umem_both_within(void *src, size_t src_size, void *dst, size_t dst_size, size_t nbytes);

/* The genuine umemHost for a copy between src and dst: dst itself where it is one, so that its
 * failures are its own, else the one that src or dst was given. NULL, and a status, without any. */
umemVirtual *umem_host_between(umemVirtual *src, umemVirtual *dst);

/* Reads from src to, or writes to dst from, the pointer buffer; host is a umem_host_between. */
void umem_read_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *host, void *buffer, size_t n);
void umem_write_run(umemVirtual *dst, uintptr_t dst_adr, umemVirtual *host, void const *buffer,
                    size_t n);

/* ---- methods for contexts whose memory is RAM (ram.c) ---- */

void umem_ram_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes);
void umem_ram_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                      size_t nbytes);
void umem_ram_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                        size_t nbytes);
void umem_ram_info(umemVirtual *ctx, umemInfo *info);

/* ---- options of programs that were compiled against an older umem ---- */

/* Puts what is given over the defaults in full, a struct of full_size bytes that begins with its
 * size. given: one that may be shorter or longer by its own word; NULL: nothing. False, and a status
 * on ctx, for a size that cannot be true; type is the name of the struct. */
bool umem_read_sized(void *ctx, void *full, size_t full_size, void const *given, char const *type);

/* ---- constructors ---- */

/* For constructors of the library: makes *ctx the base of a context of this kind (core/kind.h). */
struct umemKind;
void umem_construct(umemVirtual *ctx, struct umemKind const *kind, void *host);

/* Leaves *ctx, whose constructor has recorded a failure, as a context that answers every call with a
 * status; umem_null and the recorded status stay. The vtable's dtor will not be called. */
void umem_construct_failed(umemVirtual *ctx);

/* ---- messages ---- */

/* Copies what was recorded on ctx to text, UMEM_MESSAGE_SIZE bytes. Unlike umem_get_message it uses up
 * none of the texts that were handed out to the program. */
void umem_copy_message(umemVirtual const *ctx, char *text);

/* The system's words for error, as strerror. Uses buffer; thread-safe. */
char const *umem_system_words(int error, char *buffer, size_t size);

#endif
