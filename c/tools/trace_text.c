/* trace_text.c - writes text that comes from a file, so that it does no harm where it is read. */
#include "trace.h"

#include <langinfo.h>
#include <string.h>

/* ---- UTF-8 ---- */

typedef struct Character {
  uint32_t code;   /* its number in Unicode */
  unsigned length; /* bytes; 1 for a byte that begins no character */
  bool valid;
} Character;

/* The character at the beginning of text, which is not empty: of RFC 3629, so that each has one form. */
static Character first_of(unsigned char const *text) {
  static uint32_t const least[] = {0, 0, 0x80, 0x800, 0x10000};
  unsigned char const c = *text;
  if (c < 0x80) return (Character){c, 1, true};
  unsigned length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
  uint32_t code = c & (0x7fu >> length);
  bool valid = c >= 0xc2 && c <= 0xf4;
  for (unsigned i = 1; valid && i < length; i++) { /* the zero at the end is none of these */
    valid = (text[i] & 0xc0) == 0x80;
    code = code << 6 | (text[i] & 0x3f);
  }
  valid = valid && code >= least[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return valid ? (Character){code, length, true} : (Character){c, 1, false};
}

/* ---- for people ---- */

/* What acts on the terminal or on the text around it: controls (C0, DEL, C1), marks and overrides of
 * direction, separators of lines, what has no width, tags. */
static bool acts(uint32_t code) {
  static uint32_t const ranges[][2] = {{0, 0x1f},        {0x7f, 0x9f},      {0xad, 0xad},
                                       {0x61c, 0x61c},   {0x180e, 0x180e},  {0x200b, 0x200f},
                                       {0x2028, 0x202e}, {0x2060, 0x206f},  {0xfeff, 0xfeff},
                                       {0xfff0, 0xfffb}, {0xe0000, 0xe0fff}};
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
    if (code >= ranges[i][0] && code <= ranges[i][1]) return true;
  return false;
}

/* To a terminal of another encoding, bytes of UTF-8 may be controls. */
static bool is_shown(Character const *character) {
  if (!character->valid || acts(character->code)) return false;
  return character->code < 0x80 || !strcmp(nl_langinfo(CODESET), "UTF-8");
}

void trace_write_text(FILE *out, char const *text) {
  while (*text) {
    Character const next = first_of((unsigned char const *)text);
    for (unsigned i = 0; i < next.length; i++, text++)
      if (*text == '\\')
        fputs("\\\\", out);
      else if (is_shown(&next))
        fputc(*text, out);
      else
        fprintf(out, "\\x%02x", (unsigned char)*text);
  }
}

/* ---- JSON ---- */

static void write_unit(FILE *out, uint32_t unit) { fprintf(out, "\\u%04x", (unsigned)unit); }

/* Beyond 16 bits, as two halves of UTF-16. */
static void write_escape(FILE *out, uint32_t code) {
  if (code >= 0x10000) write_unit(out, 0xd800 + ((code - 0x10000) >> 10));
  write_unit(out, code < 0x10000 ? code : 0xdc00 + (code & 0x3ff));
}

void trace_write_json(FILE *out, char const *text) {
  fputc('"', out);
  while (*text) {
    Character const next = first_of((unsigned char const *)text);
    text += next.length;
    if (!next.valid)
      write_escape(out, 0xfffd);
    else if (next.code == '"' || next.code == '\\')
      fprintf(out, "\\%c", (char)next.code);
    else if (next.code < 0x20 || next.code > 0x7e)
      write_escape(out, next.code);
    else
      fputc((char)next.code, out);
  }
  fputc('"', out);
}
