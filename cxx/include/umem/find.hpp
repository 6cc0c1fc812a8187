/* umem/find.hpp - whose address is it: the block around an address, and labels of blocks.
 *
 *     if (auto found = umem::find(pointer))
 *       std::cout << found->offset << " bytes into a block of " << found->name << '\n';
 *
 * find_foreign describes memory of a GPU, and pinned memory, that another library has allocated.
 *
 * See umem/find.h for the contexts that can be found, and for the layers of a stack. The label of a
 * context is Context::label. */
#ifndef UMEM_FIND_HPP
#define UMEM_FIND_HPP

#include <umem/context.hpp>

#include <optional>

namespace umem {

/* A live block, as it was when it was found. */
struct Found {
  Context context;         /* that has the block; borrowed: the handle does not keep it alive */
  address adr;             /* where the block begins */
  std::size_t size;        /* its bytes */
  std::size_t offset;      /* of the address that was asked for, from adr on */
  std::string name;        /* of the kind of context: "Pool" */
  std::string label;       /* of the context; empty without one */
  std::string block_label; /* of the block; empty without one */
};

/* Memory that CUDA knows, and that another library or another process has allocated. */
struct Foreign {
  umemForeign kind; /* umemForeignPinned, umemForeignGpu or umemForeignManaged */
  address adr;      /* where the allocation begins; 0 if the driver does not tell */
  std::size_t size; /* its bytes; 0 if the driver does not tell */
  std::string name; /* of the kind: "device memory" */
  int device;       /* the number of its GPU; -1 for memory of none */
};

namespace detail {

inline std::optional<Found> found_block(bool is_found, umemFound const &found, address adr) {
  if (!is_found) return std::nullopt;
  return Found{Context::borrow(static_cast<umemVirtual *>(found.ctx)),
               found.adr,
               found.nbytes,
               adr - found.adr,
               found.name,
               found.label,
               found.block_label};
}

} // namespace detail

/* The live block that contains adr, of the outermost layer that has one, among all contexts whose
 * addresses are pointers: umem_find. Empty if there is none. */
inline std::optional<Found> find(address adr) {
  umemFound found = UMEM_FOUND_INIT;
  return detail::found_block(umem_find(adr, &found), found, adr);
}
inline std::optional<Found> find(void const *pointer) {
  return find(reinterpret_cast<address>(pointer));
}

/* Describes the memory at adr if it is in no block of the library, but CUDA knows it. Empty
 * otherwise, and while no context for GPUs lives. */
inline std::optional<Foreign> find_foreign(address adr) {
  umemFound found = UMEM_FOUND_INIT;
  if (umem_find(adr, &found) || found.foreign == umemForeignNone) return std::nullopt;
  return Foreign{found.foreign, found.adr, found.nbytes, found.name, found.device};
}
inline std::optional<Foreign> find_foreign(void const *pointer) {
  return find_foreign(reinterpret_cast<address>(pointer));
}

/* Finds in one context, whose addresses may also be offsets: umem_find_in. */
inline std::optional<Found> find_in(Context const &context, address adr) {
  umemFound found = UMEM_FOUND_INIT;
  bool is_found = detail::checked_call(umem_find_in, context.c_context(), adr, &found);
  return detail::found_block(is_found, found, adr);
}

/* Gives the live block at adr a label, until it is freed; "" removes the label. A Track must be in
 * the stack of context: umem_set_block_label. */
inline void set_block_label(Context const &context, address adr, std::string const &label) {
  detail::check_status(umem_set_block_label(context.c_context(), adr, label.c_str()));
}

/* The live contexts that count their bytes, the largest first: umem_describe_contexts. */
inline std::string describe_contexts() {
  std::string text(4096, '\0');
  umem_describe_contexts(text.data(), text.size());
  text.resize(text.find('\0'));
  return text;
}

} // namespace umem

#endif
