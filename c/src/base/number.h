/* number.h - questions about numbers, and their text. */
#ifndef UMEM_NUMBER_H
#define UMEM_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static inline bool umem_is_power_of_two(size_t n) { return n && !(n & (n - 1)); }

static inline uint64_t umem_greater(uint64_t one, uint64_t other) {
  return one > other ? one : other;
}

static inline uint64_t umem_lesser(uint64_t one, uint64_t other) {
  return one < other ? one : other;
}

/* The text of a number. Its point is "." whatever the locale of the program is; printf writes that
 * of the locale. */
typedef struct umemNumberText {
  char text[48];
} umemNumberText;

/* Replaces all bytes between two digits by a point; of the locale, they may be several. */
static inline void umem_set_point(char *text) {
  static char const known[] = "+-0123456789aefin"; /* and what is in "inf" and "nan" */
  char *point = text + strspn(text, known);
  size_t length = strcspn(point, known);
  if (!length) return;
  *point = '.';
  memmove(point + 1, point + length, strlen(point + length) + 1);
}

/* As by "%.*g". */
static inline umemNumberText umem_number_text(double x, int digits) {
  umemNumberText number;
  snprintf(number.text, sizeof number.text, "%.*g", digits, x);
  umem_set_point(number.text);
  return number;
}

/* As by "%.*f", for numbers that fit. */
static inline umemNumberText umem_fixed_text(double x, int decimals) {
  umemNumberText number;
  snprintf(number.text, sizeof number.text, "%.*f", decimals, x);
  umem_set_point(number.text);
  return number;
}

#endif
