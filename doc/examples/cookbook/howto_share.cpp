/* Eight processes add up one array in shared memory; none of them copies it. */
#include <cstdio>
#include <sys/wait.h>
#include <umem.hpp>
#include <unistd.h>

int main() {
  constexpr umem::index_t n = 1 << 20, workers = 8;
  umem::Shm shm(16 << 20); // without a name: the children inherit it
  auto x = umem::Array<double, 1>::full({n}, 0.5, shm);
  auto sums = umem::Array<double, 1>::zeros({workers}, shm);

  for (umem::index_t w = 0; w < workers; w++)
    if (fork() == 0) {
      auto const part = x.host(umem::read);
      auto const sum = sums.host(umem::write);
      for (umem::index_t i = w * (n / workers); i < (w + 1) * (n / workers); i++) sum(w) += part(i);
      _exit(0);
    }
  while (wait(nullptr) > 0) continue;

  double total = 0;
  for (umem::index_t w = 0; w < workers; w++) total += sums.get({w});
  std::printf("%g\n", total);
}
