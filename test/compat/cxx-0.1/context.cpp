/* Contexts are handles: a function for all places need not be a template. */
#include <cstdio>
#include <string>
#include <umem.hpp>

/* [function] */
/* A block that holds the bytes of text, in any place. */
static umem::Buffer keep(umem::Context const &place, std::string const &text) {
  umem::Buffer buffer(place, text.size());
  buffer.copy_from(text.data(), text.size());
  return buffer; /* the buffer keeps its context alive */
}

static std::string text_of(umem::Buffer const &buffer) {
  std::string text(buffer.size(), ' ');
  buffer.copy_to(text.data(), text.size());
  return text;
}
/* [/function] */

int main() {
  /* [lifetime] */
  umem::Buffer kept = keep(umem::File::scratch(), "in a file without a name");
  umem::Buffer copied(umem::Host(), kept.size());
  copied.copy_from(kept); /* between any two places */
  std::printf("%s\n", text_of(copied).c_str());
  /* [/lifetime] */

  /* [questions] */
  umem::MMap map = umem::MMap::scratch();
  umem::Context same = map; /* another handle of the same context */
  std::printf("%d %d %d\n", same == map, map.is_cpu_accessible(),
              umem::File::scratch().is_cpu_accessible());
  /* [/questions] */

  /* [c] */
  umemHost host;
  umemHost_ctor(&host);
  {
    umem::Context borrowed = umem::Context::borrow(&host); /* does not end it */
    std::printf("%s\n", text_of(keep(borrowed, "in a context of C")).c_str());
  }
  umem_dtor(&host);

  umemVirtual *for_c = same.c_context(); /* for functions of umem.h */
  std::printf("%s\n", umem_get_device_name(for_c));
  /* [/c] */
}
