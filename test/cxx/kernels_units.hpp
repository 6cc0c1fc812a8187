/* kernels_units.hpp - what the two units of test kernels_units have in common. */
#ifndef TEST_CXX_KERNELS_UNITS_HPP
#define TEST_CXX_KERNELS_UNITS_HPP

#include <umem/for_each.hpp>
#include <umem/sweep.hpp>
#include <umem/transform.hpp>

#include <string>

struct AddOne {
  UMEM_FUNCTION void operator()(int &x) const { x++; }
};
struct Twice {
  UMEM_FUNCTION int operator()(int x) const { return 2 * x; }
};
struct Negative {
  UMEM_FUNCTION int operator()(int &value, umem::index i) const {
    value = -static_cast<int>(i);
    return value;
  }
};

/* The same calls in both units: on the host they work; returns what the exception is where they go
 * to a device, "none" if there is none. Static, since its body is not the same in both. */
static inline std::string call_on(umem::Place const &place, umem::View<int, 1> const &view) {
  try {
    umem::for_each(place, view, AddOne());
    umem::transform(place, view, view, Twice());
    umem::sweep(place, view, umem::interior(view), 0, umem::minimum(), Negative());
    return "none";
  } catch (umem::not_supported_error const &) {
    return "not supported";
  } catch (umem::runtime_error const &) {
    return "from CUDA";
  }
}

std::string call_from_cpp(umem::Place const &place, umem::View<int, 1> const &view);
std::string call_from_cu(umem::Place const &place, umem::View<int, 1> const &view);

#endif
