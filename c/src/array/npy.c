/* npy.c - umem/npy.h: parses headers of .npy files, word by word.
 *
 * Nothing in a header is trusted. Words, numbers, dimensions and nested lists have limits, and each
 * function that parses a part returns false, with a status, for what is none. */
#include <umem/npy.h>

#include "core/status.h"
#include "core/context.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <umem/copy.h>

enum { start_size = 12, most_text = 10000, word_size = 65, most_depth = 16 };

#define REFUSE(...) UMEM_FAIL(NULL, umemValueError, __VA_ARGS__)

/* The part of the text that is not parsed yet. */
typedef struct Text {
  char const *at, *end;
  bool has_long; /* numbers may have an L behind them */
} Text;

/* ---- words ---- */

static bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static void skip_space(Text *text) {
  while (text->at < text->end && is_space(*text->at)) text->at++;
}

/* Whether the next character is c; does not move past it. */
static bool is_next(Text *text, char c) {
  skip_space(text);
  return text->at < text->end && *text->at == c;
}

/* If the next character is c, moves past it and returns true. */
static bool take(Text *text, char c) {
  if (!is_next(text, c)) return false;
  text->at++;
  return true;
}

static bool take_word(Text *text, char const *word) {
  size_t length = strlen(word);
  skip_space(text);
  if ((size_t)(text->end - text->at) < length || memcmp(text->at, word, length) != 0) return false;
  text->at += length;
  return true;
}

static bool expect(Text *text, char c) {
  return take(text, c) || REFUSE("its header is no dictionary: '%c' is missing", c);
}

/* The quote of a word, which Python 2 may write as u'word'. 0 if none begins here. */
static char take_quote(Text *text) {
  skip_space(text);
  char const *at = text->at;
  if (at < text->end && *at == 'u') at++;
  if (at == text->end || (*at != '\'' && *at != '"')) return 0;
  text->at = at + 1;
  return *at;
}

/* A quoted word of printable ASCII. */
static bool parse_word(Text *text, char word[word_size]) {
  char quote = take_quote(text);
  if (!quote) return REFUSE("its header is no dictionary: a quoted word is missing");
  for (size_t length = 0; text->at < text->end && length < word_size; length++) {
    char c = *text->at++;
    word[length] = c == quote ? '\0' : c;
    if (c == quote) return true;
    if (c < ' ' || c > '~' || c == '\\') break;
  }
  return REFUSE("its header has a word that is too long, not closed or not plain ASCII");
}

/* A whole number as Python writes it: digits without a leading zero. */
static bool parse_number(Text *text, int64_t *number) {
  skip_space(text);
  char const *first = text->at;
  *number = 0;
  for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++)
    if (__builtin_mul_overflow(*number, 10, number) ||
        __builtin_add_overflow(*number, *text->at - '0', number))
      return REFUSE("its shape has a number that is too large");
  if (text->at == first || (*first == '0' && text->at - first > 1))
    return REFUSE("its shape is not a tuple of whole numbers");
  if (text->has_long) take(text, 'L');
  return true;
}

/* A tuple of numbers: a comma may follow the last one, and must follow a single one. */
static bool parse_tuple(Text *text, int *count, int64_t numbers[UMEM_MAX_RANK]) {
  bool comma = true;
  *count = 0;
  if (!take(text, '(')) return REFUSE("its shape is no tuple");
  for (; !take(text, ')'); comma = take(text, ',')) {
    if (!comma) return REFUSE("its shape is not a tuple of whole numbers");
    if (*count == UMEM_MAX_RANK) return REFUSE("its shape has too many dimensions");
    if (!parse_number(text, &numbers[(*count)++])) return false;
  }
  return *count != 1 || comma || REFUSE("its shape is a number, not a tuple");
}

/* ---- records: their syntax is checked, as errors in it are those of a broken file ---- */

static bool skip_records(Text *text, int depth);

/* A word of any characters, such as the name of a field. */
static bool skip_word(Text *text) {
  char quote = take_quote(text);
  for (; quote && text->at < text->end; text->at++) {
    if (*text->at == quote) {
      text->at++;
      return true;
    }
    if (*text->at == '\\' && ++text->at == text->end) break;
  }
  return REFUSE("its descr has a word that is missing or not closed");
}

/* 'name', or ('title', 'name'). */
static bool skip_name(Text *text) {
  if (!take(text, '(')) return skip_word(text);
  if (!skip_word(text) || !expect(text, ',') || !skip_word(text)) return false;
  take(text, ',');
  return expect(text, ')');
}

static bool skip_extents(Text *text) {
  int count;
  int64_t numbers[UMEM_MAX_RANK];
  return is_next(text, '(') ? parse_tuple(text, &count, numbers) : parse_number(text, numbers);
}

/* The type of a field: a word, [fields], or (type, shape). */
static bool skip_type(Text *text, int depth) {
  if (is_next(text, '[')) return skip_records(text, depth + 1);
  if (!take(text, '(')) return skip_word(text);
  if (depth == most_depth) return REFUSE("its descr is nested too deeply");
  if (!skip_type(text, depth + 1) || !expect(text, ',') || !skip_extents(text)) return false;
  take(text, ',');
  return expect(text, ')');
}

/* [(name, type), (name, type, shape), ...] */
static bool skip_records(Text *text, int depth) {
  bool comma = true;
  if (depth > most_depth) return REFUSE("its descr is nested too deeply");
  if (!expect(text, '[')) return false;
  for (; !take(text, ']'); comma = take(text, ',')) {
    if (!comma) return REFUSE("its descr is no list of fields");
    if (!expect(text, '(') || !skip_name(text) || !expect(text, ',') || !skip_type(text, depth))
      return false;
    if (take(text, ',') && !is_next(text, ')') && !skip_extents(text)) return false;
    take(text, ',');
    if (!expect(text, ')')) return false;
  }
  return true;
}

/* ---- types ---- */

/* A type of elements: its kind and its letter in NumPy. */
typedef struct Kind {
  char kind, letter;
  uint8_t size; /* bytes */
  umemElementType type;
} Kind;

static Kind const kinds[] = {
    {'b', '?', 1, umemBool},
    {'i', 'b', 1, umemInt8},
    {'i', 'h', 2, umemInt16},
    {'i', 'i', 4, umemInt32},
    {'i', 'q', 8, umemInt64},
    {'i', 'l', sizeof(long), sizeof(long) == 8 ? umemInt64 : umemInt32},
    {'u', 'B', 1, umemUInt8},
    {'u', 'H', 2, umemUInt16},
    {'u', 'I', 4, umemUInt32},
    {'u', 'Q', 8, umemUInt64},
    {'u', 'L', sizeof(long), sizeof(long) == 8 ? umemUInt64 : umemUInt32},
    {'f', 'e', 2, umemFloat16},
    {'f', 'f', 4, umemFloat32},
    {'f', 'd', 8, umemFloat64},
    {'f', 'g', sizeof(long double), 0},
    {'c', 'F', 8, umemComplex64},
    {'c', 'D', 16, umemComplex128},
    {'c', 'G', 2 * sizeof(long double), 0},
};

/* Whether text is the kind and the size, such as "f8", the letter or the full name of a kind. */
static bool is_called(Kind const *kind, char const *text, bool has_order) {
  char form[16], name[32];
  snprintf(form, sizeof form, "%c%u", kind->kind, kind->size);
  if (!strcmp(text, form) || (text[0] == kind->letter && !text[1])) return true;
  umem_element_name(kind->type, name, sizeof name);
  return kind->type && !has_order && !strcmp(text, name);
}

/* Whether NumPy knows the type, which umem does not have: a letter, perhaps a size, perhaps a unit
 * of time. */
static bool is_of_numpy(char const *text) {
  if (!*text || !strchr("SUVOaMm", *text)) return false;
  bool is_time = *text == 'M' || *text == 'm';
  for (text++; *text >= '0' && *text <= '9'; text++) continue;
  size_t length = strlen(text);
  return !length || (is_time && text[0] == '[' && text[length - 1] == ']');
}

static bool find_type(char const *descr, umemNpyHeader *header, size_t *item_size) {
  bool has_order = *descr && strchr("<>=|", *descr);
  char const *text = descr + has_order;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    Kind const *kind = &kinds[i];
    if (!is_called(kind, text, has_order)) continue;
    bool const is_big = *descr == '>' && kind->size > 1;
    if (is_big && !header->big_endian)
      return UMEM_FAIL(NULL, umemTypeError, "its type '%s' is big endian", descr);
    header->big_endian = is_big;
    header->type = kind->type;
    *item_size = kind->size;
    snprintf(header->descr, sizeof header->descr, "%c%c%u",
             is_big            ? '>'
             : kind->size == 1 ? '|'
                               : '<',
             kind->kind, kind->size);
    return true;
  }
  if (!is_of_numpy(text)) return REFUSE("its descr '%s' is no type of NumPy", descr);
  return UMEM_FAIL(NULL, umemTypeError, "umem has no elements of its type '%s'", descr);
}

/* ---- the dictionary ---- */

typedef struct Fields {
  bool has_descr, has_order, has_shape, has_records;
  char descr[word_size];
} Fields;

static bool parse_descr(Text *text, Fields *fields) {
  fields->has_records = is_next(text, '[') || is_next(text, '(');
  return fields->has_records ? skip_type(text, 0) : parse_word(text, fields->descr);
}

static bool parse_order(Text *text, bool *fortran_order) {
  *fortran_order = take_word(text, "True");
  return *fortran_order || take_word(text, "False") ||
         REFUSE("its fortran_order is neither True nor False");
}

static bool parse_field(Text *text, umemNpyHeader *header, Fields *fields) {
  char key[word_size];
  if (!parse_word(text, key) || !expect(text, ':')) return false;
  if (!strcmp(key, "descr") && !fields->has_descr) {
    fields->has_descr = true;
    return parse_descr(text, fields);
  }
  if (!strcmp(key, "fortran_order") && !fields->has_order) {
    fields->has_order = true;
    return parse_order(text, &header->fortran_order);
  }
  if (!strcmp(key, "shape") && !fields->has_shape) {
    fields->has_shape = true;
    return parse_tuple(text, &header->rank, header->shape);
  }
  return REFUSE("its header has the key '%s', which is unknown or there twice", key);
}

static bool parse_dictionary(Text *text, umemNpyHeader *header, Fields *fields) {
  bool comma = true;
  if (!expect(text, '{')) return false;
  for (; !take(text, '}'); comma = take(text, ',')) {
    if (!comma) return expect(text, ',');
    if (!parse_field(text, header, fields)) return false;
  }
  if (!fields->has_descr || !fields->has_order || !fields->has_shape)
    return REFUSE("its header lacks descr, fortran_order or shape");
  skip_space(text);
  return text->at == text->end || REFUSE("its header goes on after the dictionary");
}

/* ---- the elements ---- */

/* Fills in the strides, and the bytes of all elements. Also without any, the other extents must be
 * possible. */
static bool lay_out(umemNpyHeader *header, size_t item_size) {
  int64_t stride = (int64_t)item_size;
  bool is_empty = false;
  for (int k = 0; k < header->rank; k++) {
    int dim = header->fortran_order ? k : header->rank - 1 - k;
    header->strides[dim] = stride;
    if (!header->shape[dim])
      is_empty = true;
    else if (__builtin_mul_overflow(stride, header->shape[dim], &stride))
      return REFUSE("its shape is larger than any array can be");
  }
  header->nbytes = is_empty ? 0 : (uint64_t)stride;
  return true;
}

static bool parse(Text *text, umemNpyHeader *header, uint64_t size) {
  Fields fields = {0};
  size_t item_size = 0;
  if (!parse_dictionary(text, header, &fields)) return false;
  if (fields.has_records)
    return UMEM_FAIL(NULL, umemTypeError, "its elements are records, which umem does not have");
  if (!find_type(fields.descr, header, &item_size) || !lay_out(header, item_size)) return false;
  uint64_t held = size - header->offset;
  return held >= header->nbytes ||
         REFUSE("it is truncated: its header says %ju bytes of data, it holds %ju",
                (uintmax_t)header->nbytes, (uintmax_t)held);
}

/* ---- the file ---- */

static bool read_bytes(umemVirtual *ctx, uintptr_t adr, void *bytes, size_t nbytes) {
  return umem_copy_to(ctx, adr, ctx->host, (uintptr_t)bytes, nbytes) == umemOK &&
         umem_finish(ctx) == umemOK;
}

/* Reads the start of a file, and where its text begins and how long it is. */
static bool read_start(umemVirtual *ctx, uintptr_t adr, uint64_t size, size_t *first,
                       uint32_t *length, int *version) {
  unsigned char start[start_size] = {0};
  static char const magic[] = "\x93NUMPY";
  if (!size) return REFUSE("it is empty");
  if (!read_bytes(ctx, adr, start, size < start_size ? (size_t)size : start_size)) return false;
  if (memcmp(start, magic, size < 6 ? (size_t)size : 6) != 0)
    return REFUSE("it is no .npy file: it does not start with \\x93NUMPY");
  *version = start[6];
  if (size >= 8 && (*version < 1 || *version > 3 || start[7] != 0))
    return REFUSE("its format version %d.%d is unknown; known are 1.0, 2.0 and 3.0", start[6],
                  start[7]);
  *first = *version == 1 ? 10 : 12;
  *length = start[8] | (uint32_t)start[9] << 8;
  if (*version > 1) *length |= (uint32_t)start[10] << 16 | (uint32_t)start[11] << 24;
  if (size < *first || size - *first < *length)
    return REFUSE("it is truncated: it ends inside of its header");
  return *length <= most_text ||
         REFUSE("its header has %u bytes, more than the %d that are read", *length, most_text);
}

static bool read_header(umemVirtual *ctx, uintptr_t adr, uint64_t size, umemNpyHeader *header) {
  char bytes[most_text];
  size_t first;
  uint32_t length;
  int version;
  if (!read_start(ctx, adr, size, &first, &length, &version)) return false;
  if (length && !read_bytes(ctx, adr + first, bytes, length)) return false;
  Text text = {bytes, bytes + length, version < 3};
  header->offset = first + length;
  return parse(&text, header, size);
}

umemStatusType umem_npy_read_header(void *ctx, uintptr_t adr, uint64_t size,
                                    umemNpyHeader *header) {
  UMEM_ENTER();
  umemNpyHeader found = UMEM_NPY_HEADER_INIT;
  umemVirtual *self = umem_check(ctx);
  size_t const least = offsetof(umemNpyHeader, big_endian);
  bool fits = self && umem_can_write_sized(NULL, header, least, "header", "umemNpyHeader");
  found.big_endian = fits && header->size > least && header->big_endian;
  if (fits && read_header(self, adr, size, &found)) umem_write_sized(header, &found, sizeof found);
  return UMEM_RESULT();
}
