/* raw.c - prints the elements of an array over bytes of a file, or the name of umem's status.
 *
 * Usage: raw_c file|mmap PATH OFFSET TYPE SHAPE STRIDES LEFT, numbers with commas; "-": none */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <umem.h>
#include <unistd.h>

typedef struct Raw {
  uintptr_t adr;
  umemElementType type;
  int rank;
  int64_t shape[UMEM_MAX_RANK], strides[UMEM_MAX_RANK];
} Raw;

static int numbers(char const *text, int64_t *into) {
  int count = 0;
  if (!strcmp(text, "-")) return 0;
  for (char *end; *text; text = end + (*end == ',')) into[count++] = strtoll(text, &end, 10);
  return count;
}

static umemElementType type_of(char const *name) {
  static struct {
    char const *name;
    umemElementType type;
  } const types[] = {{"u1", umemUInt8},
                     {"i2", umemInt16},
                     {"i4", umemInt32},
                     {"i8", umemInt64},
                     {"c8", umemComplexFloat}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (!strcmp(types[i].name, name)) return types[i].type;
  exit(2);
}

static void add(Raw *raw, int64_t extent, int64_t stride) {
  raw->shape[raw->rank] = extent;
  raw->strides[raw->rank++] = stride;
}

/* Numbers of the other order are rows of bytes from the last to the first. */
static void turn(Raw *raw) {
  bool const is_complex = umem_element_code(raw->type) == umemCodeComplex;
  int64_t const size = (int64_t)umem_element_bits(raw->type) / 8,
                number = is_complex ? size / 2 : size;
  raw->type = umemUInt8;
  raw->adr += (uintptr_t)number - 1;
  if (is_complex) add(raw, 2, number);
  add(raw, number, -1);
}

/* Strides of shapes that no memory has wrap: the library has to refuse the shape. */
static void in_c_order(Raw *raw) {
  uint64_t step = umem_element_bits(raw->type) / 8;
  for (int k = raw->rank; k-- > 0; step *= (uint64_t)raw->shape[k]) raw->strides[k] = (int64_t)step;
}

static void print(umemArray *array, umemHost *ram) {
  umemStatusType status = umemOK;
  umemArray *copy = umemArray_copy(array, ram, umemOrderC, &status);
  size_t const nbytes = copy ? umemArray_nbytes(copy) : 0;
  unsigned char const *bytes = nbytes ? umemArray_host_pointer(copy, false, &status) : NULL;
  for (size_t i = 0; bytes && i < nbytes; i++) printf("%02x", bytes[i]);
  umemArray_release(copy);
}

int main(int count, char **words) {
  umemHost ram;
  umemFile file;
  umemMMap map;
  umemStatusType status = umemOK;
  Raw raw = {0};
  if (count != 8) return 2;
  bool const mapped = !strcmp(words[1], "mmap");
  raw.adr = strtoull(words[3], NULL, 10);
  raw.type = type_of(words[4] + 1);
  raw.rank = numbers(words[5], raw.shape);
  if (!numbers(words[6], raw.strides)) in_c_order(&raw);
  if (words[4][0] == '>') turn(&raw);
  if (umemHost_ctor(&ram) ||
      (mapped ? umemMMap_ctor(&map, words[2], "r") : umemFile_ctor(&file, words[2], "r")))
    return 2;
  if (mapped) raw.adr += umemMMap_address(&map, 0);
  umemArray *array = umemArray_borrow(mapped ? (void *)&map : &file, raw.adr, raw.type, raw.rank,
                                      raw.shape, raw.strides, &status);
  if (strcmp(words[7], "-") && truncate(words[2], atol(words[7]))) return 2;
  if (array) print(array, &ram);
  puts(umem_thread_status() ? umem_get_status_name(umem_thread_status()) : "");
  umemArray_release(array);
}
