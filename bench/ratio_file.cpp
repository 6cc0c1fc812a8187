/* ratio_file.cpp - whole arrays from file to RAM and from file to file, both in the page cache. */
#include "ratio.h"

#include "by_hand.h"
#include "place.h"
#include "sizes.h"

#include <cstring>
#include <optional>
#include <stdexcept>

#include <fcntl.h>
#include <unistd.h>

namespace bench {
namespace {

/* A file of size bytes that are not all the same, in the page cache. */
void fill_file(TempFile const &file, std::size_t size) {
  by_hand::Memory bytes = by_hand::allocate(size);
  for (std::size_t i = 0; i < size; i++) bytes.get()[i] = static_cast<char>(i * 2654435761u >> 13);
  by_hand::Descriptor fd(file.path(), O_WRONLY);
  by_hand::write(fd, bytes.get(), size, 0);
}

void expect_equal(char const *one, char const *other, std::size_t size) {
  if (std::memcmp(one, other, size) != 0)
    throw std::runtime_error("a copy differs from its source");
}

/* Throws unless both files hold the same size bytes. */
void expect_same_files(TempFile const &one, char const *other, std::size_t size) {
  by_hand::Descriptor fd_one(one.path(), O_RDONLY), fd_other(other, O_RDONLY);
  by_hand::Mapping map_one(fd_one, size, PROT_READ), map_other(fd_other, size, PROT_READ);
  expect_equal(map_one.bytes(), map_other.bytes(), size);
}

/* ---- file to host ---- */

double read_by_hand(TempFile const &file, std::size_t size) {
  return seconds_of_second([&] {
    by_hand::Descriptor fd(file.path(), O_RDONLY);
    by_hand::Memory bytes = by_hand::allocate(size);
    by_hand::read(fd, bytes.get(), size, 0);
    use(bytes.get());
  });
}

double read_by_umem(TempFile const &file, std::size_t size) {
  return seconds_of_second([&] {
    umemHost host;
    umemFile source;
    check(umemHost_ctor(&host));
    check(umemFile_ctor(&source, file.path(), "r"));
    std::uintptr_t from = umem_alloc(&source, size), to = umem_alloc(&host, size);
    check(umem_copy_to(&source, from, &host, to, size));
    use(to);
    umem_free(&host, to);
    umem_dtor(&source);
    umem_dtor(&host);
  });
}

/* ---- file to file ---- */

/* What a fresh file holds goes with it, so that no round pays for the disk writes of another. */
class FreshFile {
public:
  explicit FreshFile(TempFile const &beside) : path_(std::string(beside.path()) + ".copy") {}
  FreshFile(FreshFile const &) = delete;
  FreshFile &operator=(FreshFile const &) = delete;
  ~FreshFile() { unlink(path()); }
  char const *path() const { return path_.c_str(); }

private:
  std::string path_;
};

void copy_file_by_hand(TempFile const &from, char const *to, std::size_t size) {
  by_hand::Stream source = by_hand::open_stream(from.path(), "rb");
  by_hand::Stream destination = by_hand::open_stream(to, "wb");
  by_hand::Memory bytes = by_hand::allocate(size);
  by_hand::read(source.get(), bytes.get(), size);
  by_hand::write(destination.get(), bytes.get(), size);
}

void copy_file_by_umem(TempFile const &from, char const *to, std::size_t size) {
  umemFile source, destination;
  check(umemFile_ctor(&source, from.path(), "r"));
  check(umemFile_ctor(&destination, to, "w"));
  std::uintptr_t src = umem_alloc(&source, size), dst = umem_alloc(&destination, size);
  check(umem_copy_to(&source, src, &destination, dst, size));
  umem_dtor(&destination);
  umem_dtor(&source);
}

using CopyFile = void(TempFile const &from, char const *to, std::size_t size);

Timed timed_copy(CopyFile *copy, TempFile const &from, std::size_t size) {
  return [=, &from] {
    std::optional<FreshFile> to;
    double seconds = 0;
    for (int time = 0; time < 2; time++) { /* the second counts, as in seconds_of_second */
      to.emplace(from);
      seconds = seconds_of([&] { copy(from, to->path(), size); });
    }
    expect_same_files(from, to->path(), size);
    return seconds;
  };
}

} // namespace

void measure_files(Effort const &effort, std::vector<Ratio> &rows) {
  for (std::size_t size : effort.sizes) {
    TempFile file;
    fill_file(file, size);
    Samples read = alternate(effort.long_rounds, {[&] { return read_by_umem(file, size); },
                                                  [&] { return read_by_hand(file, size); }});
    rows.push_back({"file to new host block, cached, " + size_text(size),
                    "malloc, pread loop, free", Measure::speedup, 5, read[0], read[1]});

    Samples copy = alternate(effort.long_rounds, {timed_copy(copy_file_by_umem, file, size),
                                                  timed_copy(copy_file_by_hand, file, size)});
    rows.push_back({"file to new file, cached, " + size_text(size), "malloc, fread, fwrite, free",
                    Measure::speedup, 5, copy[0], copy[1]});
  }
}

} // namespace bench
