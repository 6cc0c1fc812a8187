/* ratio_npy.cpp - .npy files in the page cache: loaded into new and existing arrays and mapped,
 * against fread and mmap. */
#include "ratio.h"

#include "by_hand.h"
#include "place.h"
#include "sizes.h"

#include <umem/npy.hpp>

#include <cstring>
#include <stdexcept>
#include <string>

#include <fcntl.h>

namespace bench {
namespace {

using Floats = umem::Array<float, 1>;
constexpr std::size_t header = 128; /* of the files that save_npy writes here */
constexpr std::size_t page = 4096;

void expect(bool right) {
  if (!right) throw std::runtime_error("a .npy file was read wrongly");
}

/* What a program without umem does that knows the header. */
void read_elements(char const *path, char *to, std::size_t size) {
  by_hand::Stream stream = by_hand::open_stream(path, "rb");
  char text[header];
  by_hand::read(stream.get(), text, header);
  expect(std::memcmp(text, "\x93NUMPY", 6) == 0);
  by_hand::read(stream.get(), to, size);
}

double load_by_hand(char const *path, std::size_t size) {
  return seconds_of_second([&] {
    by_hand::Memory bytes = by_hand::allocate(size);
    read_elements(path, bytes.get(), size);
    use(bytes.get());
  });
}

double load_by_umem(char const *path) {
  return seconds_of_second([&] {
    Floats array = umem::load_npy<float, 1>(path);
    use(array.adr());
  });
}

/* One element of each page. */
float sum_of_pages(void const *first, std::size_t size) {
  auto const *elements = static_cast<float const *>(first);
  float sum = 0;
  for (std::size_t at = 0; at < size; at += page) sum += elements[at / sizeof(float)];
  return sum;
}

double map_by_hand(char const *path, std::size_t size) {
  return seconds_of_second([&] {
    by_hand::Descriptor fd(path, O_RDONLY);
    by_hand::Mapping map(fd, header + size, PROT_READ);
    use(sum_of_pages(map.bytes() + header, size));
  });
}

double map_by_umem(char const *path, std::size_t size) {
  return seconds_of_second([&] {
    auto const array = umem::map_npy<float const, 1>(path);
    use(sum_of_pages(array.host(umem::read)->data, size));
  });
}

} // namespace

void measure_npy(Effort const &effort, std::vector<Ratio> &rows) {
  for (std::size_t size : effort.sizes) {
    TempFile file;
    char const *path = file.path();
    auto saved = Floats::full({static_cast<umem::index_t>(size / sizeof(float))}, 0.5F);
    umem::save_npy(path, saved);
    Samples load = alternate(effort.long_rounds, {[&] { return load_by_umem(path); },
                                                  [&] { return load_by_hand(path, size); }});
    rows.push_back({"load_npy, new array, cached, " + size_text(size),
                    "malloc, fread, free",
                    Measure::speedup,
                    {},
                    load[0],
                    load[1]});

    by_hand::Memory bytes = by_hand::allocate(size);
    Samples into = alternate(
        effort.long_rounds,
        {[&] { return seconds_of_second([&] { umem::load_npy_into(path, saved); }); },
         [&] { return seconds_of_second([&] { read_elements(path, bytes.get(), size); }); }});
    rows.push_back({"load_npy_into, cached, " + size_text(size),
                    "fread",
                    Measure::speedup,
                    {},
                    into[0],
                    into[1]});
    expect(std::memcmp(bytes.get(), saved.host(umem::read)->data, size) == 0);

    Samples map = alternate(effort.long_rounds, {[&] { return map_by_umem(path, size); },
                                                 [&] { return map_by_hand(path, size); }});
    rows.push_back({"map_npy, an element of each page, cached, " + size_text(size),
                    "mmap",
                    Measure::speedup,
                    {},
                    map[0],
                    map[1]});
  }
}

} // namespace bench
