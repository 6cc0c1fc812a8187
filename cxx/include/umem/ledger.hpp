/* umem/ledger.hpp - the routes of copies, and the ledger of the process: umem/ledger.h. */
#ifndef UMEM_LEDGER_HPP
#define UMEM_LEDGER_HPP

#include <umem/context.hpp>

namespace umem {

/* "file -> page cache -> host" */
inline std::string text(umemRoute const &route) {
  std::string line(umemRoute_text(&route, nullptr, 0) + 1, '\0');
  umemRoute_text(&route, line.data(), line.size());
  line.pop_back();
  return line;
}

/* As umem::copy, and returns the route that the copy has taken. */
inline umemRoute copy_with_route(Context const &src, address src_adr, Context const &dst,
                                 address dst_adr, std::size_t nbytes) {
  umemRoute route = UMEM_ROUTE_INIT;
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.route = &route;
  detail::check_status(
      umem_copy_to_with(src.c_context(), src_adr, dst.c_context(), dst_adr, nbytes, &options));
  return route;
}

/* The ledger is on while an object of this class lives, unless it was on before: then it stays on.
 * Objects of several threads share the one ledger of the process; the one that has switched it on
 * switches it off. */
class UMEM_NODISCARD Ledger {
public:
  [[nodiscard]] Ledger() : was_on_(umem_ledger_is_on()) {
    detail::check_status(umem_ledger_start());
  }
  ~Ledger() {
    if (!was_on_) umem_ledger_stop();
  }
  Ledger(Ledger const &) = delete;
  Ledger &operator=(Ledger const &) = delete;

  /* The records, those with the most seconds first. */
  static std::vector<umemLedgerRecord> read() {
    std::vector<umemLedgerRecord> records(UMEM_LEDGER_RECORDS + 1, UMEM_LEDGER_RECORD_INIT);
    std::size_t count = records.size();
    detail::check_status(umem_ledger_read(records.data(), &count));
    records.resize(count);
    return records;
  }

  static void clear() { umem_ledger_clear(); }

  /* Writes the table to a file descriptor: 2 is stderr. */
  static void print(int fd = 2) { detail::check_status(umem_ledger_print(fd)); }

private:
  bool was_on_;
};

} // namespace umem

#endif
