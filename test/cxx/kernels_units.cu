#include "kernels_units.hpp"

Outcome call_from_cu(umem::Place const &place, Numbers &numbers) {
  return call_all(place, numbers);
}

std::vector<int> call_at_home_from_cu() { return call_at_home(); }

std::string outputs_of_failed_launches() {
  umem::DevicePlace const nowhere = umem::on_device(0, 4711);
  umem::Cuda gpu;
  umem::Array<int, 1> in({4}, gpu), out({4}, gpu);
  umem::Array<int, 2> rows({2, 4}, gpu);
  umem::fill(umem::on_host, in, 1);
  umem::fill(umem::on_host, rows, 1);
  std::string wrong;
  auto check = [&](char const *name, auto const &call) {
    umem::iota(umem::on_host, out, 5);
    bool failed = exception_of(call) == "from CUDA";
    bool kept = out.current() == umem::Side::host && out.get(0) == 5 && out.get(3) == 8;
    if (!failed || !kept) wrong += std::string(name) + (failed ? " has lost the output; " : "; ");
  };
  check("fill", [&] { umem::fill(nowhere, out, 7); });
  check("iota", [&] { umem::iota(nowhere, out, 7); });
  check("convert", [&] { umem::convert(nowhere, in, out); });
  check("transform", [&] { umem::transform(nowhere, in, out, Twice()); });
  check("transform of two", [&] { umem::transform(nowhere, in, in, out, Product()); });
  check("sum_along", [&] { umem::sum_along(nowhere, rows, 0, out); });
  check("transform_reduce_along",
        [&] { umem::transform_reduce_along(nowhere, rows, 0, out, 0, umem::plus(), Twice()); });
  check("for_each", [&] { umem::for_each(nowhere, out, AddOne()); });
  check("sweep",
        [&] { umem::sweep(nowhere, out, umem::interior(out), 0, umem::minimum(), Negative()); });
  return wrong;
}
