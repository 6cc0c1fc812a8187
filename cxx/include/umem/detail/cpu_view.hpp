/* umem/detail/cpu_view.hpp - the view of a guard, for libraries that work on the CPU. */
#ifndef UMEM_DETAIL_CPU_VIEW_HPP
#define UMEM_DETAIL_CPU_VIEW_HPP

#include <umem/buffer.hpp>
#include <umem/view.hpp>

#include <type_traits>

namespace umem {
namespace detail {

/* GuardType, deduced for a parameter GuardType &&: whether it is a guard, which has a view, and whether it has a name. */
template <class GuardType, class = void> inline constexpr bool has_view = false;
template <class GuardType>
inline constexpr bool
    has_view<GuardType, std::void_t<typename std::remove_reference_t<GuardType>::view_type>> = true;
template <class GuardType> inline constexpr bool has_name = std::is_lvalue_reference_v<GuardType>;

/* Throws umem::not_supported_error if the CPU cannot use the elements. */
template <class GuardType> typename GuardType::view_type cpu_view(GuardType const &guard) {
  constexpr bool writes = !std::is_const_v<typename GuardType::element_type>;
  pointer_to(guard.context(), 0, umemCpuReadable | (writes ? umemCpuWritable : 0));
  return guard.view();
}

} // namespace detail
} // namespace umem

#endif
