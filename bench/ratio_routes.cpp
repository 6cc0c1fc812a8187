/* ratio_routes.cpp - long reads of files, from the page cache and from the disk, compared with the
 * best of several numbers of threads by hand. Both sides have the file open, and read into the same
 * memory. */
#include "ratio.h"

#include "by_hand.h"
#include "by_hand_threads.h"
#include "place.h"
#include "sizes.h"

#include <algorithm>

#include <fcntl.h>
#include <unistd.h>

namespace bench {
namespace {

constexpr std::size_t piece = std::size_t{4} << 20;

/* A file of size bytes in the page cache. */
void fill_file(TempFile const &file, std::size_t size) {
  by_hand::HugeMemory bytes(size);
  for (std::size_t i = 0; i < size; i++)
    bytes.bytes()[i] = static_cast<char>(i * 2654435761u >> 13);
  by_hand::Descriptor fd(file.path(), O_WRONLY);
  by_hand::write(fd, bytes.bytes(), size, 0);
}

/* The file opened by umem and by hand. */
class Opened {
public:
  Opened(TempFile const &file, std::size_t size, int flags, umemDirect direct)
      : fd_(file.path(), O_RDONLY | flags), size_(size) {
    umemFileOptions options = UMEM_FILE_OPTIONS_INIT;
    options.direct = direct;
    check(umemHost_ctor(&host_));
    check(umemFile_ctor_with(&file_, file.path(), "r", &options));
  }
  Opened(Opened const &) = delete;
  Opened &operator=(Opened const &) = delete;
  ~Opened() {
    umem_dtor(&file_);
    umem_dtor(&host_);
  }

  void *host() { return &host_; }

  void read_by_umem(std::uintptr_t to) {
    check(umem_copy_to(&file_, 0, &host_, to, size_));
    use(to);
  }

  void read_by_hand(std::uintptr_t to, unsigned threads) {
    char *bytes = reinterpret_cast<char *>(to);
    by_hand::in_threads(threads, size_, piece, [&](unsigned, std::size_t at, std::size_t n) {
      by_hand::read(fd_, bytes + at, n, static_cast<off_t>(at));
    });
    use(to);
  }

private:
  umemHost host_;
  umemFile file_;
  by_hand::Descriptor fd_;
  std::size_t size_;
};

void measure_touched(Effort const &effort, std::vector<Ratio> &rows, TempFile const &file,
                     std::size_t size) {
  Opened opened(file, size, 0, umemDirectAuto);
  Block memory(opened.host(), size);
  std::vector<unsigned> counts = by_hand::thread_counts();
  std::vector<Timed> candidates = {
      [&] { return seconds_of([&] { opened.read_by_umem(memory); }); }};
  for (unsigned count : counts)
    candidates.push_back(
        [&, count] { return seconds_of([&] { opened.read_by_hand(memory, count); }); });
  add_best(rows,
           {"file to touched RAM, cached, " + size_text(size),
            "pread",
            Measure::speedup,
            0.95,
            {},
            {},
            size},
           alternate(effort.long_rounds, candidates), counts);
}

void measure_fresh(Effort const &effort, std::vector<Ratio> &rows, TempFile const &file,
                   std::size_t size) {
  Opened opened(file, size, 0, umemDirectAuto);
  auto ours = [&] {
    std::uintptr_t to = umem_alloc(opened.host(), size);
    opened.read_by_umem(to);
    umem_free(opened.host(), to);
  };
  std::vector<unsigned> counts = by_hand::thread_counts();
  std::vector<Timed> candidates = {[&] { return seconds_of_second(ours); }};
  for (unsigned count : counts)
    candidates.push_back([&, count] {
      return seconds_of_second([&] {
        by_hand::HugeMemory fresh(size);
        opened.read_by_hand(reinterpret_cast<std::uintptr_t>(fresh.bytes()), count);
      });
    });
  add_best(rows,
           {"file to fresh host block, cached, " + size_text(size),
            "mmap, huge pages, pread",
            Measure::speedup,
            0.95,
            {},
            {},
            size},
           alternate(effort.long_rounds, candidates), counts);
}

/* Leaves the file out of the page cache. */
void drop(TempFile const &file) {
  by_hand::Descriptor fd(file.path(), O_RDWR);
  check_system(fdatasync(fd) == 0, "fdatasync");
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

bool has_direct(TempFile const &file) {
  int fd = open(file.path(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

void measure_cold(Effort const &effort, std::vector<Ratio> &rows, TempFile const &file,
                  std::size_t size) {
  if (!has_direct(file)) return;
  for (umemDirect direct : {umemDirectAuto, umemDirectOn}) {
    std::vector<unsigned> counts = by_hand::thread_counts();
    by_hand::HugeMemory memory(size);
    auto to = reinterpret_cast<std::uintptr_t>(memory.bytes());
    std::vector<Timed> candidates = {[&] { /* a file that is opened anew was never read before */
                                           drop(file);
                                           Opened opened(file, size, O_DIRECT, direct);
                                           return seconds_of([&] { opened.read_by_umem(to); });
    }};
    for (unsigned count : counts)
      candidates.push_back([&, count] {
        drop(file);
        Opened opened(file, size, O_DIRECT, direct);
        return seconds_of([&] { opened.read_by_hand(to, count); });
      });
    add_best(rows,
             {std::string("file to RAM, cold, direct=") +
                  (direct == umemDirectOn ? "on, " : "auto, ") + size_text(size),
              "pread, O_DIRECT",
              Measure::speedup,
              0.95,
              {},
              {},
              size},
             alternate(std::min(effort.long_rounds, 7), candidates), counts);
  }
}

} // namespace

void measure_routes(Effort const &effort, std::vector<Ratio> &rows) {
  for (std::size_t size : effort.sizes) {
    TempFile file;
    fill_file(file, size);
    measure_touched(effort, rows, file, size);
    measure_fresh(effort, rows, file, size);
    measure_cold(effort, rows, file, size);
  }
}

} // namespace bench
