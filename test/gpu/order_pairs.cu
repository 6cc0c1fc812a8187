/* order_pairs.cu - copies between every two contexts, behind slow kernels on either side: a copy
 * comes after all that is queued on either side, and before what is queued on either side later.
 * With two GPUs, between them too. */
#include "order.cuh"

#include <cstddef>

namespace {

using namespace order;

/* Bytes that CUDA copies by itself, and those that are staged where host memory is pageable. */
constexpr std::size_t small = 5000, large = (12 << 20) + 5;

/* Two blocks of a context: one to copy from, one to copy to. */
struct Side {
  Bed const *bed;
  umem::Buffer from, to;

  explicit Side(Bed const &bed_) : bed(&bed_), from(bed_.context, large), to(bed_.context, large) {
    from.set(new_byte); /* what never changes, has pages */
    to.set(old_byte);
    bed_.context.synchronize();
  }
};

/* ---- how to copy ---- */

/* umem_copy_to, or a strided copy of the same bytes: as rows of one plane, which copy engines know,
 * or as rows backwards, which the host packs. */
struct Way {
  char const *name;
  std::size_t n;
  bool strided, backwards;
  bool everywhere; /* with each stream of a context, else with the first one */
};

std::vector<Way> const runs{{"short", small, false, false, true},
                            {"long", large, false, false, false}};
std::vector<Way> const all_ways{runs[0],
                                runs[1],
                                {"rows", small, true, false, false},
                                {"rows backwards", small, true, true, false}};

void copy(Way const &way, umem::Context const &src, umem::address src_adr, umem::Context const &dst,
          umem::address dst_adr) {
  if (!way.strided) return umem::copy(src, src_adr, dst, dst_adr, way.n);
  constexpr std::size_t row = 100;
  std::size_t const extents[] = {way.n / row};
  std::ptrdiff_t step = row, back = -step;
  umemLayout layout = {sizeof layout, row, 1, extents, &step, &step};
  umem::address end = (extents[0] - 1) * row;
  if (way.backwards) {
    layout.src_strides = layout.dst_strides = &back;
    src_adr += end;
    dst_adr += end;
  }
  umem::copy(src, src_adr, dst, dst_adr, layout);
}

/* Bytes are there on return where host memory takes part that is not pinned; else when the two are
 * synchronized. */
void finish(Bed const &src, Bed const &dst) {
  if (dst.context.can(umemCpuReadable) && !dst.context.can(umemDeviceAccessible)) return;
  if (dst.name == "file") return;
  src.context.synchronize();
  dst.context.synchronize();
}

/* ---- tests ---- */

/* A kernel still writes the source. What reads the destination later sees its bytes. */
std::string behind_the_source(Side const &src, Stream const &stream, Side const &dst,
                              Way const &way, Log &log) {
  prepare(src.bed->context, src.from.adr(), way.n, old_byte);
  prepare(dst.bed->context, dst.to.adr(), way.n, old_byte);
  log.clear();
  slow_set(stream, src.from.adr(), way.n, new_byte);
  copy(way, src.bed->context, src.from.adr(), dst.bed->context, dst.to.adr());
  bool const reads = dst.bed->has_kernels();
  if (reads) launch(dst.bed->streams[0], dst.to.adr(), way.n, log.data(), -1, 0);
  finish(*src.bed, *dst.bed);
  std::string wrong = differ(dst.bed->context, dst.to.adr(), way.n, new_byte, "the destination");
  finish_all();
  if (reads) wrong = first_of(wrong, differ(log.data(), way.n, new_byte, "a later kernel"));
  return wrong;
}

/* A kernel still reads and writes the destination. What writes the source later does not reach
 * it. */
std::string behind_the_destination(Side const &src, Side const &dst, Stream const &stream,
                                   Way const &way, Log &log) {
  prepare(src.bed->context, src.from.adr(), way.n, new_byte);
  prepare(dst.bed->context, dst.to.adr(), way.n, old_byte);
  log.clear();
  launch(stream, dst.to.adr(), way.n, log.data(), stale_byte, slow_ns);
  copy(way, src.bed->context, src.from.adr(), dst.bed->context, dst.to.adr());
  if (src.bed->has_kernels())
    launch(src.bed->streams[0], src.from.adr(), way.n, nullptr, stale_byte, 0);
  finish(*src.bed, *dst.bed);
  finish_all();
  return first_of(differ(log.data(), way.n, old_byte, "the kernel before"),
                  differ(dst.bed->context, dst.to.adr(), way.n, new_byte, "the destination"));
}

void test_pair(Side const &src, Side const &dst, std::vector<Way> const &ways, Log &log) {
  std::string const pair = src.bed->name + " to " + dst.bed->name;
  auto all = [&](char const *what, std::vector<Stream> const &streams, auto const &f) {
    for (Stream const &stream : streams)
      test(pair + ", a kernel on the stream " + stream.name + " uses the " + what, [&] {
        for (Way const &way : ways) {
          if (!way.everywhere && &stream != &streams[0]) continue;
          copy(way, src.bed->context, src.from.adr(), dst.bed->context, dst.to.adr());
          std::string wrong = f(stream, way);
          if (!wrong.empty()) return std::string(way.name) + ", " + wrong;
        }
        return std::string();
      });
  };
  all("source", src.bed->streams, [&](Stream const &stream, Way const &way) {
    return behind_the_source(src, stream, dst, way, log);
  });
  all("destination", dst.bed->streams, [&](Stream const &stream, Way const &way) {
    return behind_the_destination(src, dst, stream, way, log);
  });
}

std::vector<Side> sides_of(std::vector<Bed> const &beds) {
  std::vector<Side> sides;
  sides.reserve(beds.size());
  for (Bed const &bed : beds) sides.emplace_back(bed);
  return sides;
}

/* Peers, and the contexts of one with what the other does. */
void test_two_gpus(Log &log) {
  std::vector<Bed> const beds_0 = beds_of(0), beds_1 = beds_of(1);
  std::vector<Side> const sides_0 = sides_of(beds_0), sides_1 = sides_of(beds_1);
  for (Side const &src : sides_0)
    for (Side const &dst : sides_1) {
      test_pair(src, dst, runs, log);
      test_pair(dst, src, runs, log);
    }
}

} // namespace

int main() {
  return run([](int devices) {
    Log log(large);
    std::vector<Bed> beds = beds_of(0);
    for (Bed const &bed : host_beds()) beds.push_back(bed);
    std::vector<Side> const sides = sides_of(beds);
    for (Side const &src : sides)
      for (Side const &dst : sides)
        if (src.bed->has_kernels() || dst.bed->has_kernels()) test_pair(src, dst, all_ways, log);
    if (devices > 1)
      test_two_gpus(log);
    else
      std::printf("skipped - copies between two GPUs: there is one\n");
  });
}
