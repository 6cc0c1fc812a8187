/* A configuration file names where an array is kept; the program is the same for each. */
#include <umem.hpp>
#include <umem/open.hpp>
#include <umem/reduce.hpp>

#include <cstdio>
#include <fstream>
#include <string>

/* The text behind "storage = " in the file. */
static std::string storage_in(char const *path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.rfind("storage = ", 0) == 0) return line.substr(10);
  return "host:";
}

int main() {
  try {
    for (char const *choice : {"host:", "mmap:field.bin?mode=w+", "limit+host:?limit=1K"}) {
      std::ofstream("program.conf") << "storage = " << choice << '\n';

      umem::Context place = umem::open(storage_in("program.conf"));
      auto field = umem::Array<double, 1>::full({1000}, 0.5, place);
      std::printf("%s: %g\n", choice, umem::sum(field));
    }
  } catch (umem::error const &error) {
    std::printf("%s\n", error.message());
  }
}
