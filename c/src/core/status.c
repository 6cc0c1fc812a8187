/* status.c - the status of contexts and threads, attempts, and the failure hook.
 *
 * Nothing here allocates (but in a library opened by dlopen glibc takes memory for the texts of a
 * thread at its first failure). Texts are bounded buffers: one inside every context, the others per
 * thread.
 * A context's text is guarded by the global lock, which only failures and readers of texts take. */
#include "core/status.h"
#include "core/live.h"
#include "core/kind.h"
#include "base/files.h"
#include "base/text.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool umem_leave_all(void) {
  bool left = umem_thread.function || umem_thread.attempt || umem_thread.in_hook;
  int ignored;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &ignored); /* as threads begin */
  if (umem_thread.in_texts) umemLock_release(&umem_global_lock);
  uint64_t failures = umem_thread.failures;
  umem_thread = (umemThread){.failures = failures};
  return left;
}

enum { kept_messages = 4 }; /* the one just returned and three further calls */

static _Thread_local struct {
  umemStatusType type;
  void *ctx; /* of the last failure; compared only */
  char text[UMEM_MESSAGE_SIZE];
  char kept[kept_messages][UMEM_MESSAGE_SIZE];
  unsigned next;
} thread_texts;

static umemFailureHook *failure_hook;
static void *failure_hook_data;

/* ---- text ---- */

static void append(char *text, char const *more) {
  size_t used = strlen(text);
  size_t room = UMEM_MESSAGE_SIZE - 1 - used;
  size_t length = strnlen(more, room);
  memcpy(text + used, more, length);
  text[used + length] = 0;
}

static void append_separated(char *text, char const *more) {
  if (!*more) return;
  if (*text) append(text, "; ");
  append(text, more);
}

/* A copy of text that outlives three further calls by this thread. */
char const *umem_keep_text(char const *text) {
  char *copy = thread_texts.kept[thread_texts.next++ % kept_messages];
  *copy = 0;
  append(copy, text);
  return copy;
}

char const *umem_get_status_name(umemStatusType type) {
  static char const *const names[] = {
      [umemOK] = "OK",
      [umemMemoryError] = "MemoryError",
      [umemRuntimeError] = "RuntimeError",
      [umemIOError] = "IOError",
      [umemValueError] = "ValueError",
      [umemTypeError] = "TypeError",
      [umemIndexError] = "IndexError",
      [umemNotImplementedError] = "NotImplementedError",
      [umemNotSupportedError] = "NotSupportedError",
      [umemAssertError] = "AssertError",
      [umemCancelledError] = "CancelledError",
  };
  return (size_t)type < sizeof names / sizeof *names ? names[type] : "UnknownError";
}

char const *umem_system_words(int error, char *buffer, size_t size) {
#ifdef __GLIBC__
  return strerror_r(error, buffer, size); /* the GNU form returns the text */
#else
  return strerror_r(error, buffer, size) == 0 ? buffer : "unknown error";
#endif
}

/* ---- recording ---- */

bool umem_texts_lock(void) {
  if (umem_thread.in_texts) return false;
  umem_thread.in_texts = true;
  umemLock_acquire(&umem_global_lock);
  return true;
}

void umem_texts_unlock(void) {
  umemLock_release(&umem_global_lock);
  umem_thread.in_texts = false;
}

static void note_on_context(umemVirtual *ctx, umemStatusType type, char const *text) {
  if (!umem_texts_lock()) { /* the type is known at least */
    __atomic_store_n(&ctx->status.type, type, __ATOMIC_RELEASE);
    return;
  }
  umemStatusType old = ctx->status.type;
  if (!ctx->status.message) ctx->text[0] = 0;
  if (old != umemOK && type != umemOK && old != type) {
    append_separated(ctx->text, "status ");
    append(ctx->text, umem_get_status_name(old));
    append(ctx->text, " changed to ");
    append(ctx->text, umem_get_status_name(type));
  }
  append_separated(ctx->text, text);
  ctx->status.message = ctx->text;
  __atomic_store_n(&ctx->status.type, type, __ATOMIC_RELEASE);
  umem_texts_unlock();
}

static void note_on_thread(umemVirtual *ctx, umemStatusType type, char const *text) {
  umem_thread.last = type;
  thread_texts.type = type;
  thread_texts.ctx = ctx;
  thread_texts.text[0] = 0;
  append(thread_texts.text, text);
}

/* A failure in the hook does not replace the failure that the hook was called with. */
static void call_hook(umemVirtual *ctx, umemStatusType type, char const *text) {
  if (umem_thread.in_hook) return;
  if (!umem_texts_lock()) return;
  umemFailureHook *hook = failure_hook;
  void *data = failure_hook_data;
  umem_texts_unlock();
  if (!hook) return;
  bool failed;
  {
    UMEM_STEP_ASIDE(running);
    umem_thread.in_hook = true;
    hook(ctx, type, text, data);
    failed = umem_thread.failures != running.failures;
  }
  if (failed) note_on_thread(ctx, type, text);
}

static void hold(umemAttempt *attempt, umemVirtual *ctx, umemStatusType type, char const *text) {
  if (attempt->type != umemOK) return;
  attempt->type = type;
  attempt->ctx = ctx;
  append(attempt->text, text);
}

/* ---- the list of live contexts ---- */

static unsigned listed_contexts; /* atomic: most contexts in the message of a umemMemoryError */

void umem_list_when_out_of_memory(unsigned most) {
  __atomic_store_n(&listed_contexts, most, __ATOMIC_RELAXED);
}

size_t umem_describe_contexts(char *text, size_t size) {
  if (size) *text = 0;
  UMEM_TEXTS_LOCKED(0);
  return umemLive_describe(text, size, UINT_MAX);
}

/* Appends the list to a text of UMEM_MESSAGE_SIZE bytes. */
static void append_contexts(char *text, unsigned most) {
  char list[UMEM_MESSAGE_SIZE] = "";
  UMEM_TEXTS_LOCKED();
  if (!umemLive_describe(list, sizeof list, most)) return;
  append(text, "; live contexts: ");
  append(text, list);
}

/* Every failure passes here, with its final text. It may name files of other people: no byte of a
 * name acts on the terminal or the log that shows it. */
static void record(umemVirtual *ctx, umemStatusType type, char const *given) {
  char text[UMEM_MESSAGE_SIZE];
  umem_escape(text, sizeof text, given);
  umem_thread.failures++;
  umem_thread.last = type;
  if (umem_thread.attempt) {
    hold(umem_thread.attempt, ctx, type, text);
    return;
  }
  unsigned most = __atomic_load_n(&listed_contexts, __ATOMIC_RELAXED);
  if (type == umemMemoryError && most) append_contexts(text, most);
  note_on_thread(ctx, type, text);
  if (ctx) note_on_context(ctx, type, text);
  call_hook(ctx, type, text);
}

/* Puts the name of the running public function before a message. */
static void prefix(char *text) {
  text[0] = 0;
  if (!umem_thread.function) return;
  append(text, umem_thread.function);
  append(text, ": ");
}

umemStatusType umemVirtual_fail(void *ctx, umemStatusType type, char const *format, ...) {
  char text[UMEM_MESSAGE_SIZE];
  prefix(text);
  size_t used = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  if (vsnprintf(text + used, sizeof text - used, format, arguments) < 0) append(text, format);
  va_end(arguments);
  record(ctx, type, text);
  return type;
}

/* ---- adaptors ---- */

/* Whether ctx stands on other: is above it in a stack, or takes its buffers from it. A failure of
 * no context (NULL) counts as one below. */
static bool stands_on(umemVirtual *ctx, void const *other) {
  if (!other || other == ctx->host) return true;
  for (umemVirtual *layer = umem_below(ctx); layer; layer = umem_below(layer))
    if (layer == other) return true;
  return false;
}

umemStatusType umemVirtual_adopt(umemVirtual *ctx, uint64_t before) {
  if (umem_thread.failures == before) return umemOK;
  umemAttempt *attempt = umem_thread.attempt;
  if (attempt && attempt->type != umemOK) {
    if (ctx && ctx != attempt->ctx && stands_on(ctx, attempt->ctx)) attempt->adopter = ctx;
  } else if (ctx && ctx != thread_texts.ctx && stands_on(ctx, thread_texts.ctx)) {
    note_on_context(ctx, thread_texts.type, thread_texts.text);
  }
  return umem_thread.last;
}

umemStatusType umem_record_on_layers(umemVirtual *from, umemVirtual *ctx, uint64_t before) {
  if (umem_thread.failures == before) return umemOK;
  umemVirtual *layer = ctx && ctx != from ? umem_below(ctx) : NULL;
  if (layer) umem_record_on_layers(from, layer, before);
  return umemVirtual_adopt(ctx, before);
}

/* The rest of umemVirtual_adopt for a failure that was held: records it on all layers above the one
 * that failed. */
static void adopt_held(umemAttempt const *attempt) {
  if (umem_thread.attempt) { /* now held by an outer one, if that has nothing older */
    if (umem_thread.attempt->ctx == attempt->ctx) umem_thread.attempt->adopter = attempt->adopter;
    return;
  }
  for (umemVirtual *layer = attempt->adopter; layer && layer != attempt->ctx;
       layer = umem_below(layer))
    note_on_context(layer, attempt->type, attempt->text);
}

/* ---- failures of the caller's own ---- */

umemStatusType umem_set_status(void *ctx, umemStatusType type, char const *message) {
  if (!message) message = "";
  if (type == umemOK) {
    if (ctx) note_on_context(ctx, umemOK, message);
    return umemOK;
  }
  char text[UMEM_MESSAGE_SIZE];
  prefix(text);
  append(text, message);
  record(ctx, type, text);
  return type;
}

/* ---- reading and clearing ---- */

umemStatusType umem_get_status(void const *ctx) {
  umemVirtual const *self = ctx;
  return self ? __atomic_load_n(&self->status.type, __ATOMIC_ACQUIRE) : umemValueError;
}

bool umem_is_ok(void const *ctx) { return umem_get_status(ctx) == umemOK; }

/* Its own, also where ctx is a copy by value, whose message points into what was copied. */
static char const *text_of(umemVirtual const *ctx) { return ctx->status.message ? ctx->text : ""; }

char const *umem_get_message(void const *ctx) {
  umemVirtual const *self = ctx;
  if (!self) return "";
  UMEM_TEXTS_LOCKED("");
  return umem_keep_text(text_of(self));
}

void umem_copy_message(umemVirtual const *ctx, char *text) {
  text[0] = 0;
  UMEM_TEXTS_LOCKED();
  append(text, text_of(ctx));
}

umemStatusType umem_clear_status(void *ctx) {
  UMEM_ENTER();
  umemVirtual *self = ctx;
  if (!self) return umemVirtual_fail(NULL, umemValueError, "the context is NULL");
  bool texts = umem_texts_lock();
  if (texts) {
    self->status.message = NULL;
    self->text[0] = 0;
  }
  __atomic_store_n(&self->status.type, umemOK, __ATOMIC_RELEASE);
  if (texts) umem_texts_unlock();
  return umemOK;
}

umemStatusType umem_thread_status(void) { return thread_texts.type; }
char const *umem_thread_message(void) { return umem_keep_text(thread_texts.text); }
uint64_t umem_thread_failures(void) { return umem_thread.failures; }

void umem_thread_clear(void) {
  thread_texts.type = umemOK;
  thread_texts.text[0] = 0;
}

void umem_set_failure_hook(umemFailureHook *hook, void *data) {
  UMEM_TEXTS_LOCKED();
  failure_hook = hook;
  failure_hook_data = data;
}

/* ---- decisions ---- */

int umem_decisions;

static umemDecisionHook *decision_hook; /* both under the lock of the texts */
static void *decision_hook_data;

umemStatusType umem_set_decision_hook(umemDecision most, umemDecisionHook *hook, void *data) {
  UMEM_ENTER();
  if ((unsigned)most > umemDecisionCopies)
    return umemVirtual_fail(NULL, umemValueError, "there is no level %d of decisions", (int)most);
  if (!umem_texts_lock()) return umemVirtual_fail(NULL, umemRuntimeError, "the process ends");
  decision_hook = hook;
  decision_hook_data = data;
  umem_texts_unlock();
  __atomic_store_n(&umem_decisions, hook ? (int)most : 0, __ATOMIC_RELAXED);
  return umemOK;
}

void umem_report_decision(void *ctx, umemDecision level, char const *format, ...) {
  char text[UMEM_MESSAGE_SIZE];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (umem_thread.in_hook || !umem_texts_lock()) return;
  umemDecisionHook *hook = decision_hook;
  void *data = decision_hook_data;
  umem_texts_unlock();
  if (!hook) return;
  UMEM_STEP_ASIDE(running);
  umem_thread.in_hook = true;
  hook(ctx, level, text, data);
}

/* ---- the only output ---- */

/* Whether fd is for messages. If the program has closed it, a file of data may have its number by
 * now, one of umem's for example. Those are closed by exec; a standard output is not. */
static bool is_for_messages(int fd) {
  int flags = fcntl(fd, F_GETFD);
  return flags >= 0 && !(flags & FD_CLOEXEC);
}

void umem_print_line(char const *text) {
  char line[UMEM_MESSAGE_SIZE + 100];
  int length = snprintf(line, sizeof line - 1, "%s", text);
  if (length < 0 || !is_for_messages(STDERR_FILENO)) return;
  size_t used = strlen(line);
  line[used++] = '\n';
  sigset_t pipe, before, waiting;
  struct timespec const now = {0, 0};
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  if (pthread_sigmask(SIG_BLOCK, &pipe, &before) != 0) return;
  bool was_waiting = sigpending(&waiting) == 0 && sigismember(&waiting, SIGPIPE) == 1;
  umem_write_all(STDERR_FILENO, line, used);
  if (!was_waiting) sigtimedwait(&pipe, NULL, &now); /* the signal of the write, if there was one */
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void umem_report_end(char const *what) {
  char text[UMEM_MESSAGE_SIZE + 80];
  if (!umem_texts_lock()) return;
  bool seen = failure_hook != NULL;
  umem_texts_unlock();
  if (seen) return;
  snprintf(text, sizeof text, "umem: %.60s: %s", what ? what : "an object", thread_texts.text);
  umem_print_line(text);
}

/* ---- attempts ---- */

void umemAttempt_begin(umemAttempt *attempt) {
  attempt->outer = umem_thread.attempt;
  attempt->failures = umem_thread.failures;
  attempt->type = umemOK;
  attempt->last = umem_thread.last;
  attempt->ctx = NULL;
  attempt->adopter = NULL;
  attempt->text[0] = 0;
  umem_thread.attempt = attempt;
}

void umemAttempt_end(umemAttempt *attempt) {
  umem_thread.attempt = attempt->outer;
  umem_thread.failures = attempt->failures;
  umem_thread.last = attempt->last;
}

bool umemAttempt_failed(umemAttempt const *attempt) { return attempt->type != umemOK; }

umemStatusType umemAttempt_record(umemAttempt const *attempt) {
  if (!umemAttempt_failed(attempt)) return umemOK;
  record(attempt->ctx, attempt->type, attempt->text);
  adopt_held(attempt);
  return attempt->type;
}
