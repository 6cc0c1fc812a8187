/* element.c - the types of elements: their names, sizes and codes. */
#include "core/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <umem/element.h>

/* What each code is called, and which bits it has: the bit of value n / 8 in sizes stands for n
 * bits, a power of two. If the name says the bits, too, they are in exact. */
typedef struct Code {
  char const *name;
  unsigned sizes, exact;
  bool is_floating;
} Code;

enum { bits8 = 1, bits16 = 2, bits32 = 4, bits64 = 8, bits128 = 16, bits256 = 32 };

#define SMALL(bits, kind) [umemCodeFloat##bits##_##kind] = {"float" #bits "_" #kind, 0, bits, true}

static Code const codes[] = {
    [umemCodeInt] = {"int", bits8 | bits16 | bits32 | bits64, 0, false},
    [umemCodeUInt] = {"uint", bits8 | bits16 | bits32 | bits64, 0, false},
    [umemCodeFloat] = {"float", bits16 | bits32 | bits64 | bits128, 0, true},
    [umemCodeHandle] = {"handle", bits8 | bits16 | bits32 | bits64, 0, false},
    [umemCodeBfloat] = {"bfloat16", 0, 16, true},
    [umemCodeComplex] = {"complex", bits32 | bits64 | bits128 | bits256, 0, true},
    [umemCodeBool] = {"bool", 0, 8, false},
    SMALL(8, e3m4),
    SMALL(8, e4m3),
    SMALL(8, e4m3b11fnuz),
    SMALL(8, e4m3fn),
    SMALL(8, e4m3fnuz),
    SMALL(8, e5m2),
    SMALL(8, e5m2fnuz),
    SMALL(8, e8m0fnu),
    SMALL(6, e2m3fn),
    SMALL(6, e3m2fn),
    SMALL(4, e2m1fn),
};
enum { code_count = sizeof codes / sizeof *codes };

static bool has_bits(Code const *code, unsigned bits) {
  bool is_power = (bits & (bits - 1)) == 0;
  return code->exact ? bits == code->exact : is_power && code->sizes & bits / 8;
}

/* Whether the lanes fill bytes, or there is one, which has a byte. */
static bool has_lanes(umemElementType type) {
  unsigned lanes = umem_element_lanes(type);
  return lanes == 1 || (lanes && umem_element_bits(type) * lanes % 8 == 0);
}

/* NULL if the type is not valid. */
static Code const *code_of(umemElementType type) {
  unsigned number = umem_element_code(type);
  Code const *code = number < code_count ? &codes[number] : NULL;
  /* 256 bits are more than the byte of a type holds. */
  return code && has_lanes(type) && has_bits(code, umem_element_bits(type)) ? code : NULL;
}

size_t umem_element_size(umemElementType type) {
  if (!code_of(type)) return 0;
  return ((size_t)umem_element_bits(type) * umem_element_lanes(type) + 7) / 8;
}

size_t umem_element_name(umemElementType type, char *text, size_t size) {
  Code const *code = code_of(type);
  char bits[12] = "", lanes[12] = "";
  if (code && !code->exact) snprintf(bits, sizeof bits, "%u", umem_element_bits(type));
  if (code && umem_element_lanes(type) != 1)
    snprintf(lanes, sizeof lanes, "x%u", umem_element_lanes(type));
  int length = snprintf(text, size, "%s%s%s", code ? code->name : "none", bits, lanes);
  return length < 0 ? 0 : (size_t)length;
}

/* ---- from names ---- */

static struct {
  char const *name;
  umemElementType type;
} const names_of_c[] = {
    {"char", umemChar},
    {"int", umemInt},
    {"float", umemFloat},
    {"double", umemDouble},
    {"complex float", umemComplexFloat},
    {"complex double", umemComplexDouble},
};

/* Reads a decimal number of 1 to 5 digits without leading zero; NULL for none. */
static char const *read_number(char const *text, unsigned *number) {
  if (*text < '1' || *text > '9') return NULL;
  *number = 0;
  for (int digits = 0; *text >= '0' && *text <= '9'; text++) {
    if (++digits > 5) return NULL;
    *number = *number * 10 + (unsigned)(*text - '0');
  }
  return text;
}

/* The type if name is that of this code; else 0. */
static umemElementType read_as(unsigned number, char const *name) {
  Code const *code = &codes[number];
  size_t length = strlen(code->name);
  if (strncmp(name, code->name, length) != 0) return 0;
  char const *rest = name + length;
  unsigned bits = code->exact, lanes = 1;
  if (!code->exact && !(rest = read_number(rest, &bits))) return 0;
  if (*rest == 'x' && (!(rest = read_number(rest + 1, &lanes)) || lanes == 1)) return 0;
  if (*rest || bits > 255 || lanes > 65535) return 0;
  umemElementType type = UMEM_ELEMENT(number, bits, lanes);
  return code_of(type) ? type : 0;
}

umemElementType umem_element_by_name(char const *name) {
  UMEM_ENTER();
  umemElementType type = 0;
  for (size_t i = 0; name && i < sizeof names_of_c / sizeof *names_of_c; i++)
    if (!strcmp(name, names_of_c[i].name)) return names_of_c[i].type;
  for (unsigned number = 0; name && !type && number < code_count; number++)
    type = read_as(number, name);
  if (!type)
    umemVirtual_fail(NULL, umemValueError, "no element type is called \"%s\"",
                     name ? name : "(NULL)");
  return type;
}

bool umem_element_is_floating_point(umemElementType type) {
  Code const *code = code_of(type);
  return code && code->is_floating;
}
