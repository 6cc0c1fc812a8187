/* context.c - checks a context before a call uses it, makes contexts from the descriptions of their
 * kinds, ends them, answers questions about any of them, and waits for their work.
 *
 * The quick halves of the checks are in context.h: only what is refused, or puts cancellation off,
 * comes here. */
#include "core/context.h"
#include "base/number.h"
#include "core/hook.h"
#include "core/live.h"

#include <stdlib.h>
#include <string.h>
#include <umem/base.h>

unsigned umem_watched;
bool (*umem_step_hook)(umemStep const *step, umemWork *work, void *job);

/* ---- entry checks ---- */

uintptr_t umem_null(void const *ctx) { return ctx ? umem_null_of(ctx) : 0; }

char const *umem_get_device_name(void const *ctx) {
  umemVirtual const *self = ctx;
  if (!self || (!self->vptr && !self->name)) return "None";
  return self->name ? self->name : "User";
}

umemVirtual *umem_check_slowly(void const *ctx) {
  umemVirtual *self = (umemVirtual *)(uintptr_t)ctx;
  if (self && self->vptr && umem_is_in_place(self)) {
    umem_defer_cancel();
    return self;
  }
  if (!self) return UMEM_FAIL_NULL(NULL, umemValueError, "the context is NULL");
  if (self->vptr)
    return UMEM_FAIL_NULL(
        self, umemValueError,
        "a context must not be copied or moved: this %s was constructed elsewhere",
        umem_get_device_name(self));
  umemStatusType known = umem_get_status(self);
  if (known == umemOK || !self->vtbl_size) {
    umemVirtual_fail(self, umemValueError, "the context is not constructed: zeroed or destructed");
  } else { /* with the message of the failed constructor, which is on self already */
    char reason[UMEM_MESSAGE_SIZE];
    umem_copy_message(self, reason);
    umemVirtual_fail(NULL, known, "the context is not constructed: %s", reason);
  }
  return NULL;
}

uintptr_t umem_lacks(umemVirtual *ctx, char const *method) {
  return UMEM_FAIL_AS(umem_null_of(ctx), ctx, umemNotImplementedError, "%s has no method %s",
                      umem_get_device_name(ctx), method);
}

/* ---- access ---- */

bool umem_allows_slowly(umemVirtual *ctx, umemCapability access) {
  char const *can_not = access == umemReadable ? "readable" : "writable";
  char const *kind = umem_get_device_name(ctx);
  umemInfo info = UMEM_INFO_INIT;
  umemAttempt forgotten; /* asking for a name must not fail in place of the call */
  umemAttempt_begin(&forgotten);
  umem_get_info(ctx, &info);
  umemAttempt_end(&forgotten);
  if (*info.name)
    return UMEM_FAIL(ctx, umemNotSupportedError, "%s \"%s\" is not %s", kind, info.name, can_not);
  return UMEM_FAIL(ctx, umemNotSupportedError, "this %s is not %s", kind, can_not);
}

bool umem_validate_slowly(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemCapability access) {
  if (adr == umem_null_of(ctx))
    return UMEM_FAIL(ctx, umemValueError, "the address in %s is null", umem_get_device_name(ctx));
  if (adr > UINTPTR_MAX - nbytes)
    return UMEM_FAIL(ctx, umemValueError, "%zu bytes at %ju exceed the address space of %s", nbytes,
                     (uintmax_t)adr, umem_get_device_name(ctx));
  return umem_allows(ctx, access);
}

static bool within(void *ctx, size_t size, size_t nbytes) {
  umemVirtual *self = umem_check(ctx);
  if (!self) return false;
  if (nbytes <= size) return true;
  return UMEM_FAIL(self, umemIndexError, "%zu bytes exceed the %zu bytes given of %s", nbytes, size,
                   umem_get_device_name(self));
}

bool umem_both_within(void *src, size_t src_size, void *dst, size_t dst_size, size_t nbytes) {
  bool inside = within(src, src_size, nbytes);
  return within(dst, dst_size, nbytes) && inside; /* records both, if both exceed */
}

/* ---- layers of a stack ---- */

umemVirtual *umem_innermost(umemVirtual *ctx) {
  for (umemVirtual *upstream; (upstream = umem_upstream_of(ctx)) != NULL;) ctx = upstream;
  return ctx;
}

void *umem_get_upstream(void *ctx) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_check(ctx);
  if (!self) return NULL;
  umemVirtual *upstream = umem_upstream_of(self);
  umemVirtual_adopt(self, before);
  return upstream;
}

umemVirtual *umem_owner_of_memory(umemVirtual *ctx) {
  for (;;) {
    umemVirtual *upstream = umem_upstream_of(ctx);
    if (!upstream) return ctx;
    if (umem_can(ctx, umemSeparate) && memcmp(ctx->space, upstream->space, sizeof ctx->space) != 0)
      return ctx;
    ctx = upstream;
  }
}

bool umem_is_one_memory(umemVirtual *one, umemVirtual *other) {
  uint64_t before = umem_thread.failures;
  umemVirtual *a = umem_owner_of_memory(one), *b = umem_owner_of_memory(other);
  if (umem_thread.failures != before) return false;
  if (a == b) return true;
  if (a->vptr->is_same_device) return a->vptr->is_same_device(a, b);
  return a->vptr == b->vptr && a->space[0] == b->space[0] && a->space[1] == b->space[1];
}

/* ---- kinds ---- */

umemVirtual *umemKind_check(void *ctx, umemKind const *kind) {
  umemVirtual *self = umem_check(ctx);
  if (!self || umemKind_has(kind, self)) return self;
  return UMEM_FAIL_NULL(self, umemTypeError, "this %s is no umem%s", umem_get_device_name(self),
                        kind->label);
}

/* ---- options of names ---- */

/* What umemOption.reserved of a kind's options means: see UMEM_OPTION. */
enum { at, width, not_zero };

static uint64_t largest(size_t bytes) {
  return bytes < sizeof(uint64_t) ? (UINT64_C(1) << 8 * bytes) - 1 : UINT64_MAX;
}

/* member: an integer of 4 or 8 bytes. */
static void store_number(void *member, size_t bytes, uint64_t number) {
  number = umem_lesser(number, largest(bytes));
  if (bytes == sizeof(uint64_t))
    memcpy(member, &number, bytes);
  else
    memcpy(member, &(uint32_t){(uint32_t)number}, sizeof(uint32_t));
}

static void store(umemOption const *option, umemOptionValue const *value, void *member) {
  if (option->kind == umemTextOption || option->kind == umemPathOption)
    memcpy(member, &value->text, sizeof value->text);
  else if (option->kind == umemShareOption)
    memcpy(member, &value->share, sizeof value->share);
  else
    store_number(member, option->reserved[width], value->number);
}

bool umemKind_read(umemKind const *kind, umemOptionValue const *given, void *options) {
  if (kind->defaults)
    memcpy(options, kind->defaults, kind->options_size);
  else
    memset(options, 0, kind->options_size);
  for (size_t i = 0; i < kind->scheme.option_count; i++) {
    umemOption const *option = &kind->scheme.options[i];
    if (!given[i].given || !option->reserved[width]) continue;
    if (option->reserved[not_zero] && !given[i].number)
      return UMEM_FAIL(NULL, umemValueError, "%s=0 is of no use: without %s it is the default",
                       option->name, option->name);
    store(option, &given[i], (char *)options + option->reserved[at]);
  }
  return true;
}

/* ---- structs that begin with their own size ---- */

bool umem_read_sized(void *ctx, void *full, size_t full_size, void const *given, char const *type) {
  size_t size;
  if (!given) return true;
  memcpy(&size, given, sizeof size);
  if (size < sizeof size)
    return UMEM_FAIL(ctx, umemValueError,
                     "the size in the %s is %zu, too small: set it to sizeof(%s)", type, size,
                     type);
  memcpy(full, given, size < full_size ? size : full_size);
  memcpy(full, &full_size, sizeof full_size);
  return true;
}

bool umem_can_write_sized(void *ctx, void const *out, size_t least, char const *argument,
                          char const *type) {
  size_t size = 0;
  if (out) memcpy(&size, out, sizeof size);
  if (out && size >= least) return true;
  if (out)
    return UMEM_FAIL(ctx, umemValueError, "%s->size is %zu: set it to sizeof(%s) before the call",
                     argument, size, type);
  return UMEM_FAIL(ctx, umemValueError, "%s is NULL", argument);
}

void umem_write_sized(void *out, void const *full, size_t full_size) {
  size_t size;
  memcpy(&size, out, sizeof size);
  memcpy(out, full, size < full_size ? size : full_size);
  memcpy(out, &size, sizeof size);
}

/* ---- the beginning and the end of a context ---- */

enum { first_slots = 11 };

void umemVirtual_ctor_sized(umemVirtual *ctx, void *host, size_t vtbl_size) {
  UMEM_ENTER();
  if (!ctx) {
    umemVirtual_fail(NULL, umemValueError, "the context is NULL");
    return;
  }
  memset(ctx, 0, sizeof *ctx);
  ctx->host = host;
  ctx->vtbl_size = (uint32_t)vtbl_size;
  ctx->capabilities = umemReadable | umemWritable;
  ctx->alignment = 1;
  ctx->space[0] = (uintptr_t)ctx;
  ctx->self = ctx;
}

void(umemVirtual_ctor)(umemVirtual *ctx, void *host) {
  umemVirtual_ctor_sized(ctx, host, first_slots * sizeof(void (*)(void)));
}

void umem_construct(umemVirtual *ctx, umemKind const *kind, void *host) {
  umemVirtual_ctor_sized(ctx, host, sizeof *kind->scheme.vtbl);
  if (!(kind->capabilities & umemPrompt))
    umem_defer_cancel(); /* what the constructor takes is not lost */
  ctx->vptr = kind->scheme.vtbl;
  ctx->type = kind->type;
  ctx->name = kind->label;
  ctx->capabilities = kind->capabilities;
  ctx->alignment = kind->alignment;
}

/* Leaves what umem_null, the name and the status need, and nothing that could be called. */
void umem_construct_failed(umemVirtual *ctx) {
  ctx->vptr = NULL;
  ctx->host = NULL;
  ctx->capabilities &= umemOffsets;
  memset(ctx->reserved, 0, sizeof ctx->reserved);
}

void umemVirtual_dtor(umemVirtual *ctx) {
  if (!ctx || !ctx->base || !umem_is_in_place(ctx)) return;
  umemExtra *extra = ctx->base;
  umemTable_clear(&extra->origins);
  free(extra);
  ctx->base = NULL;
}

unsigned umem_transfers;
void (*umem_leave_hook)(umemVirtual *ctx);
void (*umem_block_hook)(umemVirtual *ctx, uintptr_t adr);
void (*umem_exit_hook)(void);

void umem_dtor(void *ctx) {
  UMEM_ENTER();
  umemVirtual *self = ctx;
  umem_defer_cancel(); /* the end of a context in RAM may reach the system, too */
  if (!self || !self->vptr || !umem_check(self)) return;
  if (umem_has_transfers()) umem_leave_hook(self);
  if (self->vptr->dtor) self->vptr->dtor(self);
  umemVirtual_dtor(self);
  umem_construct_failed(self);
  self->vtbl_size = 0; /* distinguishes destructed contexts from those whose constructor failed */
}

/* ---- questions that any context answers ---- */

char const *umem_version(void) { return UMEM_VERSION; }

bool umem_is_same_device(void *one, void *other) {
  UMEM_ENTER();
  umemVirtual *a = umem_check(one);
  umemVirtual *b = umem_check(other);
  return a && b && umem_is_one_memory(a, b);
}

umemStatusType umem_get_info(void *ctx, umemInfo *info) {
  UMEM_ENTER();
  umem_defer_cancel(); /* contexts in RAM ask the kernel, too */
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_check(ctx);
  if (!self || !umem_can_write_sized(self, info, offsetof(umemInfo, available), "info", "umemInfo"))
    return umem_result(before);
  umemInfo known = UMEM_INFO_INIT;
  known.alignment = self->alignment;
  umemVirtual *layer = UMEM_LAYER_WITH(self, info);
  if (layer) layer->vptr->info(layer, &known);
  umem_write_sized(info, &known, sizeof known);
  return umem_record_on_layers(layer, self, before);
}

size_t umem_get_available_share(void *ctx, double share) {
  UMEM_ENTER();
  umemInfo info = UMEM_INFO_INIT;
  umemVirtual *self = umem_check(ctx);
  if (!self || umem_get_info(self, &info) != umemOK) return 0;
  if (!(share >= 0 && share <= 1))
    umemVirtual_fail(self, umemValueError, "a share of %s is not from 0 to 1",
                     umem_number_text(share, 6).text);
  else if (info.available == UMEM_UNKNOWN)
    umemVirtual_fail(self, umemNotSupportedError, "%s does not know how many bytes are free",
                     umem_get_device_name(self));
  else
    return (size_t)(share * (double)info.available) & ~(size_t)255;
  return 0;
}

/* ---- order of queued work, durability, unused storage ---- */

/* Calls the method slot of the outermost layer that has it, and returns the status. */
#define CALL_LAYER(ctx, slot, arguments)                                                           \
  uint64_t before = umem_thread.failures;                                                          \
  umemVirtual *self = umem_check(ctx);                                                             \
  umemVirtual *layer = self ? UMEM_LAYER_WITH(self, slot) : NULL;                                  \
  if (layer) layer->vptr->slot arguments;                                                          \
  return umem_record_on_layers(layer, self, before)

umemStatusType umem_synchronize(void *ctx) {
  UMEM_ENTER();
  CALL_LAYER(ctx, synchronize, (layer));
}

uint64_t umem_unfinished;

umemStatusType umem_finish_work(umemVirtual *ctx) {
  umemStatusType status = umem_synchronize(ctx);
  if (status == umemOK) return umemOK;
  UMEM_FORGETTING();
  if (umem_synchronize(ctx) == umemNotSupportedError)
    __atomic_fetch_add(&umem_unfinished, 1, __ATOMIC_RELAXED);
  return status;
}

umemStatusType umem_wait(void *ctx, void *other) {
  UMEM_ENTER();
  umemVirtual *self = umem_check(ctx);
  umemVirtual *that = umem_check(other);
  if (!self || !that) return UMEM_RESULT();
  if (!(that->capabilities & (umemOrdered | umemDeviceShared))) return umemOK;
  bool one = umem_innermost(self) == umem_innermost(that);
  if (one || UMEM_RESULT() != umemOK) return UMEM_RESULT();
  void (*slot)(umemVirtual *, umemVirtual *) = UMEM_SLOT(self, wait);
  if (slot)
    slot(self, that);
  else
    umem_synchronize(that);
  return UMEM_RESULT();
}

/* Until the end of the block, also when an exception of a hook passes. */
static void end_uncaptured(bool const *outer) { umem_thread.uncaptured = *outer; }
#define UNCAPTURED()                                                                               \
  __attribute__((cleanup(end_uncaptured), unused)) bool const outer_ = umem_thread.uncaptured;     \
  umem_thread.uncaptured = true

umemStatusType umem_wait_uncaptured(umemVirtual *ctx, umemVirtual *other) {
  UNCAPTURED();
  return umem_wait(ctx, other);
}

umemStatusType umem_synchronize_uncaptured(umemVirtual *ctx) {
  UNCAPTURED();
  return umem_synchronize(ctx);
}

bool umem_ask_captured(umemVirtual *ctx) {
  umem_defer_cancel(); /* pools ask here beside the public functions */
  UMEM_FORGETTING();   /* a device that is lost reports that in the next call that needs it */
  umemVirtual *layer = UMEM_LAYER_WITH(ctx, is_captured);
  return layer && layer->vptr->is_captured(layer);
}

umemStatusType umem_flush(void *ctx) {
  UMEM_ENTER();
  CALL_LAYER(ctx, flush, (layer));
}

umemStatusType umem_trim(void *ctx, size_t keep) {
  UMEM_ENTER();
  CALL_LAYER(ctx, trim, (layer, keep));
}
