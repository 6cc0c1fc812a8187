/* umem/array_lock.hpp - an array with one owner.
 *
 *     auto mine = array.lock();
 *     fill(*mine.host(umem::discard));         // array.host(...) throws umem::locked_error
 *
 * While the lock lives, only the lock gives access to the elements: all other accesses and
 * transfers throw umem::locked_error. Locks protect parts of one thread's program from each
 * other; they are no mutexes. */
#ifndef UMEM_ARRAY_LOCK_HPP
#define UMEM_ARRAY_LOCK_HPP

#include <umem/array_access.hpp>

namespace umem {

template <class Type, int Rank> class Array;

/* Move-only. Keeps the elements alive, also when the array moves or ends before it. Throws
 * umem::moved_from_error after it was moved from or released. */
template <class Type, int Rank> class UMEM_NODISCARD ArrayLock : public ArrayAccess<Type, Rank> {
  using Base = ArrayAccess<Type, Rank>;

public:
  ArrayLock(ArrayLock &&other) noexcept { this->swap_members(other); }
  ArrayLock &operator=(ArrayLock &&other) noexcept {
    ArrayLock old(std::move(*this));
    this->swap_members(other);
    return *this;
  }
  ~ArrayLock() { release(); }

  /* Unlocks the array early. */
  void release() noexcept {
    if (this->mirror_) this->mirror_->unlock();
    Base().swap_members(*this);
  }

private:
  friend class Array<Type, Rank>;

  explicit ArrayLock(Base const &array)
      : Base(array.shared_mirror(), array.extents(), array.ghosts(), array.order(),
             array.mirror().lock(0)) {}
};

} // namespace umem

#endif
