/* guard.c - see guard.h. Only what is no constructed context, or puts cancellation off, comes here. */
#include "core/guard.h"
#include "base/thread.h"
#include "core/status.h"

uintptr_t umem_null(void const *ctx) { return ctx ? umem_null_of(ctx) : 0; }

char const *umem_get_device_name(void const *ctx) {
  umemVirtual const *self = ctx;
  if (!self || (!self->vptr && !self->name)) return "None";
  return self->name ? self->name : "User";
}

umemVirtual *umem_guard_slowly(void const *ctx) {
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
  } else { /* the message of the failed constructor is there already: do not bury it under repetitions */
    char reason[UMEM_MESSAGE_SIZE];
    umem_copy_message(self, reason);
    umemVirtual_fail(NULL, known, "the context is not constructed: %s", reason);
  }
  return NULL;
}
