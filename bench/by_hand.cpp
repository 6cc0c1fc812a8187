#include "by_hand.h"

#include "place.h"

#include <cstdlib>
#include <new>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace by_hand {

using bench::check_system;

Descriptor::Descriptor(char const *path, int flags) : fd_(open(path, flags | O_CLOEXEC, 0666)) {
  check_system(fd_ >= 0, path);
}

Descriptor::~Descriptor() { close(fd_); }

Mapping::Mapping(int fd, std::size_t size, int protection)
    : bytes_(mmap(nullptr, size, protection, MAP_SHARED, fd, 0)), size_(size) {
  check_system(bytes_ != MAP_FAILED, "mmap");
}

Mapping::~Mapping() { munmap(bytes_, size_); }

void Free::operator()(char *bytes) const { std::free(bytes); }

Memory allocate(std::size_t size) {
  Memory memory(static_cast<char *>(std::malloc(size)));
  if (!memory) throw std::bad_alloc();
  return memory;
}

void read(int fd, void *bytes, std::size_t size, off_t offset) {
  char *to = static_cast<char *>(bytes);
  while (size) {
    ssize_t n = pread(fd, to, size, offset);
    check_system(n > 0, "pread");
    to += n, offset += n, size -= static_cast<std::size_t>(n);
  }
}

void write(int fd, void const *bytes, std::size_t size, off_t offset) {
  char const *from = static_cast<char const *>(bytes);
  while (size) {
    ssize_t n = pwrite(fd, from, size, offset);
    check_system(n > 0, "pwrite");
    from += n, offset += n, size -= static_cast<std::size_t>(n);
  }
}

Stream open_stream(char const *path, char const *mode) {
  Stream stream(std::fopen(path, mode));
  check_system(stream != nullptr, path);
  return stream;
}

void read(std::FILE *stream, void *bytes, std::size_t size) {
  check_system(std::fread(bytes, 1, size, stream) == size, "fread");
}

void write(std::FILE *stream, void const *bytes, std::size_t size) {
  check_system(std::fwrite(bytes, 1, size, stream) == size, "fwrite");
}

} // namespace by_hand
