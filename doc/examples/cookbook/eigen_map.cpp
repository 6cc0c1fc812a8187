/* Solve linear equations with Eigen. */
#include <Eigen/LU>
#include <iostream>
#include <umem.hpp>
#include <umem/with/eigen.hpp>

int main() {
  umem::Array<double, 2> a({2, 2});
  umem::Array<double, 1> b({2}), x({2});
  {
    auto matrix = a.host(umem::discard);
    auto right = b.host(umem::discard);
    umem::to_eigen(matrix) = Eigen::Matrix2d{{2, 1}, {1, 3}};
    umem::to_eigen(right) = Eigen::Vector2d(5, 10);
  }
  auto matrix = a.host(umem::read);
  auto right = b.host(umem::read);
  auto solution = x.host(umem::discard);
  umem::to_eigen(solution) = umem::to_eigen(matrix).partialPivLu().solve(umem::to_eigen(right));
  std::cout << "x = " << solution(0) << ", y = " << solution(1) << '\n';
}
