/* A matrix in a std::vector. */
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <vector>

int main() {
  std::size_t const rows = 3, columns = 4;
  std::vector<double> u(rows * columns);
  for (std::size_t i = 0; i < rows; i++)
    for (std::size_t j = 0; j < columns; j++) u[i * columns + j] = static_cast<double>(10 * i + j);

  double sum = 0; /* the sum of a column */
  for (std::size_t i = 0; i < rows; i++) sum += u[i * columns + 2];
  std::printf("%g\n", sum);

  try {
    u.at(rows * columns) = 1; // cppcheck-suppress containerOutOfBounds
  } catch (std::out_of_range const &) {
    std::printf("out of range\n");
  }

  std::vector<double> copy = u;
  copy[0] = 100;
  std::ofstream file("copy.bin", std::ios::binary);
  file.exceptions(std::ios::badbit | std::ios::failbit);
  file.write(reinterpret_cast<char const *>(copy.data()),
             static_cast<std::streamsize>(copy.size() * sizeof(double)));
  file.close();
}
