/* text.h - text that comes from elsewhere, such as names of files, shown so that it does no harm:
 * in messages of the library, and in what reads logs. */
#ifndef UMEM_TEXT_H
#define UMEM_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct umemCharacter {
  uint32_t code;   /* its number in Unicode */
  unsigned length; /* bytes; 1 for a byte that begins no character */
  bool valid;
} umemCharacter;

/* The character of UTF-8 at the beginning of text, which is not empty: of RFC 3629, so that each
 * has one form. */
static inline umemCharacter umem_first_character(char const *text) {
  static uint32_t const least[] = {0, 0, 0x80, 0x800, 0x10000};
  unsigned char const *bytes = (unsigned char const *)text, c = *bytes;
  if (c < 0x80) return (umemCharacter){c, 1, true};
  unsigned length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
  uint32_t code = c & (0x7fu >> length);
  bool valid = c >= 0xc2 && c <= 0xf4;
  for (unsigned i = 1; valid && i < length; i++) { /* the zero at the end is none of these */
    valid = (bytes[i] & 0xc0) == 0x80;
    code = code << 6 | (bytes[i] & 0x3f);
  }
  valid = valid && code >= least[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return valid ? (umemCharacter){code, length, true} : (umemCharacter){c, 1, false};
}

/* Whether a character acts on the terminal or on the text next to it: controls (C0, DEL, C1), marks
 * and overrides of direction, separators of lines, what has no width, tags. */
static inline bool umem_acts_on_text(uint32_t code) {
  static uint32_t const ranges[][2] = {{0, 0x1f},        {0x7f, 0x9f},      {0xad, 0xad},
                                       {0x61c, 0x61c},   {0x180e, 0x180e},  {0x200b, 0x200f},
                                       {0x2028, 0x202e}, {0x2060, 0x206f},  {0xfeff, 0xfeff},
                                       {0xfff0, 0xfffb}, {0xe0000, 0xe0fff}};
  if (code > 0x1f && code < 0x7f) return false;
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
    if (code >= ranges[i][0] && code <= ranges[i][1]) return true;
  return false;
}

/* Copies text to out, of size bytes with the zero, and writes "\x1b" and the like for the bytes of
 * what acts on text and for those that are not UTF-8. Cuts before a character or an escape that
 * does not fit. A backslash is not changed. */
static inline void umem_escape(char *out, size_t size, char const *text) {
  size_t used = 0;
  while (*text) {
    umemCharacter const next = umem_first_character(text);
    bool const shown = next.valid && !umem_acts_on_text(next.code);
    size_t const length = shown ? next.length : 4 * next.length;
    if (used + length >= size) break;
    if (shown) memcpy(out + used, text, next.length);
    for (unsigned i = 0; !shown && i < next.length; i++)
      snprintf(out + used + 4 * i, 5, "\\x%02x", (unsigned char)text[i]);
    used += length;
    text += next.length;
  }
  out[used] = 0;
}

/* A text that is put together in a buffer, which cuts it. */
typedef struct umemLine {
  char *text;
  size_t size, used; /* used: of the whole text, also if it was cut */
} umemLine;

static inline __attribute__((format(printf, 2, 3))) void umemLine_add(umemLine *line,
                                                                      char const *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t rest = line->used < line->size ? line->size - line->used : 0;
  int n = vsnprintf(rest ? line->text + line->used : NULL, rest, format, arguments);
  va_end(arguments);
  if (n > 0) line->used += (size_t)n;
}

#endif
