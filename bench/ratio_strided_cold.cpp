/* ratio_strided_cold.cpp - parts of arrays from files that the page cache does not have, to RAM.
 *
 * A row compares the copy with a copy of the whole file in order, cold too: a disk reads in larger
 * units than items. */
#include "ratio.h"

#include "by_hand.h"
#include "place.h"
#include "sections.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace bench {
namespace {

/* A file of size bytes. */
void fill_file(TempFile const &file, std::size_t size) {
  std::vector<char> bytes(size, 0x5A);
  by_hand::Descriptor fd(file.path(), O_WRONLY);
  by_hand::write(fd, bytes.data(), size, 0);
}

/* Leaves the file out of the page cache; nobody maps it. */
void drop(TempFile const &file) {
  by_hand::Descriptor fd(file.path(), O_RDWR);
  check_system(fdatasync(fd) == 0, "fdatasync");
  int error = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  check_system(error == 0, "posix_fadvise");
}

/* The file, opened only to be read. */
class Reader {
public:
  Reader(TempFile const &file, bool mapped) : mapped_(mapped) {
    check(mapped ? umemMMap_ctor(&context_.mapping, file.path(), "r")
                 : umemFile_ctor(&context_.file, file.path(), "r"));
  }
  Reader(Reader const &) = delete;
  Reader &operator=(Reader const &) = delete;
  ~Reader() { umem_dtor(&context_); }

  void *context() { return &context_; }
  std::uintptr_t first() { return mapped_ ? umemMMap_address(&context_.mapping, 0) : 0; }

private:
  union {
    umemFile file;
    umemMMap mapping;
  } context_;
  bool mapped_;
};

Timed timed_cold(TempFile const &file, bool mapped, Place const &host, Block const &to,
                 Section const &section) {
  return [&, mapped] {
    drop(file);
    Reader reader(file, mapped);
    umemLayout layout = section.layout();
    return seconds_of([&] {
      check(umem_copy_strided(reader.context(), reader.first() + section.src_first, host.context(),
                              to + section.dst_first, &layout));
    });
  };
}

Timed timed_whole(TempFile const &file, Place const &host, Block const &to, std::size_t size) {
  return [&, size] {
    drop(file);
    Reader reader(file, false);
    return seconds_of([&] { check(umem_copy_to(reader.context(), 0, host.context(), to, size)); });
  };
}

} // namespace

void measure_strided_cold(Effort const &effort, std::vector<Ratio> &rows) {
  std::size_t edge = effort.sizes.back() >= (std::size_t{1} << 30) ? 4096 : 256;
  int rounds = std::max(1, effort.long_rounds / 5);
  std::vector<Section> sections = all_sections(edge);
  auto longest = std::max_element(
      sections.begin(), sections.end(),
      [](Section const &one, Section const &other) { return one.src_size < other.src_size; });
  std::size_t size = longest->src_size;
  Place host(row_named("host"));
  TempFile file;
  fill_file(file, size);
  for (Section const &section : sections) {
    Block to(host.context(), std::max(section.dst_size, section.src_size));
    Samples samples = alternate(rounds, {timed_cold(file, true, host, to, section),
                                         timed_cold(file, false, host, to, section),
                                         timed_whole(file, host, to, section.src_size)});
    char const *const names[] = {"mmap", "file"};
    for (std::size_t i = 0; i < 2; i++)
      rows.push_back({"strided: " + section.name + ", cold " + names[i] + " to host",
                      "all of the array in order, cold", Measure::slowdown, std::nullopt,
                      samples[i], samples[2], section.bytes()});
  }
}

} // namespace bench
