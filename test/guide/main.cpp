/* main.cpp - a program that uses the kind of context that run has added, from C and from C++. */
#include <umem/array.hpp>
#include <umem/open.hpp>

#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

static bool say(char const *what, bool holds) {
  std::printf("%s - %s\n", holds ? "ok" : "not ok", what);
  return holds;
}

int main() {
  umem::Context stack = umem::open("stats+pool+memfd:?memfd.reserve=none");
  umem::Context memfd = stack.find_layer("memfd");
  bool good = say("find_layer finds it by its name", memfd && memfd == stack.upstream().upstream());
  good &= say("its name is that of its kind", !std::strcmp(memfd.name(), "Memfd"));

  /* What an array holds is there in another mapping of the memory. */
  int fd = umemMemfd_descriptor(reinterpret_cast<umemMemfd *>(memfd.c_context()));
  auto u = umem::Array<double, 1>::full({1000}, 7, memfd);
  std::size_t const length = static_cast<std::size_t>(lseek(fd, 0, SEEK_END));
  void *mapped = mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, 0);
  good &= say("its memory can be mapped", fd >= 0 && mapped != MAP_FAILED);
  bool found = false;
  for (std::size_t i = 0; i < length / sizeof(double) && !found; i++)
    found = static_cast<double *>(mapped)[i] == 7;
  good &= say("and holds what an array holds", found);

  umem::Host host;
  int none = umemMemfd_descriptor(reinterpret_cast<umemMemfd *>(host.c_context()));
  good &= say("its own function knows another kind",
              none == -1 && umem_thread_status() == umemTypeError);
  umem_thread_clear();
  return good ? 0 : 1;
}
