/* array_random.c - umem/array.h against a plain model, in random sequences of calls on every
 * context of the table.
 *
 * Two blocks of memory are filled with known bytes. The model knows for each view which elements of
 * its block it has, as a list in C order; views are made of views by rules of their own. After each
 * call that writes, every byte of the block is compared with what the model has. */
#include "array_help.h"

#include "random.h"
#include "fake/fake.h"
#include "unit/each_backend.h"

enum { most_elements = 360, most_rank = 5, most_views = 6, most_size = 16, steps = 12 };

static umemVirtual *used[2]; /* the contexts of a sequence; work may be queued on both */
static uint64_t seed;

static int64_t draw(int64_t bound) { return (int64_t)below(&seed, (size_t)bound); }

/* ---- the model ---- */

typedef struct Memory {
  umemVirtual *ctx;
  umemElementType type;
  size_t size; /* of an element */
  int count;   /* elements */
  uintptr_t adr;
  unsigned char bytes[most_elements * most_size]; /* what is expected there */
} Memory;

typedef struct View {
  umemArray *array;
  int rank, count;
  int64_t shape[most_rank + 1];
  int elements[most_elements]; /* of the memory, in C order of the view */
} View;

static void complain(Memory const *memory, char const *what) {
  fail_msg("%s, seed %ju: %s; %s", umem_get_device_name(memory->ctx), (uintmax_t)seed, what,
           umem_thread_message());
}

static void finish_all(void) {
  for (int i = 0; i < 2; i++) assert_ok(umem_synchronize(used[i]));
}

static void expect_same(Memory const *memory) {
  unsigned char found[most_elements * most_size];
  size_t nbytes = memory->size * (size_t)memory->count;
  if (status != umemOK) complain(memory, "a call failed");
  finish_all();
  assert_ok(umem_copy_to(memory->ctx, memory->adr, &host, (uintptr_t)found, nbytes));
  finish_all();
  if (memcmp(found, memory->bytes, nbytes) != 0) complain(memory, "other bytes");
}

/* ---- views ---- */

static int64_t count_of(int rank, int64_t const *shape) {
  int64_t count = 1;
  for (int k = 0; k < rank; k++) count *= shape[k];
  return count;
}

/* The number in C order of the element whose index in C order of another shape is i, when index k
 * of it becomes index map[k] of shape: scale[k] * index + first[k]. */
typedef struct Map {
  int from_rank;
  int64_t from_shape[most_rank + 1];
  int to[most_rank + 1];
  int64_t first[most_rank + 1], scale[most_rank + 1];
} Map;

static int mapped(View const *view, Map const *map, int64_t i) {
  int64_t index[most_rank + 1] = {0};
  for (int k = 0; k < view->rank; k++) index[k] = map->first[k];
  for (int k = map->from_rank - 1; k >= 0; k--) {
    index[map->to[k]] += i % map->from_shape[k] * map->scale[map->to[k]];
    i /= map->from_shape[k];
  }
  int64_t number = 0;
  for (int k = 0; k < view->rank; k++) number = number * view->shape[k] + index[k];
  return view->elements[number];
}

static Map identity(View const *view) {
  Map map = {.from_rank = view->rank};
  for (int k = 0; k < view->rank; k++) {
    map.from_shape[k] = view->shape[k];
    map.to[k] = k;
    map.scale[k] = 1;
  }
  return map;
}

static View apply(View const *view, Map const *map, umemArray *array) {
  View made = {.array = array, .rank = map->from_rank};
  memcpy(made.shape, map->from_shape, sizeof made.shape);
  made.count = (int)count_of(made.rank, made.shape);
  for (int i = 0; i < made.count; i++) made.elements[i] = mapped(view, map, i);
  return made;
}

static View sliced(View const *view) {
  Map map = identity(view);
  int dim = (int)draw(view->rank);
  int64_t extent = view->shape[dim], first = extent ? draw(extent) : 0, stride = 1 + draw(3);
  bool down = draw(2);
  int64_t left = down ? first : extent - 1 - first; /* elements after the first one */
  int64_t most = extent ? left / stride + 1 : 0, step = down ? -stride : stride;
  int64_t count = draw(8) ? most : draw(most + 1);
  map.from_shape[dim] = count;
  map.first[dim] = first;
  map.scale[dim] = step;
  return apply(view, &map, umemArray_slice(view->array, dim, first, count, step, &status));
}

static View selected(View const *view) {
  Map map = identity(view);
  int dim = (int)draw(view->rank);
  int64_t i = draw(view->shape[dim]);
  map.first[dim] = i;
  map.from_rank--;
  for (int k = dim; k < map.from_rank; k++) {
    map.from_shape[k] = map.from_shape[k + 1];
    map.to[k] = k + 1;
  }
  return apply(view, &map, umemArray_select(view->array, dim, i, &status));
}

static View permuted(View const *view) {
  Map map = identity(view);
  int axes[most_rank + 1];
  for (int k = 0; k < view->rank; k++) axes[k] = k;
  for (int k = view->rank - 1; k > 0; k--) {
    int j = (int)draw(k + 1), axis = axes[k];
    axes[k] = axes[j];
    axes[j] = axis;
  }
  for (int k = 0; k < view->rank; k++) {
    map.to[k] = axes[k];
    map.from_shape[k] = view->shape[axes[k]];
  }
  return apply(view, &map, umemArray_permute(view->array, axes, &status));
}

/* A shape of as many elements, by splitting and joining dimensions. */
static int other_shape(View const *view, int64_t *shape) {
  int rank = view->rank;
  memcpy(shape, view->shape, sizeof view->shape);
  int k = rank ? (int)draw(rank) : 0;
  if (rank && k + 1 < rank && draw(2)) { /* join k and k + 1 */
    shape[k] *= shape[k + 1];
    for (int j = k + 1; j + 1 < rank; j++) shape[j] = shape[j + 1];
    return rank - 1;
  }
  int64_t divisor = 1 + draw(4);
  if (rank < most_rank && (!rank || shape[k] % divisor == 0)) {
    if (!rank) divisor = shape[0] = 1;
    for (int j = rank; j > k; j--) shape[j] = shape[j - 1];
    shape[k] = divisor;
    if (rank) shape[k + 1] /= divisor;
    return rank + 1;
  }
  return rank;
}

/* Where the strides allow no view, a copy has the shape: then the view stays as it is. */
static View reshaped(Memory const *memory, View const *view) {
  View made = *view;
  made.rank = other_shape(view, made.shape);
  made.array = umemArray_reshape(view->array, made.rank, made.shape, &status);
  if (made.array) return made;
  if (status != umemValueError || umemArray_is_c_contiguous(view->array))
    complain(memory, "no reshape");
  status = umemOK;
  umem_thread_clear();
  made = *view;
  made.array = umemArray_alias(view->array, &status);
  return made;
}

static View derived(Memory const *memory, View const *view) {
  int64_t kind = draw(4);
  if (kind == 0 && view->rank) return sliced(view);
  if (kind == 1 && view->rank > 1 && view->count) return selected(view);
  if (kind == 2) return permuted(view);
  return reshaped(memory, view);
}

/* ---- contents ---- */

static void check_view(Memory const *memory, View const *view) {
  if (!view->array || status != umemOK) complain(memory, "no view");
  bool right =
      umemArray_rank(view->array) == view->rank && umemArray_elements(view->array) == view->count;
  for (int k = 0; k < view->rank; k++)
    right = right && umemArray_extent(view->array, k) == view->shape[k];
  if (!right) complain(memory, "another shape");
}

static void fill(Memory *memory, View const *view) {
  unsigned char value[most_size];
  int kind = (int)draw(3);
  for (size_t i = 0; i < memory->size; i++)
    value[i] = kind == 0 ? 0 : kind == 1 ? 0xA5 : (unsigned char)draw(256);
  if (kind == 0)
    umemArray_clear(view->array, &status);
  else
    umemArray_fill(view->array, value, &status);
  for (int i = 0; i < view->count; i++)
    memcpy(memory->bytes + (size_t)view->elements[i] * memory->size, value, memory->size);
}

static void copy_between(Memory *dst, View const *to, Memory const *src, View const *from) {
  int least = to->count < from->count ? to->count : from->count;
  int count = draw(4) ? (int)draw(least + 1) : least;
  int64_t at = draw(to->count - count + 1), of = draw(from->count - count + 1);
  umemArray_copy_contents(to->array, from->array, at, of, count, &status);
  for (int i = 0; i < count; i++)
    memcpy(dst->bytes + (size_t)to->elements[at + i] * dst->size,
           src->bytes + (size_t)from->elements[of + i] * src->size, dst->size);
}

/* A deep copy on another context, whole and back again. */
static void copy_whole(Memory const *memory, View const *view, umemVirtual *other) {
  umemArray *copy = umemArray_copy(view->array, other, (umemArrayOrder)draw(2), &status);
  finish_all();
  umemArray *back = umemArray_copy(copy, &host, umemOrderC, &status);
  if (!back) complain(memory, "no copy");
  finish_all();
  unsigned char const *bytes = (unsigned char const *)umemArray_address(back);
  for (int i = 0; i < view->count; i++)
    if (memcmp(bytes + (size_t)i * memory->size,
               memory->bytes + (size_t)view->elements[i] * memory->size, memory->size) != 0)
      complain(memory, "another copy");
  RELEASE(back, copy);
}

/* ---- a sequence of calls ---- */

static View first_view(Memory *memory, umemVirtual *ctx, umemElementType type) {
  *memory = (Memory){.ctx = ctx, .type = type, .size = umem_element_size(type)};
  View view = {.rank = (int)draw(most_rank)};
  do {
    for (int k = 0; k < view.rank; k++) view.shape[k] = 1 + draw(6);
    view.count = (int)count_of(view.rank, view.shape);
  } while (view.count > most_elements);
  memory->count = view.count;
  view.array = umemArray_zeros(ctx, type, view.rank, view.shape, NULL, &status);
  if (!view.array) complain(memory, "no array");
  memory->adr = umemArray_address(view.array);
  for (int i = 0; i < view.count; i++) view.elements[i] = i;
  expect_same(memory);
  for (size_t i = 0; i < (size_t)view.count * memory->size; i++)
    memory->bytes[i] = (unsigned char)draw(256);
  umemArray *all =
      umemArray_borrow(&host, (uintptr_t)memory->bytes, type, view.rank, view.shape, NULL, &status);
  umemArray_assign(view.array, all, &status);
  umemArray_release(all);
  expect_same(memory);
  return view;
}

static void run_sequence(umemVirtual *one, umemVirtual *other) {
  static umemElementType const types[] = {umemInt8, umemInt16, umemFloat, umemComplexDouble,
                                          UMEM_ELEMENT(umemCodeUInt, 8, 3)};
  umemElementType type = types[draw(5)];
  Memory memory[2];
  View views[2][most_views];
  int count[2] = {1, 1};
  used[0] = one;
  used[1] = other;
  views[0][0] = first_view(&memory[0], one, type);
  views[1][0] = first_view(&memory[1], other, type);
  for (int step = 0; step < steps; step++) {
    int side = (int)draw(2), from = 1 - side;
    View *view = &views[side][draw(count[side])];
    int64_t kind = draw(count[side] < most_views ? 6 : 3);
    if (kind == 0) {
      fill(&memory[side], view);
    } else if (kind == 1) {
      copy_between(&memory[side], view, &memory[from], &views[from][draw(count[from])]);
    } else if (kind == 2) {
      copy_whole(&memory[side], view, memory[from].ctx);
    } else {
      View *made = &views[side][count[side]++];
      *made = derived(&memory[side], view);
      check_view(&memory[side], made);
    }
    if (kind < 2) expect_same(&memory[side]);
  }
  while (count[0] + count[1] > 0) { /* in any order */
    int side = count[0] && (!count[1] || draw(2)) ? 0 : 1;
    int at = (int)draw(count[side]);
    umemArray_release(views[side][at].array);
    views[side][at] = views[side][--count[side]];
  }
}

/* Sequences: in the whole run of GCC's programs more than 300000 calls. */
static void compare(Backend const *row, umemVirtual *ctx) {
  int rounds = rounds_of(ctx, setting_cases(setting_small() ? 0 : 360000) / steps, 5);
  for (int round = 0; round < rounds; round++) {
    seed = (uint64_t)(row - backends) << 32 | (unsigned)round;
    run_sequence(round % 2 ? ctx : &host.super, round % 2 ? &host.super : ctx);
  }
}

TEST(every_context_is_as_the_model) { assert_true(for_each_backend(compare) > 0); }
