/* name_value.c - reads the values of places and options: percent signs, numbers, sizes, words. */
#include "core/status.h"
#include "open/name.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Each unit is 1024 times the one before. */
static char const size_units[] = "KMGT";

/* ---- what would be right ---- */

/* Writes the words "r w+" as "r, w+". */
static void list_words(char const *words, char *text, size_t size) {
  size_t used = 0;
  for (; *words && used + 3 < size; words++) {
    if (*words == ' ') text[used++] = ',';
    text[used++] = *words;
  }
  text[used] = 0;
}

char const *umemName_right(umemOption const *option, char *buffer) {
  char words[300];
  switch (option->kind) {
  case umemTextOption:
  case umemPathOption:
    return "a text that is not empty";
  case umemNumberOption:
    return "a whole number from 0 to 18446744073709551615";
  case umemSizeOption:
    return "bytes: digits, then K, M, G or T (of 1024) or nothing, as in 8G";
  case umemShareOption:
    return "a number from 0 to 1, as in 0.25";
  case umemDeviceOption:
    return "the number of a device, from 0";
  case umemWordOption:
  case umemWordsOption:
    break;
  }
  list_words(option->words, words, sizeof words);
  snprintf(buffer, UMEM_MESSAGE_SIZE, "%s%s",
           option->kind == umemWordOption ? "one of " : "some of these, joined by \",\": ", words);
  return buffer;
}

/* Whether text is a size: digits and a unit. The number may be too large. */
static bool is_size(char const *text) {
  size_t digits = strspn(text, "0123456789");
  char const *unit = text + digits;
  return digits && (!*unit || (strchr(size_units, *unit) && !unit[1]));
}

static bool refuse(umemOption const *option, char const *label, char const *text) {
  char buffer[UMEM_MESSAGE_SIZE];
  if (option->kind == umemSizeOption && is_size(text))
    return UMEM_FAIL(NULL, umemValueError,
                     "%s is \"%.60s\": that is more bytes than this machine can address", label,
                     text);
  return UMEM_FAIL(NULL, umemValueError, "%s is \"%.60s\": right would be %s", label, text,
                   umemName_right(option, buffer));
}

/* ---- percent signs ---- */

static int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Replaces each %XX by its byte. */
static bool decode(char const *label, char *text) {
  char *to = text;
  for (char const *from = text; *from; from++, to++) {
    if (*from != '%') {
      *to = *from;
      continue;
    }
    int high = digit_of(from[1]), low = high < 0 ? -1 : digit_of(from[2]);
    if (low < 0 || (!high && !low))
      return UMEM_FAIL(
          NULL, umemValueError,
          "%s has \"%.3s\": after \"%%\" stand two hexadecimal digits, not both 0; the "
          "character itself is \"%%25\"",
          label, from);
    *to = (char)(high * 16 + low);
    from += 2;
  }
  *to = 0;
  return true;
}

/* ---- numbers ---- */

/* Reads the digits at *text and moves *text behind them. False if there are none, or the number exceeds 64
 * bits. */
static bool read_digits(char const **text, uint64_t *number) {
  char const *begin = *text;
  for (*number = 0; **text >= '0' && **text <= '9'; ++*text)
    if (__builtin_mul_overflow(*number, 10, number) ||
        __builtin_add_overflow(*number, (uint64_t)(**text - '0'), number))
      return false;
  return *text != begin;
}

static bool read_number(char const *text, uint64_t most, uint64_t *number) {
  return read_digits(&text, number) && !*text && *number <= most;
}

static bool read_size(char const *text, uint64_t *bytes) {
  if (!read_digits(&text, bytes)) return false;
  char const *unit = *text ? strchr(size_units, *text) : NULL;
  unsigned shift = unit ? 10 * (unsigned)(unit - size_units + 1) : 0;
  if (unit) text++;
  if (*text || *bytes > SIZE_MAX >> shift) return false;
  *bytes <<= shift;
  return true;
}

/* Reads digits, and digits after a point. strtod will not do: its point depends on the locale. */
static bool read_share(char const *text, double *share) {
  uint64_t whole;
  if (!read_digits(&text, &whole)) return false;
  *share = (double)whole;
  if (*text == '.') {
    double unit = 1;
    char const *first = ++text;
    for (; *text >= '0' && *text <= '9'; text++) *share += (unit /= 10) * (*text - '0');
    if (text == first) return false;
  }
  return !*text && *share <= 1;
}

/* ---- words ---- */

int umem_word_index(char const *words, char const *text, size_t length) {
  for (int index = 0;; index++) {
    size_t have = strcspn(words, " ");
    if (have == length && !memcmp(words, text, length)) return index;
    words += have;
    if (!*words++) return -1;
  }
}

static bool read_word(char const *words, char const *text, uint64_t *number) {
  int index = umem_word_index(words, text, strlen(text));
  *number = (uint64_t)(index < 0 ? 0 : index);
  return index >= 0;
}

static bool read_words(char const *words, char const *text, uint64_t *bits) {
  for (*bits = 0;; text++) {
    size_t length = strcspn(text, ",");
    int index = umem_word_index(words, text, length);
    if (index < 0) return false;
    *bits |= UINT64_C(1) << index;
    text += length;
    if (!*text) return true;
  }
}

/* ---- values ---- */

static bool read_value(umemOption const *option, umemOptionValue *value) {
  char const *text = value->text;
  switch (option->kind) {
  case umemTextOption:
  case umemPathOption:
    return *text != 0;
  case umemNumberOption:
    return read_number(text, UINT64_MAX, &value->number);
  case umemSizeOption:
    return read_size(text, &value->number);
  case umemShareOption:
    return read_share(text, &value->share);
  case umemWordOption:
    return read_word(option->words, text, &value->number);
  case umemWordsOption:
    return read_words(option->words, text, &value->number);
  case umemDeviceOption:
    return read_number(text, INT_MAX, &value->number);
  }
  return false;
}

bool umemName_value(umemOption const *option, char const *label, char *text,
                    umemOptionValue *value) {
  if (!decode(label, text)) return false;
  value->given = true;
  value->text = text;
  return read_value(option, value) || refuse(option, label, text);
}
