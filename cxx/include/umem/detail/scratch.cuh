/* umem/detail/scratch.cuh - temporary memory of a GPU for calls that wait for their result. */
#ifndef UMEM_DETAIL_SCRATCH_CUH
#define UMEM_DETAIL_SCRATCH_CUH

#include <umem/buffer.hpp>
#include <umem/detail/launch.cuh>

namespace umem::detail {

/* The unused blocks of each GPU, kept for the next call. They are never freed: CUDA may end
 * before the program. */
class ScratchStock {
public:
  static ScratchStock &get() {
    static ScratchStock &stock = *new ScratchStock;
    return stock;
  }

  Buffer take(int device, std::size_t nbytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Buffer> &blocks = blocks_[device];
    for (Buffer &block : blocks)
      if (block.size() >= nbytes) {
        std::swap(block, blocks.back());
        Buffer found = std::move(blocks.back());
        blocks.pop_back();
        return found;
      }
    return Buffer(GpuContexts::of(device), nbytes < least_bytes ? least_bytes : nbytes);
  }

  void give(int device, Buffer &&block) noexcept {
    try {
      std::lock_guard<std::mutex> lock(mutex_);
      blocks_[device].push_back(std::move(block));
    } catch (std::exception const &) { /* no memory for the list: the caller frees the block */
    }
  }

private:
  static constexpr std::size_t least_bytes = 256 * 1024;

  std::mutex mutex_;
  std::map<int, std::vector<Buffer>> blocks_;
};

/* nbytes of a GPU during a call. The call ends with download() or finish() and cannot be
 * captured into a graph. */
class Scratch {
public:
  Scratch(DevicePlace const &place, int device, std::size_t nbytes)
      : device_(device), block_(take(place, device, nbytes)) {}
  Scratch(Scratch const &) = delete;
  Scratch &operator=(Scratch const &) = delete;
  ~Scratch() { /* frees a block that kernels may still use; the free waits for them */
    if (finished_) ScratchStock::get().give(device_, std::move(block_));
  }

  template <class Type> Type *as() const noexcept { return reinterpret_cast<Type *>(block_.adr()); }

  /* Copies nbytes of the host to the beginning. It has read them when it returns. */
  void upload(DevicePlace const &place, void const *from, std::size_t nbytes) {
    check_cuda(cudaMemcpyAsync(as<void>(), from, nbytes, cudaMemcpyHostToDevice, stream_of(place)),
               "the upload of an initial value");
  }

  /* Waits for all queued work of the place and copies the first nbytes to the host. */
  void download(DevicePlace const &place, void *to, std::size_t nbytes) {
    check_cuda(cudaMemcpyAsync(to, as<void>(), nbytes, cudaMemcpyDeviceToHost, stream_of(place)),
               "the download of a result");
    finish(place);
  }

  /* Waits for all queued work of the place. */
  void finish(DevicePlace const &place) {
    synchronize(place);
    finished_ = true;
  }

private:
  static Buffer take(DevicePlace const &place, int device, std::size_t nbytes) {
    refuse_capture(place);
    return ScratchStock::get().take(device, nbytes);
  }

  int device_;
  Buffer block_;
  bool finished_ = false;
};

} // namespace umem::detail

#endif
