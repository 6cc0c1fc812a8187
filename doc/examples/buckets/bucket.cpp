// bucket.cpp - writes an array to a bucket, and reads two rows of it back.
#include <cstdio>
#include <umem.hpp>

int main() {
  float rows[4][3] = {{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9, 10, 11}}, two[2][3];
  // [write]
  {
    umem::S3 place("s3://bucket/rows.bin", "w");
    umem::address there = place.allocate(sizeof rows);
    umem::copy(rows, place, there, sizeof rows);
    place.flush(); // makes the object, or throws
  }
  // [/write]

  // [read]
  umem::S3 place("s3://bucket/rows.bin");
  umem::copy(place, 3 * sizeof(float), two, sizeof two);
  // [/read]
  for (int i = 0; i < 2; i++)
    std::printf("%s[%.1f, %.1f, %.1f]", i ? ", " : "[", two[i][0], two[i][1], two[i][2]);
  std::puts("]");
}
