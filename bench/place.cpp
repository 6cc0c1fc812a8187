#include "place.h"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include <sys/statvfs.h>
#include <unistd.h>

namespace bench {

void check(umemStatusType status) {
  if (status != umemOK) throw std::runtime_error(umem_thread_message());
}

void check_system(bool good, char const *what) {
  if (!good) throw std::system_error(errno, std::generic_category(), what);
}

Backend const &row_named(char const *name) {
  Backend const *row = backend_by_name(name);
  if (!row) throw std::runtime_error(std::string("no context is named ") + name);
  return *row;
}

Place::Place(Backend const &row) : row_(row), context_(backend_open(&row)) {
  if (!context_) throw std::runtime_error(umem_thread_message());
}

Block::Block(void *context, std::size_t size)
    : context_(context), address_(umem_alloc(context, size)) {
  if (address_ == umem_null(context)) throw std::runtime_error(umem_thread_message());
  umemStatusType status = umem_set(context, address_, 0x5A, size);
  if (status != umemOK) umem_free(context, address_);
  check(status);
}

TempFile::TempFile() {
  char path[BACKEND_PATH_SIZE];
  check_system(backend_temp_file(path), "a temporary file");
  path_ = path;
}

TempFile::~TempFile() { unlink(path()); }

Kind kind_of(umemVirtual const *context) {
  auto can = [context](unsigned what) { return (context->capabilities & what) != 0; };
  if (can(umemCpuReadable)) return can(umemFaultable) ? Kind::mapping : Kind::memory;
  return can(umemDeviceAccessible) ? Kind::device : Kind::file;
}

char const *name_of(Kind kind) {
  switch (kind) {
  case Kind::memory:
    return "memory";
  case Kind::file:
    return "file";
  case Kind::mapping:
    return "mapping";
  case Kind::device:
    return "device";
  }
  return "unknown";
}

std::uint64_t available_memory() {
  std::ifstream info("/proc/meminfo");
  std::string word;
  std::uint64_t kilobytes = 0;
  while (info >> word)
    if (word == "MemAvailable:" && info >> kilobytes) break;
  return kilobytes * 1024;
}

std::uint64_t available_disk() {
  char const *folder = std::getenv("TMPDIR");
  struct statvfs disk;
  check_system(statvfs(folder && *folder ? folder : "/tmp", &disk) == 0, "statvfs");
  return std::uint64_t{disk.f_bavail} * disk.f_frsize;
}

} // namespace bench
