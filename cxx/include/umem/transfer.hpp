/* umem/transfer.hpp - copies that go on while the program does other work: umem/transfer.h.
 *
 *     umem::Transfer load = umem::start(file, next);   // elements of one array to another
 *     work_on(current);
 *     load.wait();                                     // throws what the copy has failed with
 *
 * Until the transfer has ended no one may write to the source, or use the destination. The object
 * keeps the memory of arrays and contexts alive; memory behind a view or a pointer is the
 * program's. */
#ifndef UMEM_TRANSFER_HPP
#define UMEM_TRANSFER_HPP

#include <umem/copy.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

namespace umem {

/* A copy that goes on, or none. Move-only. Its destructor, and an assignment to it, wait until the
 * copy has ended: cancel it before to end it early. A failure that no call of wait has thrown is
 * then recorded on its context, and printed if there is no failure hook. */
class UMEM_NODISCARD Transfer {
public:
  Transfer() noexcept = default;
  Transfer(Transfer &&other) noexcept { swap(other); }
  Transfer &operator=(Transfer &&other) noexcept {
    Transfer old(std::move(*this));
    swap(other);
    return *this;
  }
  ~Transfer() { end(); }

  /* Returns when all elements are there, and then calls what then has added. Throws the failure of
   * the copy; umem::cancelled_error if it was cancelled before its last byte. */
  void wait() {
    if (!state_) return;
    detail::check_status(umemTransfer_wait(state_->handle));
    if (auto calls = std::exchange(state_->calls, nullptr)) calls();
  }

  /* Waits for at most so long, and returns whether the copy has ended, also if it has failed. */
  template <class Number, class Period>
  bool wait_for(std::chrono::duration<Number, Period> time) const {
    double const ns = std::chrono::duration<double, std::nano>(time).count(), most = 0x1p63;
    return umemTransfer_wait_for(handle(), ns < most ? static_cast<std::uint64_t>(ns > 0 ? ns : 0)
                                                     : UINT64_MAX);
  }

  /* Whether the copy has ended, also if it has failed. Does not wait. */
  bool is_done() const { return umemTransfer_poll(handle()); }

  /* Ends the copy after the piece that a thread copies now. Does not wait for that. */
  void cancel() const { umemTransfer_cancel(handle()); }

  /* Bytes that are copied so far, and in all. The first ones are copied first, but those of
   * start_many in any order. */
  std::uint64_t done_bytes() const { return progress().first; }
  std::uint64_t nbytes() const { return progress().second; }

  /* A descriptor that poll and epoll show as readable when the copy has ended: see
   * umemTransfer_descriptor. Throws umem::value_error if there is no copy. */
  int descriptor() const { return detail::checked_call(umemTransfer_descriptor, handle()); }

  /* Lets wait call function(), in the thread that waits, when the copy has ended without a failure;
   * after the functions that were added before. What it throws leaves wait. */
  template <class Function> Transfer &then(Function function) {
    if (!state_) throw value_error("then: there is no copy");
    if (auto before = std::move(state_->calls))
      state_->calls = [before, function]() mutable {
        before();
        function();
      };
    else
      state_->calls = function;
    return *this;
  }

private:
  template <class Src, class Dst> friend Transfer start(Src const &src, Dst &&dst);
  template <class Pairs> friend Transfer start_many(Pairs const &pairs);
  friend Transfer start(Context const &src, address src_adr, Context const &dst, address dst_adr,
                        std::size_t nbytes);

  struct State {
    umemTransfer *handle = nullptr;
    unsigned generation = umem_generation();
    std::shared_ptr<void> src, dst; /* what the memory needs */
    std::function<void()> calls;
  };

  template <class Kept> Transfer(Kept const &src, Kept const &dst) : state_(new State) {
    state_->src = std::make_shared<Kept>(src);
    state_->dst = std::make_shared<Kept>(dst);
  }
  explicit Transfer(std::shared_ptr<detail::PartCopies> copies) : state_(new State) {
    state_->src = std::move(copies);
  }

  void swap(Transfer &other) noexcept { std::swap(state_, other.state_); }
  umemTransfer *handle() const noexcept { return state_ ? state_->handle : nullptr; }

  std::pair<std::uint64_t, std::uint64_t> progress() const {
    std::uint64_t done = 0, total = 0;
    if (handle()) umemTransfer_progress(handle(), &done, &total);
    return {done, total};
  }

  void end() noexcept {
    if (!state_) return;
    bool failed = umemTransfer_release(state_->handle) != umemOK;
    if (failed && state_->generation == umem_generation()) umem_report_end("umem::Transfer");
  }

  std::unique_ptr<State> state_;
};

/* Begins to copy nbytes between any two contexts. */
inline Transfer start(Context const &src, address src_adr, Context const &dst, address dst_adr,
                      std::size_t nbytes) {
  Transfer transfer(src, dst);
  detail::check_status(umem_start(src.c_context(), src_adr, dst.c_context(), dst_adr, nbytes,
                                  nullptr, &transfer.state_->handle));
  return transfer;
}

/* Begins to copy the elements of src to those of dst: an Array, an ArrayLock, a Part, a guard, or a
 * View of host memory, as for umem::copy, which it refuses likewise. */
template <class Src, class Dst> Transfer start(Src const &src, Dst &&dst) {
  static_assert(detail::is_operand<Src> && detail::is_operand<detail::bare_t<Dst>>,
                "start: both are arrays, parts, guards or views");
  auto to = detail::as_part(dst);
  using From = Part<typename detail::operand_t<Src>::element_type const, detail::rank_of<Src>>;
  static_assert(decltype(to)::rank == From::rank, "start: both have the same rank");
  static_assert(!std::is_const_v<typename decltype(to)::element_type>,
                "start: the elements of the destination are read-only");
  From from(detail::as_part(src));
  auto const &in = detail::PartMembers::memory(from);
  auto const &out = detail::PartMembers::memory(to);
  Transfer transfer(in, out);
  detail::copy_part(in, detail::PartMembers::items(from), out, detail::PartMembers::items(to),
                    false, &transfer.state_->handle);
  return transfer;
}

/* Begins the copies of a list: pairs of a source and a destination, as for umem::copy_many, which
 * it refuses likewise. One transfer stands for all of them.
 *
 *     umem::Transfer load = umem::start_many(std::vector{std::pair(file.part(), next.part())});
 */
template <class Pairs> Transfer start_many(Pairs const &pairs) {
  auto copies = std::make_shared<detail::PartCopies>(detail::copies_of(pairs));
  Transfer transfer(copies);
  copies->run(nullptr, &transfer.state_->handle);
  return transfer;
}

} // namespace umem

#endif
