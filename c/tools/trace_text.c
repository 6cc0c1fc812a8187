/* trace_text.c - writes text that comes from a file, so that it does no harm where it is read. */
#include "trace.h"
#include "base/text.h"

#include <langinfo.h>
#include <string.h>

/* ---- for people ---- */

/* To a terminal of another encoding, bytes of UTF-8 may be controls. */
static bool is_shown(umemCharacter const *character) {
  if (!character->valid || umem_acts_on_text(character->code)) return false;
  return character->code < 0x80 || !strcmp(nl_langinfo(CODESET), "UTF-8");
}

static void write_shown(FILE *out, char const *text, char const *backslash) {
  while (*text) {
    umemCharacter const next = umem_first_character(text);
    for (unsigned i = 0; i < next.length; i++, text++)
      if (*text == '\\')
        fputs(backslash, out);
      else if (is_shown(&next))
        fputc(*text, out);
      else
        fprintf(out, "\\x%02x", (unsigned char)*text);
  }
}

void trace_write_text(FILE *out, char const *text) { write_shown(out, text, "\\\\"); }
void trace_write_message(FILE *out, char const *text) { write_shown(out, text, "\\"); }

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
    umemCharacter const next = umem_first_character(text);
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
