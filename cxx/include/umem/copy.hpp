/* umem/copy.hpp - the elements of one array copied to another, wherever both are.
 *
 *     umem::copy(u, v);                                     // v(i, j) = u(i, j)
 *     umem::copy(u.part().select(0, 1), v.host(umem::write));
 *
 * Either is an Array, an ArrayLock, a Part, a guard, or a View of host memory. See part.hpp for
 * copies between two parts, which these are: no ghost cells, one type of elements. umem::convert
 * (convert.hpp) converts elements. */
#ifndef UMEM_COPY_HPP
#define UMEM_COPY_HPP

#include <umem/detail/operand.hpp>

namespace umem {

namespace detail {

template <class Operand, class Other, bool are_operands = is_operand<Operand> &&is_operand<Other>>
inline constexpr bool are_copied = false;
template <class Operand, class Other>
inline constexpr bool are_copied<Operand, Other, true> =
    kind_of<Operand> != OperandKind::part ||
    kind_of<Other> != OperandKind::part; /* part.hpp copies two parts */

/* Whether both are arrays whose elements copy moves. */
template <class Operand, class Other>
inline constexpr bool are_arrays_to_copy =
    kind_of<Operand> == OperandKind::array &&kind_of<std::remove_const_t<Other>> ==
        OperandKind::array &&
    !std::is_const_v<Other> &&
    std::is_same_v<typename operand_t<std::remove_const_t<Other>>::element_type,
                   value_of<Operand>> &&
    rank_of<Operand> == rank_of<std::remove_const_t<Other>>;

template <class Pairs> PartCopies copies_of(Pairs const &pairs) {
  PartCopies copies;
  for (auto const &[src, dst] : pairs) {
    auto from = as_part(src);
    auto to = as_part(dst);
    using To = decltype(to);
    static_assert(To::rank == decltype(from)::rank, "copy_many: both have the same rank");
    static_assert(!std::is_const_v<typename To::element_type>,
                  "copy_many: the elements of the destination are read-only");
    static_assert(std::is_same_v<typename To::element_type, typename decltype(from)::value_type>,
                  "copy_many: both have one type of element");
    copies.add(PartMembers::memory(from), PartMembers::items(from), PartMembers::memory(to),
               PartMembers::items(to));
  }
  return copies;
}

} // namespace detail

/* Copies the elements of src to those of dst. Throws umem::value_error if the extents differ. The
 * two may overlap. Arrays know afterwards which side is current: of dst, the side that was, or the
 * device side if the copy writes all bytes. Throws umem::locked_error while a lock of either array
 * or a guard of the array of dst lives; but a guard that is an argument is no reason. */
template <class Operand, class Other,
          class = std::enable_if_t<detail::are_copied<Operand, detail::bare_t<Other>>>>
void copy(Operand const &src, Other &&dst) {
  using To = detail::bare_t<Other>;
  constexpr bool fits = detail::rank_of<Operand> == detail::rank_of<To>;
  static_assert(fits, "copy: both have the same rank");
  if constexpr (detail::are_arrays_to_copy<Operand, std::remove_reference_t<Other>>)
    if (detail::ArrayMembers::are_alike(src, dst))
      return detail::ArrayMembers::mirror(dst)->copy_from(*detail::ArrayMembers::mirror(src),
                                                          detail::ArrayMembers::key(src),
                                                          detail::ArrayMembers::key(dst));
  if constexpr (fits) copy(detail::as_part(src), detail::as_part(dst));
}

/* Does the copies of a list in one call (umem_copy_many), in any order: pairs of a source and a
 * destination, each as in umem::copy.
 *
 *     umem::copy_many(std::vector{std::pair(u.part().select(0, 7), v.part().select(0, 0)),
 *                                 std::pair(u.part().select(0, 3), v.part().select(0, 1))});
 *
 * The places of the arrays may differ from pair to pair. Throws what umem::copy throws, and
 * umem::value_error if a copy writes elements that another one reads or writes: then nothing has
 * changed. After another failure the elements of the destinations are unspecified. A message names
 * the run of elements that has failed. Arrays know afterwards which side is current, as after
 * umem::copy. */
template <class Pairs> void copy_many(Pairs const &pairs) {
  detail::copies_of(pairs).run(nullptr, nullptr);
}

/* As copy_many, with calls of progress(done, total), in bytes, after each step bytes (0: umem
 * chooses). If progress returns false, the call ends with umem::cancelled_error: some copies are
 * done. If progress throws, the call ends too, and throws the same exception. */
template <class Pairs, class Progress, class = detail::if_progress<Progress>>
void copy_many(Pairs const &pairs, Progress &&progress, std::size_t step = 0) {
  detail::ProgressCall<std::remove_reference_t<Progress>> call{progress, nullptr};
  umemCopyManyOptions options = UMEM_COPY_MANY_OPTIONS_INIT;
  call.write(options, step);
  try {
    detail::copies_of(pairs).run(&options, nullptr);
  } catch (umem::error const &) {
    call.rethrow();
    throw;
  }
  call.rethrow(); /* of the last call, which cannot end a list that is done */
}

} // namespace umem

#endif
