/* segment_table.c - tables of shared memory, as another process may have left them. Whatever they
 * hold, each call ends, and touches nothing but the tables; AddressSanitizer watches. */
#include "fuzz.h"

#include "share/segment.h"

enum { blocks = 6, count = 2 * blocks + 2, heads = 64, capacity = 1 << 16 };

/* The first byte says whether what others have left is repaired first, the second how much is
 * changed. */
int LLVMFuzzerTestOneInput(unsigned char const *data, size_t size) {
  if (size < 2) return 0;
  umemShmTable table = {.root = calloc(1, sizeof(umemShmRoot)),
                        .extents = calloc(count, sizeof(umemShmExtent)),
                        .heads = calloc(heads, sizeof(uint32_t)),
                        .count = count,
                        .blocks = blocks,
                        .head_mask = heads - 1,
                        .capacity = capacity,
                        .origin = 4096};
  umemShmOwner owner = {1, 1};
  uint64_t offset, length;
  expect(table.root && table.extents && table.heads && umemShmTable_rebuild(&table));
  for (unsigned i = 0; i < 4; i++)
    umemShmTable_alloc(&table, 100 + 1000 * i, 64, owner, true, &offset);
  umemShmTable_free(&table, 128);
  size_t at = 2, changes = data[1] % 32;
  for (; changes && at + 3 < size; changes--, at += 4) {
    size_t place = (data[at] | (size_t)data[at + 1] << 8) * 4;
    uint32_t value = data[at + 2] | (uint32_t)data[at + 3] << 24;
    size_t const in_root = sizeof(umemShmRoot), in_extents = count * sizeof(umemShmExtent);
    if (place + 4 <= in_root)
      memcpy((char *)table.root + place, &value, 4);
    else if ((place -= in_root) + 4 <= in_extents)
      memcpy((char *)table.extents + place, &value, 4);
    else
      table.heads[place / 4 % heads] = value;
  }
  bool sound = data[0] & 1 && umemShmTable_rebuild(&table);
  for (; at + 2 < size; at += 3) {
    uint64_t where = (data[at + 1] | (uint64_t)data[at + 2] << 8) * 64 % (2 * capacity);
    if (data[at] % 5 == 0)
      umemShmTable_alloc(&table, where, (uint64_t)1 << data[at] % 20, owner, true, &offset);
    if (data[at] % 5 == 1) umemShmTable_free(&table, where);
    if (data[at] % 5 == 2) umemShmTable_resize(&table, where, 1 + 77 * (uint64_t)data[at + 1]);
    if (data[at] % 5 == 3) umemShmTable_find(&table, where, &length, &owner);
    if (data[at] % 5 == 4) umemShmTable_own(&table, where, owner);
  }
  if (sound) expect(umemShmTable_rebuild(&table)); /* what was sound stays so */
  umemShmEntry entry;
  uint32_t number = 0, found = 0;
  while (umemShmTable_next(&table, &number, &entry)) found++;
  expect(found <= count);
  free(table.root);
  free(table.extents);
  free(table.heads);
  return 0;
}
