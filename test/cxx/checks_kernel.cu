/* checks_kernel.cu - what a failing check prints in a kernel; needs a GPU. Each kernel runs in a process of its own, because
 * its error ends the use of the GPU there. */
#include <umem/view.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#if !UMEM_CHECKS
#error "this test needs UMEM_CHECKS"
#endif

template <int N, class... I> __global__ void access(umem::View<double, N> view, I... i) {
  view(i...) = 1;
}

/* Exit statuses of a child. */
enum { no_gpu = 77, asserted = 1, other = 2 };

template <int N, class... I> int use(umem::Ghosts<N> const &ghosts, I... i) {
  double *memory = nullptr;
  if (cudaMalloc(&memory, 10000) != cudaSuccess) return no_gpu;
  umem::Extents<N> extents;
  for (umem::index_t &extent : extents) extent = 3;
  access<<<1, 1>>>(umem::View<double, N>::with_ghosts_from(memory, extents, ghosts), i...);
  cudaError_t error = cudaDeviceSynchronize();
  return error == cudaErrorAssert ? asserted : error == cudaSuccess ? 0 : other;
}

static int failures = 0;

/* words: NULL if the access is right. */
template <int N, class... I>
static void expect(char const *words, umem::Ghosts<N> const &ghosts, I... i) {
  int ends[2];
  if (pipe(ends) != 0) _exit(3);
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    if (dup2(ends[1], STDOUT_FILENO) < 0 || dup2(ends[1], STDERR_FILENO) < 0) _exit(3);
    int status = use<N>(ghosts, i...);
    std::fflush(stdout);
    _exit(status);
  }
  close(ends[1]);
  std::string said;
  char text[512];
  for (ssize_t n; (n = read(ends[0], text, sizeof text)) > 0;)
    said.append(text, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) _exit(3);
  if (WEXITSTATUS(status) == no_gpu) {
    std::printf("no GPU\n");
    std::exit(no_gpu);
  }
  bool good = words ? WEXITSTATUS(status) == asserted && said.find(words) != std::string::npos &&
                          said.find("contains(i...)") != std::string::npos
                    : WEXITSTATUS(status) == 0 && said.empty();
  if (good) return;
  failures++;
  std::printf("expected \"%s\", but got status %d and \"%s\"\n", words ? words : "",
              WEXITSTATUS(status), said.c_str());
}

int main() {
  expect<1>(nullptr, {{1}}, -1);
  expect<1>("umem: index (4,) is not in the ranges ([-1, 4),)", {{1}}, 4);
  expect<2>("umem: index (1, 3) is not in the ranges ([0, 3), [0, 3))", {}, 1, 3);
  expect<3>("umem: index (1, 2, -2) is not in the ranges ([0, 3), [0, 3), [-1, 3))",
            {{0, 0, 1}, {0, 0, 0}}, 1, 2, -2);
  expect<4>("umem: of an index that is out of range: 5, range [0, 3), in dimension 3", {}, 0, 1, 2,
            5);
  return failures != 0;
}
