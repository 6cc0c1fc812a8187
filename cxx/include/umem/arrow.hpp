/* umem/arrow.hpp - arrays of one dimension exchanged with Arrow, in C++: see umem/arrow.h.
 *
 *     umem::ArrowColumn column = umem::to_arrow(umem::c_array(u, umem::read)); // u: an umem::Array
 *     consume(column.schema(), column.array()); // moves both
 *
 *     umem::CArray v = umem::from_arrow(host, std::move(column)); */
#ifndef UMEM_ARROW_HPP
#define UMEM_ARROW_HPP

#include <umem/arrow.h>
#include <umem/c_array.hpp>

namespace umem {

/* Owns a schema and a column, and releases what no consumer has moved. Not copyable. */
class ArrowColumn {
public:
  ArrowColumn() = default;
  ArrowColumn(ArrowColumn &&other) noexcept
      : schema_(std::exchange(other.schema_, {})), array_(std::exchange(other.array_, {})) {}
  ArrowColumn &operator=(ArrowColumn other) noexcept {
    std::swap(schema_, other.schema_);
    std::swap(array_, other.array_);
    return *this;
  }
  ~ArrowColumn() {
    if (schema_.release) schema_.release(&schema_);
    if (array_.array.release) array_.array.release(&array_.array);
  }

  explicit operator bool() const noexcept { return array_.array.release != nullptr; }

  /* Borrowed. A consumer that moves them sets their release to NULL; a producer fills them in. */
  umemArrowSchema *schema() noexcept { return &schema_; }
  umemArrowDeviceArray *array() noexcept { return &array_; }

private:
  umemArrowSchema schema_{};
  umemArrowDeviceArray array_{};
};

/* umemArray_to_arrow. Throws for its errors. */
inline ArrowColumn to_arrow(CArray const &array,
                            umemArrowOptions const &options = UMEM_ARROW_OPTIONS_INIT) {
  ArrowColumn column;
  detail::status_call(umemArray_to_arrow, array.get(), &options, column.schema(), column.array());
  return column;
}

/* umemArray_from_arrow; ctx as there. validity: NULL, or where to put which elements are there: it
 * is empty if all are. Throws for its errors. */
inline CArray from_arrow(void *ctx, ArrowColumn &&column, CArray *validity = nullptr) {
  ArrowColumn owner = std::move(column);
  umemArray *flags = nullptr;
  CArray array(detail::status_call(umemArray_from_arrow, ctx, owner.schema(), owner.array(),
                                   validity ? &flags : nullptr));
  if (validity) *validity = CArray(flags);
  return array;
}

} // namespace umem

#endif
