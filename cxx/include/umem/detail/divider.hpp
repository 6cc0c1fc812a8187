/* umem/detail/divider.hpp - division by a number that is known before the kernel starts, by one
 * multiplication: Granlund and Montgomery, "Division by invariant integers using
 * multiplication", PLDI 1994. */
#ifndef UMEM_DETAIL_DIVIDER_HPP
#define UMEM_DETAIL_DIVIDER_HPP

#include <umem/config.hpp>

namespace umem::detail {

/* Divides numbers below 2^31 by a divisor in [1, 2^31). */
struct Divider {
  std::uint32_t divisor = 1;
  std::uint32_t multiplier = 0x80000001u; /* floor(2^(31 + shift) / divisor) + 1 */
  std::uint32_t shift = 0;                /* the logarithm of divisor, rounded up */

  constexpr Divider() noexcept = default;
  explicit constexpr Divider(std::uint32_t divisor_) noexcept : divisor(divisor_) {
    while ((std::uint64_t(1) << shift) < divisor) shift++;
    multiplier = static_cast<std::uint32_t>((std::uint64_t(1) << (31 + shift)) / divisor + 1);
  }

  UMEM_FUNCTION std::uint32_t quotient(std::uint32_t n) const noexcept {
#if defined(__CUDA_ARCH__)
    return __umulhi(2 * n, multiplier) >> shift;
#else
    return static_cast<std::uint32_t>((std::uint64_t(2 * n) * multiplier) >> 32) >> shift;
#endif
  }

  /* Replaces n by the quotient and returns the remainder. */
  UMEM_FUNCTION std::uint32_t take_remainder(std::uint32_t &n) const noexcept {
    std::uint32_t q = quotient(n);
    std::uint32_t remainder = n - q * divisor;
    n = q;
    return remainder;
  }
};

} // namespace umem::detail

#endif
