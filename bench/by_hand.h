/* by_hand.h - what a program does that has no umem. The other side of every comparison. */
#ifndef UMEM_BENCH_BY_HAND_H
#define UMEM_BENCH_BY_HAND_H

#include <cstddef>
#include <cstdio>
#include <memory>

#include <sys/mman.h>
#include <sys/types.h>

namespace by_hand {

/* A descriptor that is closed at the end. */
class Descriptor {
public:
  Descriptor(char const *path, int flags);
  Descriptor(Descriptor const &) = delete;
  Descriptor &operator=(Descriptor const &) = delete;
  ~Descriptor();
  operator int() const { return fd_; }

private:
  int fd_;
};

/* The first size bytes of the open file fd, mapped and shared. */
class Mapping {
public:
  Mapping(int fd, std::size_t size, int protection);
  Mapping(Mapping const &) = delete;
  Mapping &operator=(Mapping const &) = delete;
  ~Mapping();
  char *bytes() const { return static_cast<char *>(bytes_); }

private:
  void *bytes_;
  std::size_t size_;
};

/* Memory of malloc. */
struct Free {
  void operator()(char *bytes) const;
};
using Memory = std::unique_ptr<char, Free>;
Memory allocate(std::size_t size);

/* The loops over short transfers that everybody writes. */
void read(int fd, void *bytes, std::size_t size, off_t offset);
void write(int fd, void const *bytes, std::size_t size, off_t offset);

struct CloseStream {
  void operator()(std::FILE *stream) const { std::fclose(stream); }
};
using Stream = std::unique_ptr<std::FILE, CloseStream>;
Stream open_stream(char const *path, char const *mode);

/* size bytes at the present place of the stream. */
void read(std::FILE *stream, void *bytes, std::size_t size);
void write(std::FILE *stream, void const *bytes, std::size_t size);

} // namespace by_hand

#endif
