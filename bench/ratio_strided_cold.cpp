/* ratio_strided_cold.cpp - parts of arrays from files that the page cache does not have, to RAM.
 *
 * A row compares the copy with a copy of the whole file in order, cold too: a disk reads in larger
 * units than items. Others compare 8 bytes of every step, cold and cached, with the better of a
 * pread of each and a mapping. */
#include "ratio.h"

#include "by_hand.h"
#include "place.h"
#include "sections.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
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

/* 8 bytes of every step of a file, by umem, by a pread of each, and through a mapping. */
struct Steps {
  TempFile const &file;
  std::size_t size, step;
  bool cold;

  std::size_t count() const { return size / step; }
  void prepare() const {
    if (cold) drop(file);
  }
};

Timed timed_umem(Steps const &it, Place const &host, Block const &to) {
  return [&it, &host, &to] {
    it.prepare();
    Reader reader(it.file, false);
    std::size_t const count = it.count();
    std::ptrdiff_t const from = static_cast<std::ptrdiff_t>(it.step), dense = 8;
    umemLayout const layout = {sizeof layout, 8, 1, &count, &from, &dense};
    return seconds_of(
        [&] { check(umem_copy_strided(reader.context(), 0, host.context(), to, &layout)); });
  };
}

Timed timed_pread(Steps const &it, Block const &to) {
  return [&it, &to] {
    it.prepare();
    by_hand::Descriptor fd(it.file.path(), O_RDONLY);
    return seconds_of([&] {
      for (std::size_t i = 0; i < it.count(); i++)
        check_system(pread(fd, reinterpret_cast<void *>(to + 8 * i), 8,
                           static_cast<off_t>(i * it.step)) == 8,
                     "pread");
    });
  };
}

Timed timed_mapping(Steps const &it, Block const &to) {
  return [&it, &to] {
    it.prepare();
    by_hand::Descriptor fd(it.file.path(), O_RDONLY);
    return seconds_of([&] {
      void *memory = mmap(nullptr, it.size, PROT_READ, MAP_SHARED, fd, 0);
      check_system(memory != MAP_FAILED, "mmap");
      for (std::size_t i = 0; i < it.count(); i++)
        std::memcpy(reinterpret_cast<void *>(to + 8 * i),
                    static_cast<char const *>(memory) + i * it.step, 8);
      munmap(memory, it.size);
    });
  };
}

/* A disk may answer a single read some milliseconds late: a few items are read several times. */
int rounds_of(Effort const &effort, Steps const &it) {
  return std::max(it.count() <= 256 ? 7 : 1, effort.long_rounds / 5);
}

} // namespace

void measure_steps(Effort const &effort, std::vector<Ratio> &rows) {
  Place host(row_named("host"));
  std::size_t const size = std::size_t{effort.sizes.back() >= (std::size_t{1} << 30) ? 1024u : 64u}
                           << 20;
  TempFile file;
  fill_file(file, size);
  Block to(host.context(), size / 8);
  for (std::size_t step : {64, 1 << 10, 4 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20,
                           4 << 20, 16 << 20, 64 << 20})
    for (bool cold : {false, true}) {
      Steps const it{file, size, step, cold};
      Samples samples =
          alternate(rounds_of(effort, it),
                    {timed_umem(it, host, to), timed_pread(it, to), timed_mapping(it, to)});
      std::string const name =
          "8 bytes of every " + std::to_string(step) + (cold ? ", cold" : ", cached");
      bool reads = quantile(samples[1], 0.5) < quantile(samples[2], 0.5);
      rows.push_back({name, reads ? "a pread of each (the better)" : "a mapping (the better)",
                      Measure::slowdown, 1.2, samples[0], samples[reads ? 1 : 2], 8 * it.count()});
    }
}

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
