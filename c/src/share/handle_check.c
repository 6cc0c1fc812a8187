/* handle_check.c - whether the words of a handle can be those of one, without a look at its memory. */
#include "share/handle_check.h"
#include "share/segment.h"

#include <stdbool.h>
#include <string.h>

_Static_assert(sizeof(umemHandle) == 512, "handles go to programs with other versions of umem");

/* "/" and a name, and zeros up to the end; or nothing but zeros. */
static bool is_name(char const *text, bool wanted) {
  size_t const room = sizeof((umemHandle *)0)->name;
  size_t length = strnlen(text, room);
  if (length == room) return false;
  for (size_t i = length; i < room; i++)
    if (text[i]) return false;
  if (!wanted) return !length;
  bool up = !strcmp(text, "/.") || !strcmp(text, "/..");
  return length > 1 && length <= 251 && *text == '/' && !strchr(text + 1, '/') && !up;
}

static bool is_zero(uint64_t const *words, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (words[i]) return false;
  return true;
}

#define IS_ZERO(member) is_zero((member), sizeof(member) / sizeof *(member))

char const *umemHandle_check(umemHandle const *handle) {
  if (handle->version != UMEM_HANDLE_VERSION) return "its version is not that of this umem";
  if (handle->kind < umemHandleNamed || handle->kind > umemHandleCudaPool)
    return "its kind is not known";
  if (!handle->length) return "it has no bytes";
  if (handle->length > handle->size || handle->offset > handle->size - handle->length ||
      handle->size > INT64_MAX)
    return "its bytes are not in its memory";
  bool segment = handle->kind == umemHandleNamed || handle->kind == umemHandleUnnamed;
  if (segment && handle->offset < umemSegmentHeader) return "its bytes are those of the tables";
  if (handle->flags & ~UMEM_HANDLE_READ_ONLY || handle->zero) return "it has unknown flags";
  if (!is_name(handle->name, handle->kind == umemHandleNamed)) return "its name is malformed";
  bool plain = IS_ZERO(handle->memory) && IS_ZERO(handle->event) && IS_ZERO(handle->gpu);
  if (!IS_ZERO(handle->reserved)) return "it is of a newer umem";
  if (umemHandle_is_of_gpu(handle) && handle->flags) return "memory of a GPU is never read-only";
  return plain || umemHandle_is_of_gpu(handle) ? NULL : "it names a GPU";
}
