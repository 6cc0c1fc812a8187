/* bucket.c - writes an array to a bucket, and reads two rows of it back. */
#include <stdio.h>
#include <umem.h>

static int fail(void) {
  fprintf(stderr, "%s\n", umem_thread_message());
  return 1;
}

int main(void) {
  float rows[4][3] = {{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9, 10, 11}}, two[2][3];
  void *ram = umem_open("host:");
  /* [write] */
  void *place = umem_open("s3://bucket/rows.bin#mode=w");
  if (!place) return fail();
  uintptr_t there = umem_alloc(place, sizeof rows);
  umem_copy_to(ram, (uintptr_t)rows, place, there, sizeof rows);
  if (umem_close(place) != umemOK) return fail(); /* makes the object */
  /* [/write] */

  /* [read] */
  place = umem_open("s3://bucket/rows.bin");
  if (!place) return fail();
  if (umem_copy_to(place, 3 * sizeof(float), ram, (uintptr_t)two, sizeof two) != umemOK)
    return fail();
  umem_close(place);
  /* [/read] */
  for (int i = 0; i < 2; i++)
    printf("%s[%.1f, %.1f, %.1f]", i ? ", " : "[", two[i][0], two[i][1], two[i][2]);
  puts("]");
  umem_close(ram);
}
