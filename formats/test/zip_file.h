/* zip_file.h - a .npz file with one compressed array, made without a library. */
#ifndef UMEM_TEST_ZIP_FILE_H
#define UMEM_TEST_ZIP_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { long_rows = 700, long_columns = 1000, long_bytes = long_rows * long_columns * 4 };

static void put(unsigned char **at, uint64_t number, unsigned count_of_bytes) {
  for (unsigned k = 0; k < count_of_bytes; k++, number >>= 8) *(*at)++ = (unsigned char)number;
}

/* The CRC-32 of zip files. */
static uint32_t sum_of(unsigned char const *bytes, size_t nbytes) {
  uint32_t sum = ~0u;
  for (size_t i = 0; i < nbytes; i++) {
    sum ^= bytes[i];
    for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320u : 0);
  }
  return ~sum;
}

/* Writes bytes as deflate does that finds nothing to compress. */
static void put_deflated(unsigned char **at, unsigned char const *bytes, size_t nbytes) {
  for (size_t done = 0; done < nbytes;) {
    size_t const length = nbytes - done < 65535 ? nbytes - done : 65535;
    put(at, done + length == nbytes, 1);
    put(at, length, 2);
    put(at, ~length, 2);
    memcpy(*at, bytes + done, length);
    *at += length;
    done += length;
  }
}

/* Makes a .npz file of one array of floats, k of element k; returns its length. */
static size_t make_zip(unsigned char *file, bool compressed, bool big_endian) {
  static unsigned char raw[128 + long_bytes];
  char text[118];
  snprintf(text, sizeof text, "{'descr': '%cf4', 'fortran_order': False, 'shape': (%d, %d), }",
           big_endian ? '>' : '<', long_rows, long_columns);
  memset(raw, ' ', 128);
  memcpy(raw, "\x93NUMPY\1\0\x76\0", 10);
  memcpy(raw + 10, text, strlen(text));
  raw[127] = '\n';
  for (int i = 0; i < long_rows * long_columns; i++)
    memcpy(raw + 128 + 4 * i, &(float){(float)i}, 4);
  for (unsigned char *number = raw + 128; big_endian && number < raw + sizeof raw; number += 4) {
    unsigned char const bytes[4] = {number[3], number[2], number[1], number[0]};
    memcpy(number, bytes, 4);
  }
  uint32_t const sum = sum_of(raw, sizeof raw);
  size_t const packed = sizeof raw + (compressed ? 5 * ((sizeof raw + 65534) / 65535) : 0);
  unsigned char *at = file;
  for (int is_entry = 0; is_entry < 2; is_entry++) {
    put(&at, is_entry ? 0x02014b50 : 0x04034b50, 4);
    put(&at, 20, is_entry ? 2 : 0);
    put(&at, 20, 2);
    put(&at, compressed ? 8 << 16 : 0, 4); /* no flags; deflated or stored */
    put(&at, 33 << 16, 4);
    put(&at, sum, 4);
    put(&at, packed, 4);
    put(&at, sizeof raw, 4);
    put(&at, 5, 2);
    put(&at, 0, is_entry ? 16 : 2);
    memcpy(at, "w.npy", 5);
    at += 5;
    if (is_entry) continue;
    if (compressed) {
      put_deflated(&at, raw, sizeof raw);
    } else {
      memcpy(at, raw, sizeof raw);
      at += sizeof raw;
    }
  }
  size_t const directory = 46 + 5;
  put(&at, 0x06054b50, 4);
  put(&at, 0, 4);
  put(&at, 1 | 1 << 16, 4);
  put(&at, directory, 4);
  put(&at, (size_t)(at - file) - directory - 16, 4);
  put(&at, 0, 2);
  return (size_t)(at - file);
}

static inline size_t make_compressed(unsigned char *file) { return make_zip(file, true, false); }
static inline size_t make_stored(unsigned char *file) { return make_zip(file, false, false); }

#endif
