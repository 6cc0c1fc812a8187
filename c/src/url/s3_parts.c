/* s3_parts.c - the parts of an object that is written, and the buffers that they are written to.
 *
 * The object is cut into parts of one size. A part that is written has a buffer: its bytes, and a
 * bit for each that says whether it was written. A part is covered when all bytes of blocks in it
 * are. Who calls these functions holds the lock of the upload. */
#include "url/s3.h"
#include "base/number.h"
#include "core/status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { granule = 16 }; /* of the placement of blocks: that of files */
static uint64_t const last_offset = (uint64_t)INT64_MAX & ~(uint64_t)(granule - 1);
static uint64_t const usual_part = (uint64_t)8 << 20, part_unit = (uint64_t)1 << 20;

/* ==== parts ==== */

unsigned umemS3Parts_count(umemS3Parts const *self) {
  return (unsigned)((self->end + self->size - 1) / self->size);
}

uint64_t umemS3Parts_size_of(umemS3Parts const *self, unsigned part) {
  uint64_t begin = part * self->size;
  return begin < self->end ? umem_lesser(self->size, self->end - begin) : 0;
}

bool umemS3Parts_is_sent(umemS3Parts const *self, unsigned part) {
  return part < self->room && *self->parts[part].etag;
}

umemS3Buffer *umemS3Parts_buffer_of(umemS3Parts const *self, unsigned part) {
  for (unsigned i = 0; i < self->buffer_count; i++)
    if (self->buffers[i].state != umemS3BufferFree && self->buffers[i].part == part)
      return &self->buffers[i];
  return NULL;
}

bool umemS3Parts_is_closed(umemS3Parts const *self, unsigned part) {
  return umemS3Parts_size_of(self, part) == self->size && self->end > self->size;
}

/* Whether its bytes may no longer change: it is sent, or will be. */
static bool is_over(umemS3Parts const *self, unsigned part) {
  umemS3Buffer const *buffer = umemS3Parts_buffer_of(self, part);
  return umemS3Parts_is_sent(self, part) || (buffer && buffer->state != umemS3BufferFills);
}

bool umemS3Parts_is_ready(umemS3Parts const *self, umemS3Buffer const *buffer) {
  return buffer->state == umemS3BufferFills && !buffer->writers &&
         umemS3Parts_is_closed(self, buffer->part) &&
         buffer->covered == self->parts[buffer->part].needed;
}

static uint64_t count_marks(umemS3Buffer const *buffer, uint64_t from, uint64_t size);

/* Bytes of a block that nothing has written, in parts that are not over. */
static uint64_t count_unwritten(umemS3Parts const *self, uint64_t start, uint64_t size) {
  uint64_t unwritten = 0;
  for (uint64_t piece; size; start += piece, size -= piece) {
    unsigned part = (unsigned)(start / self->size);
    umemS3Buffer const *buffer = umemS3Parts_buffer_of(self, part);
    uint64_t at = start % self->size;
    piece = umem_lesser(self->size - at, size);
    if (!is_over(self, part)) unwritten += piece - (buffer ? count_marks(buffer, at, piece) : 0);
  }
  return unwritten;
}

uint64_t umemS3Parts_missing(umemS3Parts const *self) {
  uint64_t missing = 0;
  for (unsigned part = 0; part < umemS3Parts_count(self); part++) {
    umemS3Buffer const *buffer = umemS3Parts_buffer_of(self, part);
    if (!is_over(self, part)) missing += self->parts[part].needed - (buffer ? buffer->covered : 0);
  }
  umemTableCell const *cell;
  for (size_t from = 0; missing && (cell = umemTable_next(&self->zeros, &from)) != NULL; from++)
    missing -= count_unwritten(self, umemTable_key(cell), cell->value);
  return missing;
}

/* ---- the table of parts ---- */

/* The table has all parts up to end. */
static bool reserve(umemS3Parts *self, uint64_t end) {
  unsigned count = (unsigned)((end + self->size - 1) / self->size);
  if (count <= self->room) return true;
  unsigned room = (unsigned)umem_lesser(umemS3PartsMost, 2 * (uint64_t)count);
  umemS3Part *more = realloc(self->parts, room * sizeof *more);
  if (!more)
    return UMEM_FAIL(self->ctx, umemMemoryError, "no memory for the table of %u parts", room);
  memset(more + self->room, 0, (room - self->room) * sizeof *more);
  self->parts = more;
  self->room = room;
  return true;
}

/* Counts the bytes of a block in its parts. */
static void count_block(umemS3Parts *self, uint64_t start, uint64_t size) {
  while (size) {
    uint64_t piece = umem_lesser(self->size - start % self->size, size);
    self->parts[start / self->size].needed += piece;
    start += piece, size -= piece;
  }
}

bool umemS3Parts_choose_size(umemS3Parts *self) {
  umemRangeItem item;
  if (self->parts) return true;
  if (!self->size) {
    uint64_t length = umem_greater(self->length, self->end);
    uint64_t each = (length + umemS3PartsMost - 1) / umemS3PartsMost;
    each = (each + part_unit - 1) / part_unit * part_unit;
    self->size = umem_greater(each, usual_part);
  }
  if (!reserve(self, umem_greater(self->end, 1))) return false;
  for (uint64_t at = 0; umemRange_next(self->range, at, &item); at = item.start + item.extent)
    if (item.live) count_block(self, item.start, item.size);
  return true;
}

/* ==== blocks ==== */

/* Whether the object may be this long. */
static bool has_room(umemS3Parts *self, uint64_t end) {
  uint64_t part = self->size ? self->size : UMEM_S3_PART_MOST;
  if (end <= part * umemS3PartsMost) return !self->parts || reserve(self, end);
  return UMEM_FAIL(self->ctx, umemMemoryError,
                   "%s would have %" PRIu64 " bytes: with parts of %" PRIu64 " it can have %" PRIu64
                   " (the option length chooses longer ones)",
                   self->label, end, part, part * umemS3PartsMost);
}

/* A place that begins in no part that was sent: those between blocks are skipped. */
static uint64_t find_place(umemS3Parts *self, uint64_t size, uint64_t alignment) {
  for (;;) {
    uint64_t start = umemRange_alloc(self->range, size, alignment);
    if (start == UMEM_RANGE_NONE || !self->parts) return start;
    if (!is_over(self, (unsigned)umem_lesser(start / self->size, umemS3PartsMost))) return start;
    umemRange_hold(self->range, start);
  }
}

static bool note_zeros(umemS3Parts *self, uint64_t start, uint64_t size) {
  return umemTable_insert(&self->zeros, start, size) ||
         UMEM_FAIL(self->ctx, umemMemoryError, "no memory for the table of blocks");
}

uint64_t umemS3Parts_alloc(umemS3Parts *self, uint64_t size, uint64_t alignment, bool zero) {
  uint64_t start = find_place(self, size, alignment);
  if (start == UMEM_RANGE_NONE) {
    umemVirtual_fail(self->ctx, umemMemoryError, "no room for %" PRIu64 " bytes in %s", size,
                     self->label);
    return UINT64_MAX;
  }
  if (!has_room(self, start + size) || ((zero || size == 1) && !note_zeros(self, start, size))) {
    umemRange_free(self->range, start);
    return UINT64_MAX;
  }
  self->end = umem_greater(self->end, start + size);
  if (self->parts) count_block(self, start, size);
  return start;
}

bool umemS3Parts_find(umemS3Parts *self, uint64_t offset, umemRangeItem *block) {
  return umemRange_find(self->range, offset, block) && block->live && !block->held &&
         offset - block->start < block->size;
}

bool umemS3Parts_begins(umemS3Parts *self, uint64_t offset, umemRangeItem *block) {
  return (umemS3Parts_find(self, offset, block) && block->start == offset) ||
         UMEM_FAIL(self->ctx, umemValueError, "no live block of %s begins at offset %" PRIu64,
                   self->label, offset);
}

bool umemS3Parts_is_inside(umemS3Parts *self, uint64_t offset, size_t size) {
  umemRangeItem block;
  bool inside = umemS3Parts_find(self, offset, &block) && size <= block.start + block.size - offset;
  return inside || UMEM_FAIL(self->ctx, umemIndexError,
                             "%zu bytes at offset %" PRIu64 " of %s are not inside one live block",
                             size, offset, self->label);
}

/* ==== buffers ==== */

/* The bits of a word of marks for [*at, end), or as many as it has, which *at passes. */
static uint64_t bits_from(uint64_t *at, uint64_t end) {
  uint64_t bit = *at % 64, count = umem_lesser(64 - bit, end - *at);
  *at += count;
  return (count == 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1) << bit;
}

static uint64_t count_marks(umemS3Buffer const *buffer, uint64_t from, uint64_t size) {
  uint64_t marks = 0;
  for (uint64_t at = from, end = from + size; at < end;) {
    uint64_t word = buffer->marks[at / 64];
    marks += (uint64_t)__builtin_popcountll(bits_from(&at, end) & word);
  }
  return marks;
}

/* Marks [from, from + size), and counts those that were not. */
void umemS3Buffer_mark(umemS3Buffer *buffer, uint64_t from, uint64_t size) {
  buffer->covered += size - count_marks(buffer, from, size);
  for (uint64_t at = from, end = from + size; at < end;) {
    uint64_t *word = &buffer->marks[at / 64];
    *word |= bits_from(&at, end);
  }
}

/* Whole words of them in one go. */
void umemS3Buffer_clear_unmarked(umemS3Buffer *buffer, uint64_t size) {
  for (uint64_t at = 0; at < size;) {
    uint64_t word = buffer->marks[at / 64], count = umem_lesser(64, size - at);
    if (!word)
      memset(buffer->bytes + at, 0, count);
    else if (~word)
      for (uint64_t i = 0; i < count; i++)
        if (!(word >> i & 1)) buffer->bytes[at + i] = 0;
    at += count;
  }
}

void umemS3Buffer_set_free(umemS3Buffer *buffer) {
  buffer->state = umemS3BufferFree;
  buffer->lent = buffer->lender = NULL;
  buffer->unwanted = 0;
}

static bool allocate_bytes(umemS3Parts *self, umemS3Buffer *buffer) {
  size_t bytes = self->size, marks = (bytes + 63) / 64 * sizeof(uint64_t);
  size_t begin = (bytes + 63) / 64 * 64;
  if (!buffer->bytes) buffer->bytes = malloc(begin + marks);
  if (!buffer->bytes)
    return UMEM_FAIL(self->ctx, umemMemoryError, "no memory for a part of %zu bytes", bytes);
  buffer->marks = (uint64_t *)(void *)(buffer->bytes + begin);
  memset(buffer->marks, 0, marks);
  return true;
}

static umemS3Buffer *find_free(umemS3Parts *self) {
  for (unsigned i = 0; i < self->buffer_count; i++)
    if (self->buffers[i].state == umemS3BufferFree) return &self->buffers[i];
  return NULL;
}

umemS3Buffer *umemS3Parts_take(umemS3Parts *self, unsigned part, void const *lent, bool *full) {
  umemS3Buffer *buffer = umemS3Parts_buffer_of(self, part);
  *full = false;
  if (is_over(self, part))
    return UMEM_FAIL_NULL(self->ctx, umemNotSupportedError,
                          "bytes of part %u of %s (from %" PRIu64 ", %" PRIu64 " each) cannot be "
                          "written: the part is already sent",
                          part + 1, self->label, part * self->size, self->size);
  if (buffer) return buffer;
  buffer = find_free(self);
  *full = !buffer;
  if (!buffer || (!lent && !allocate_bytes(self, buffer))) return NULL;
  buffer->state = umemS3BufferFills;
  buffer->part = part;
  buffer->covered = 0;
  buffer->lent = lent;
  return buffer;
}

/* ==== construction ==== */

bool umemS3Parts_init(umemS3Parts *self, unsigned buffer_count) {
  self->buffer_count = buffer_count;
  self->buffers = calloc(buffer_count, sizeof *self->buffers);
  self->range = umemRange_create(granule);
  return self->buffers && self->range && umemRange_add(self->range, 0, last_offset, true);
}

void umemS3Parts_end(umemS3Parts *self) {
  for (unsigned i = 0; self->buffers && i < self->buffer_count; i++) free(self->buffers[i].bytes);
  umemRange_destroy(self->range);
  free(self->buffers);
  free(self->parts);
  umemTable_clear(&self->zeros);
}
