/* npy.c - reads the header of NumPy's .npy files.
 *
 *     "\x93NUMPY"  major  minor  length of the text (2 bytes, from version 2.0 on 4)  text  data
 *
 * The text is a Python dictionary: {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
 * Headers come from anywhere, so the program checks everything in them. */
#include "npy.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <umem.h>

/* ---- failures ---- */

__attribute__((format(printf, 2, 3))) static bool fail(char *why, char const *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why, NPY_WHY_SIZE, format, arguments);
  va_end(arguments);
  return false;
}

/* ---- tokens of the text ---- */

/* The text that is still to be read, and room for the reason of a failure. */
typedef struct Text {
  char const *at;
  char const *end;
  char *why;
} Text;

static void skip_space(Text *text) {
  while (text->at < text->end && strchr(" \t\n", *text->at) && *text->at) ++text->at;
}

/* Whether the next character is c; if so, moves past it. */
static bool take(Text *text, char c) {
  skip_space(text);
  if (text->at == text->end || *text->at != c) return false;
  ++text->at;
  return true;
}

static bool expect(Text *text, char c) {
  return take(text, c) || fail(text->why, "its header is no dictionary: '%c' is missing", c);
}

/* Whether the next characters are word; if so, moves past them. */
static bool take_word(Text *text, char const *word) {
  size_t length = strlen(word);
  skip_space(text);
  if ((size_t)(text->end - text->at) < length || memcmp(text->at, word, length)) return false;
  text->at += length;
  return true;
}

/* A quoted word of printable ASCII, into word. */
static bool expect_string(Text *text, char *word, size_t size) {
  char quote = take(text, '\'') ? '\'' : take(text, '"') ? '"' : 0;
  if (!quote) return fail(text->why, "its header is no dictionary: a quoted word is missing");
  for (size_t n = 0; n < size && text->at < text->end; ++n) {
    char c = *text->at++;
    word[n] = c == quote ? 0 : c;
    if (c == quote) return true;
    if (c < ' ' || c > '~' || c == '\\') break;
  }
  return fail(text->why, "its header has a word that is too long, not closed or not plain ASCII");
}

/* A whole number as Python writes it: digits without a leading zero. */
static bool expect_size(Text *text, size_t *size) {
  skip_space(text);
  char const *first = text->at;
  *size = 0;
  while (text->at < text->end && *text->at >= '0' && *text->at <= '9') {
    size_t digit = (size_t)(*text->at++ - '0');
    if (*size > (PTRDIFF_MAX - digit) / 10)
      return fail(text->why, "its shape has a number that is too large");
    *size = *size * 10 + digit;
  }
  if (text->at == first || (*first == '0' && text->at - first > 1))
    return fail(text->why, "its shape is not a tuple of whole numbers");
  return true;
}

/* ---- the values of the dictionary ---- */

/* A byte order, a kind and a size in bytes that NumPy has for this kind. */
static bool is_number(char const *type, size_t *item_size) {
  static char const *const types[] = {"b1", "i1", "i2", "i4", "i8",  "u1", "u2",  "u4",
                                      "u8", "f2", "f4", "f8", "f16", "c8", "c16", "c32"};
  if (!*type || !strchr("<>|=", *type)) return false;
  for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
    if (strcmp(type + 1, types[i])) continue;
    *item_size = 0;
    for (char const *digit = types[i] + 1; *digit; ++digit)
      *item_size = *item_size * 10 + (size_t)(*digit - '0');
    return true;
  }
  return false;
}

static bool expect_type(Text *text, Npy *npy) {
  char type[64];
  if (take(text, '['))
    return fail(text->why, "its elements are records; save each field as an array of its own");
  if (!expect_string(text, type, sizeof type)) return false;
  if (type[0] == 'O' || (type[0] && type[1] == 'O'))
    return fail(text->why, "its elements are Python objects (type '%s'), which live in Python only",
                type);
  if (!is_number(type, &npy->item_size))
    return fail(text->why,
                "its type '%s' is unknown; known are bool, integers, floats and complex numbers",
                type);
  memcpy(npy->type, type, strlen(type) + 1);
  return true;
}

static bool expect_c_order(Text *text) {
  if (take_word(text, "False")) return true;
  if (take_word(text, "True"))
    return fail(text->why, "it is in Fortran order; save numpy.ascontiguousarray(array) instead");
  return fail(text->why, "its fortran_order is neither True nor False");
}

/* (), (3,), (3, 4), ... : a comma may follow the last number, and must follow a single one. */
static bool expect_shape(Text *text, Npy *npy) {
  bool comma = true;
  if (!take(text, '(')) return fail(text->why, "its shape is no tuple");
  for (npy->rank = 0; !take(text, ')'); ++npy->rank) {
    if (npy->rank == NPY_MAX_RANK)
      return fail(text->why, "its shape has more than %d dimensions", NPY_MAX_RANK);
    if (!comma) return fail(text->why, "its shape is not a tuple of whole numbers");
    if (!expect_size(text, &npy->shape[npy->rank])) return false;
    comma = take(text, ',');
  }
  if (npy->rank == 1 && !comma) return fail(text->why, "its shape is a number, not a tuple");
  return true;
}

static bool expect_value(Text *text, char const *key, Npy *npy, unsigned *seen) {
  static char const *const keys[] = {"descr", "fortran_order", "shape"};
  unsigned which = 0;
  while (which < 3 && strcmp(key, keys[which])) ++which;
  if (which == 3) return fail(text->why, "its header has the unknown key '%s'", key);
  if (*seen & (1u << which)) return fail(text->why, "its header has the key '%s' twice", key);
  *seen |= 1u << which;
  switch (which) {
  case 0:
    return expect_type(text, npy);
  case 1:
    return expect_c_order(text);
  default:
    return expect_shape(text, npy);
  }
}

static bool expect_dictionary(Text *text, Npy *npy) {
  unsigned seen = 0;
  bool comma = true;
  if (!expect(text, '{')) return false;
  while (!take(text, '}')) {
    char key[64];
    if (!comma) return fail(text->why, "its header is no dictionary: ',' is missing");
    if (!expect_string(text, key, sizeof key) || !expect(text, ':')) return false;
    if (!expect_value(text, key, npy, &seen)) return false;
    comma = take(text, ',');
  }
  if (seen != 7) return fail(text->why, "its header lacks descr, fortran_order or shape");
  skip_space(text);
  return text->at == text->end || fail(text->why, "its header goes on after the dictionary");
}

/* ---- sizes ---- */

/* As in NumPy, all extents except 0 count: an array that is too large stays too large if another
 * extent is 0. */
static bool measure(Npy *npy, char *why) {
  bool empty = false;
  npy->data_size = npy->item_size;
  for (int i = 0; i < npy->rank; ++i) {
    if (!npy->shape[i])
      empty = true;
    else if (npy->data_size > PTRDIFF_MAX / npy->shape[i])
      return fail(why, "its shape is larger than any array can be");
    else
      npy->data_size *= npy->shape[i];
  }
  if (empty) npy->data_size = 0;
  return true;
}

/* ---- the file ---- */

/* The fixed part in front of the text. Sets data_offset, and *text_offset to where the text is. */
static bool read_preamble(Npy *npy, void *ctx, umemHost *ram, uint64_t file_size,
                          size_t *text_offset, char *why) {
  unsigned char start[12] = {0};
  size_t n = file_size < sizeof start ? (size_t)file_size : sizeof start;
  if (umem_copy_to(ctx, 0, ram, (uintptr_t)start, n) != umemOK)
    return fail(why, "%s", umem_thread_message());
  if (n < 6 || memcmp(start, "\x93NUMPY", 6))
    return fail(why, "it is no .npy file: it does not start with \\x93NUMPY");
  if (n < 8) return fail(why, "it is truncated: it ends inside of its header");
  if (start[6] < 1 || start[6] > 3 || start[7] != 0)
    return fail(why, "its format version %d.%d is unknown; known are 1.0, 2.0 and 3.0", start[6],
                start[7]);

  size_t length = start[8] | (size_t)start[9] << 8;
  if (start[6] > 1) length |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
  *text_offset = start[6] > 1 ? 12 : 10;
  npy->data_offset = *text_offset + length;
  if (npy->data_offset > file_size)
    return fail(why, "it is truncated: it ends inside of its header");
  if (length > NPY_MAX_TEXT)
    return fail(why, "its header has %zu bytes, more than the %d that are read", length,
                NPY_MAX_TEXT);
  return true;
}

static bool read_header(Npy *npy, void *ctx, umemHost *ram, uint64_t file_size, char *why) {
  char buffer[NPY_MAX_TEXT];
  size_t offset = 0;
  if (!read_preamble(npy, ctx, ram, file_size, &offset, why)) return false;
  size_t length = npy->data_offset - offset;
  if (umem_copy_to(ctx, offset, ram, (uintptr_t)buffer, length) != umemOK)
    return fail(why, "%s", umem_thread_message());
  Text text = {buffer, buffer + length, why};
  return expect_dictionary(&text, npy) && measure(npy, why);
}

bool npy_read(Npy *npy, void *ctx, uint64_t file_size, char why[NPY_WHY_SIZE]) {
  umemHost ram;
  umemHost_ctor(&ram);
  bool ok = read_header(npy, ctx, &ram, file_size, why);
  umem_dtor(&ram);
  if (!ok) return false;

  uint64_t held = file_size - npy->data_offset;
  if (held < npy->data_size)
    return fail(why, "it is truncated: its header says %zu bytes of data, it holds %llu",
                npy->data_size, (unsigned long long)held);
  if (held > npy->data_size)
    return fail(why, "it is too long: its header says %zu bytes of data, it holds %llu",
                npy->data_size, (unsigned long long)held);
  return true;
}
