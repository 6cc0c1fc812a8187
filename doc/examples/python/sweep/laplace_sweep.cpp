/* A step of Jacobi's method by the sweep of umem's C++ headers, on the memory of arrays of Python. */
#include <umem.hpp>
#include <umem/dlpack.hpp>
#include <umem/functional.hpp>
#include <umem/sweep.hpp>

/* The mean of the four neighbours, and its distance from the old value. */
struct Jacobi {
  umem::View<double const, 2> u;

  UMEM_FUNCTION double operator()(double &value, umem::index_t i, umem::index_t j) const {
    value = 0.25 * (u(i + 1, j) + u(i - 1, j) + u(i, j + 1) + u(i, j - 1));
    double change = value - u(i, j);
    return change < 0 ? -change : change;
  }
};

/* Takes both tensors over. Sets the inner points of next, and returns the largest change; -1 on failure. */
extern "C" double jacobi(umemDLManagedTensorVersioned *u, umemDLManagedTensorVersioned *next) {
  umem::DLPackTensor from(u), to(next); // they end here, whatever happens
  try {
    auto old = umem::from_dlpack<double, 2>(umem::Host(), std::move(from));
    auto now = umem::from_dlpack<double, 2>(umem::Host(), std::move(to));
    umem::Range<2> const inside({1, 1}, {now.extent(0) - 1, now.extent(1) - 1});
    auto values = old.host(umem::read);
    return umem::sweep(umem::on_host, now, inside, 0.0, umem::maximum(), Jacobi{*values});
  } catch (umem::error const &) {
    return -1; // umem_thread_message() says why
  }
}
