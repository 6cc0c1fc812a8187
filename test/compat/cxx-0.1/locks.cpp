/* An array that is reserved for one owner. */
#include <cstdio>
#include <umem.hpp>

int main() {
  /* [lock] */
  auto u = umem::Array<double, 1>::zeros({4});
  {
    auto mine = u.lock();
    mine.set(7, 0);
    try {
      u.get(0);
    } catch (umem::locked_error const &failure) {
      std::printf("%s\n", failure.message());
    }
  }
  std::printf("%g\n", u.get(0));
  /* [/lock] */
}
