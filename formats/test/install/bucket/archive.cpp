/* archive.cpp - copies a file of arrays to a bucket, and loads an array of the object by S3 and by
 * the web server's URL. */
#include <cstdio>
#include <umem.hpp>
#include <umem/formats.hpp>
#include <umem/open.hpp>

/* Its arguments are a file to make, the names of the object to write and to read, and its URL. */
int main(int count, char **names) {
  if (count != 5) return 2;
  auto const w = umem::Array<float, 2>::full({2, 3}, 2.5F);
  umem::save_archive(names[1], {{"w", umem::c_array(w)}});
  {
    umem::File const file(names[1], "r");
    umem::Context const object = umem::open(names[2]);
    std::uint64_t const size = file.info().capacity;
    umem::copy(file, 0, object, object.allocate(size), size);
    object.flush();
  }
  for (int k = 3; k < 5; k++) {
    umem::Context const place = umem::open(names[k]);
    umem::Archive const archive(place, 0, place.info().capacity);
    umem::Array<float, 2> const read = archive.load<float, 2>("w");
    auto const numbers = read.host(umem::read);
    std::printf("%.1f %.1f\n", numbers(0, 0), numbers(1, 2));
  }
}
