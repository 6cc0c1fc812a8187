/* layout.c - the sizes, offsets and numbers that SOVERSION 0 promises to programs compiled earlier.
 * The figures are those of 64-bit machines. */
#include "cases.h"

typedef struct Member {
  char const *name;
  size_t found, promised; /* offsets */
} Member;

static void expect(char const *type, Member const *members, size_t count) {
  for (Member const *it = members; it < members + count; it++)
    if (it->found != it->promised)
      fail_msg("%s.%s is at %zu and must be at %zu", type, it->name, it->found, it->promised);
}

/* Where the members of a struct are. */
#define MEMBERS(type, ...)                                                                         \
  do {                                                                                             \
    typedef type This;                                                                             \
    Member const members[] = {__VA_ARGS__};                                                        \
    expect(#type, members, sizeof members / sizeof *members);                                      \
  } while (0)
#define AT(member, bytes)                                                                          \
  { #member, offsetof(This, member), bytes }

/* Likewise, and its size; that of a GROWING one may be more: members are appended. */
#define STRUCT(type, bytes, ...)                                                                   \
  MEMBERS(type, __VA_ARGS__);                                                                      \
  assert_int_equal(sizeof(type), bytes)
#define GROWING(type, least, ...)                                                                  \
  MEMBERS(type, __VA_ARGS__);                                                                      \
  assert_true(sizeof(type) >= (least))

/* The number at each place of the list is its place, from first on; or, of bits, that bit. */
static void expect_numbers(char const *list, long long const *found, size_t count, bool bits,
                           long long first) {
  for (size_t i = 0; i < count; i++)
    if (found[i] != (bits ? 1 << i : first + (long long)i))
      fail_msg("number %zu of %s is %lld", i, list, found[i]);
}
#define NUMBERS(bits, first, ...)                                                                  \
  expect_numbers(#__VA_ARGS__, (long long const[]){__VA_ARGS__},                                   \
                 sizeof(long long const[]){__VA_ARGS__} / sizeof(long long), bits, first)
#define COUNT_FROM(first, ...) NUMBERS(false, first, __VA_ARGS__)
#define BITS(...) NUMBERS(true, 0, __VA_ARGS__)

TEST_CASE(the_base_of_a_context) {
  STRUCT(umemStatus, 16, AT(type, 0), AT(message, 8));
  STRUCT(umemVirtual, 640, AT(vptr, 0), AT(type, 8), AT(status, 16), AT(host, 32), AT(name, 40),
         AT(capabilities, 48), AT(vtbl_size, 52), AT(alignment, 56), AT(space, 64), AT(base, 80),
         AT(self, 88), AT(reserved, 96), AT(text, 128));
}

/* A context is its base, and where it has more, one pointer and seven reserved words. */
#define CONTEXT_WITH_MORE(type) STRUCT(type, 704, AT(super, 0), AT(impl, 640), AT(reserved, 648))

TEST_CASE(contexts) {
  STRUCT(umemHost, 640, AT(super, 0));
  CONTEXT_WITH_MORE(umemFile);
  CONTEXT_WITH_MORE(umemMMap);
  CONTEXT_WITH_MORE(umemShm);
  CONTEXT_WITH_MORE(umemUrl);
  CONTEXT_WITH_MORE(umemS3);
  CONTEXT_WITH_MORE(umemCuda);
  CONTEXT_WITH_MORE(umemCudaHost);
  CONTEXT_WITH_MORE(umemCudaManaged);
  CONTEXT_WITH_MORE(umemCudaAsync);
  CONTEXT_WITH_MORE(umemPool);
  CONTEXT_WITH_MORE(umemPoolOn);
  CONTEXT_WITH_MORE(umemFixed);
  CONTEXT_WITH_MORE(umemBinning);
  CONTEXT_WITH_MORE(umemCudaPrefetch);
  CONTEXT_WITH_MORE(umemLimit);
  CONTEXT_WITH_MORE(umemStats);
  CONTEXT_WITH_MORE(umemTrack);
  CONTEXT_WITH_MORE(umemDebug);
  CONTEXT_WITH_MORE(umemRetry);
  CONTEXT_WITH_MORE(umemLog);
  CONTEXT_WITH_MORE(umemFault);
  CONTEXT_WITH_MORE(umemGuarded);
}

TEST_CASE(blocks) {
  STRUCT(umemRows, 32, AT(ctx, 0), AT(adr, 8), AT(nbytes, 16), AT(stride, 24));
  MEMBERS(umemBlocksOptions, AT(source, 8), AT(destination, 40), AT(count, 72), AT(place, 80),
          AT(queues, 88), AT(queue_count, 96), AT(budget, 104), AT(rows, 112), AT(depth, 120),
          AT(before, 128), AT(after, 136), AT(ghosts, 144), AT(apart, 148), AT(progress, 152),
          AT(user, 160));
  MEMBERS(umemBlock, AT(number, 8), AT(first, 16), AT(rows, 24), AT(before, 32), AT(after, 40),
          AT(adr, 48), AT(out, 56));
  STRUCT(umemBlocks, 64, AT(impl, 0), AT(status, 8), AT(reserved, 16));
  MEMBERS(umemBlocksInfo, AT(rows, 8), AT(blocks, 16), AT(depth, 24), AT(nbytes, 32), AT(done, 40));
}

TEST_CASE(shared_memory) {
  GROWING(umemShmOptions, 48, AT(capacity, 8), AT(blocks, 16), AT(how, 24), AT(pages, 28),
          AT(permissions, 32), AT(sparse, 36), AT(trust, 40), AT(incomplete, 44));
  GROWING(umemHostOptions, 24, AT(policy, 8), AT(pages, 12), AT(nodes, 16));
  COUNT_FROM(1, umemHostBind, umemHostPrefer, umemHostInterleave, umemHostFirstTouch);
  COUNT_FROM(1, umemHostPages2M, umemHostPages1G);
  STRUCT(umemShmBlock, 32, AT(address, 0), AT(nbytes, 8), AT(start, 16), AT(pid, 24), AT(dead, 28));
  COUNT_FROM(0, umemTrustDefault, umemTrustUser, umemTrustGroup, umemTrustAll);
  COUNT_FROM(0, umemShmOpenOrCreate, umemShmCreate, umemShmOpen);
  COUNT_FROM(1, umemShmPagesAdvise, umemShmPages2M, umemShmPages1G);
  STRUCT(umemHandle, 512, AT(version, 0), AT(kind, 4), AT(length, 8), AT(offset, 16), AT(size, 24),
         AT(identity, 32), AT(flags, 64), AT(zero, 68), AT(name, 72), AT(memory, 328),
         AT(event, 392), AT(gpu, 456), AT(reserved, 472));
  COUNT_FROM(1, umemHandleNamed, umemHandleUnnamed, umemHandleFile, umemHandleCuda,
             umemHandleCudaPool);
}

TEST_CASE(web_servers) {
  GROWING(umemUrlOptions, 112, AT(connections, 8), AT(retries, 12), AT(piece, 16), AT(gap, 24),
          AT(connect_ms, 32), AT(stall_ms, 36), AT(total_ms, 40), AT(version, 44),
          AT(redirects, 48), AT(unpinned, 52), AT(ca_file, 56), AT(user, 64), AT(password, 72),
          AT(bearer, 80), AT(headers, 88), AT(header_count, 96), AT(hosts, 104));
  GROWING(umemUrlStats, 32, AT(requests, 8), AT(retries, 16), AT(nbytes, 24));
  GROWING(umemS3Options, 64, AT(region, 8), AT(endpoint, 16), AT(profile, 24), AT(style, 32),
          AT(anonymous, 36), AT(length, 40), AT(part, 48), AT(url, 56));
  COUNT_FROM(1, umemS3StylePath, umemS3StyleHost);
  COUNT_FROM(1, umemUrlVersion1, umemUrlVersion2);
  COUNT_FROM(1, umemUrlRedirectsSame, umemUrlRedirectsNone);
  assert_int_equal(umemUrlDevice, 9);
}

TEST_CASE(names_of_contexts) {
  STRUCT(umemOption, 64, AT(name, 0), AT(kind, 8), AT(required, 12), AT(words, 16), AT(help, 24));
  STRUCT(umemOptionValue, 64, AT(given, 0), AT(text, 8), AT(number, 16), AT(share, 24));
  STRUCT(umemScheme, 104, AT(size, 0), AT(name, 8), AT(context_size, 16), AT(decorates, 24),
         AT(place, 32), AT(options, 40), AT(option_count, 48), AT(construct, 56), AT(user, 64),
         AT(help, 72), AT(commit, 80), AT(complete, 88), AT(vtbl, 96));
  COUNT_FROM(0, umemTextOption, umemNumberOption, umemSizeOption, umemShareOption, umemWordOption,
             umemWordsOption, umemDeviceOption, umemPathOption, umemUrlOption);
}

TEST_CASE(the_table_of_methods) {
  GROWING(struct umemVtbl, 352, AT(dtor, 0), AT(is_same_device, 8), AT(alloc, 16), AT(calloc, 24),
          AT(free, 32), AT(aligned_alloc, 40), AT(aligned_origin, 48), AT(aligned_free, 56),
          AT(set, 64), AT(copy_to, 72), AT(copy_from, 80), AT(copy_direct, 88), AT(synchronize, 96),
          AT(wait, 104), AT(flush, 112), AT(trim, 120), AT(info, 128), AT(upstream, 136),
          AT(realloc, 144), AT(finish, 152), AT(is_captured, 160), AT(window, 168),
          AT(direct_file, 176), AT(copy_pieces, 184), AT(dlpack_device, 192), AT(stream_wait, 200),
          AT(pages, 208), AT(share, 216), AT(attach, 224), AT(find, 232), AT(usage, 240),
          AT(set_block_label, 248), AT(detach, 256), AT(labelled, 264), AT(large_pages, 272),
          AT(locate, 280), AT(leave, 288), AT(plan_copy, 296), AT(zero_pages, 304), AT(mark, 312),
          AT(sized_pages, 320), AT(copy_runs, 328), AT(advise, 336), AT(event_wait, 344));
}

TEST_CASE(structs_of_arguments) {
  STRUCT(umemPages, 48, AT(page_size, 0), AT(reserve, 8), AT(release, 16), AT(map, 24),
         AT(unmap, 32), AT(move, 40));
  STRUCT(umemMark, 40, AT(reached, 0), AT(release, 8), AT(own, 16), AT(wait, 32));
  GROWING(umemInfo, 192, AT(size, 0), AT(capacity, 8), AT(available, 16), AT(page_size, 24),
          AT(alignment, 32), AT(ordinal, 40), AT(name, 48), AT(stream, 176), AT(nodes, 184));
  GROWING(umemNpyHeader, 576, AT(size, 0), AT(type, 8), AT(fortran_order, 12), AT(rank, 16),
          AT(shape, 24), AT(strides, 280), AT(offset, 536), AT(nbytes, 544), AT(descr, 552),
          AT(big_endian, 568));
  GROWING(umemLayout, 48, AT(size, 0), AT(item_size, 8), AT(rank, 16), AT(extents, 24),
          AT(src_strides, 32), AT(dst_strides, 40));
  GROWING(umemCopyOptions, 40, AT(size, 0), AT(progress, 8), AT(user, 16), AT(step, 24),
          AT(route, 32));
  STRUCT(umemCopyItem, 40, AT(src_adr, 8), AT(dst, 16), AT(dst_adr, 24), AT(nbytes, 32));
  GROWING(umemCopyManyOptions, 32, AT(size, 0), AT(done, 8), AT(failed, 16), AT(route, 24));
  STRUCT(umemCopyRun, 32, AT(nbytes, 16), AT(state, 24));
  MEMBERS(umemRoute, AT(size, 0), AT(bytes, 8), AT(seconds, 16), AT(leg_count, 24),
          AT(left_out, 28), AT(legs, 32));
  STRUCT(umemRouteLeg, 128, AT(dst, 32), AT(way, 64), AT(bytes, 88), AT(workers, 104));
  assert_true(sizeof(umemRoute) >= 32 + UMEM_ROUTE_LEGS * sizeof(umemRouteLeg));
  GROWING(umemLedgerRecord, 264, AT(src, 8), AT(dst, 40), AT(route, 72), AT(calls, 232),
          AT(seconds, 256));
  GROWING(umemFileOptions, 40, AT(size, 0), AT(reserve, 8), AT(direct, 16), AT(reuse, 24),
          AT(durable, 32));
  GROWING(umemFixedOptions, 40, AT(size, 0), AT(alignment, 8), AT(initial, 16), AT(growth, 24),
          AT(maximum, 32));
  GROWING(umemFixedStats, 56, AT(size, 0), AT(block_size, 8), AT(blocks, 16), AT(blocks_held, 24),
          AT(reserved, 32), AT(reserved_peak, 40), AT(chunks, 48));
  assert_int_equal(sizeof(umemCudaEntry), 64);
  STRUCT(umemBin, 16, AT(largest, 0), AT(ctx, 8));
  GROWING(umemStatsFigures, 120, AT(size, 0), AT(current_bytes, 8), AT(peak_bytes, 16),
          AT(total_bytes, 24), AT(current_count, 32), AT(peak_count, 40), AT(total_count, 48),
          AT(label, 56));
  GROWING(umemTrackOptions, 16, AT(size, 0), AT(frames, 8));
  GROWING(umemLogOptions, 24, AT(size, 0), AT(filename, 8), AT(max_bytes, 16),
          AT(each_process, 24));
  GROWING(umemTrackBlock, 304, AT(size, 0), AT(ctx, 8), AT(adr, 16), AT(nbytes, 24), AT(number, 32),
          AT(frames, 40), AT(trace, 48));
  GROWING(umemDebugOptions, 40, AT(size, 0), AT(guard, 8), AT(kept_bytes, 16), AT(kept_blocks, 24),
          AT(frames, 32), AT(fill, 36));
  GROWING(umemDebugFault, 592, AT(size, 0), AT(ctx, 8), AT(kind, 16), AT(adr, 24), AT(nbytes, 32),
          AT(number, 40), AT(offset, 48), AT(wrong, 56), AT(found, 64), AT(expected, 65),
          AT(aligned, 66), AT(freed, 67), AT(allocated_frames, 68), AT(freed_frames, 72),
          AT(allocated_at, 80), AT(freed_at, 336));
  GROWING(umemDebugFigures, 48, AT(size, 0), AT(faults, 8), AT(live_blocks, 16), AT(live_bytes, 24),
          AT(kept_blocks, 32), AT(kept_bytes, 40));
  COUNT_FROM(0, umemDebugNothing, umemDebugUnderflow, umemDebugOverflow, umemDebugWriteAfterFree,
             umemDebugBadAccess, umemDebugDoubleFree, umemDebugInnerFree, umemDebugUnknownFree,
             umemDebugWrongFunction, umemDebugWrongSize);
  GROWING(umemFaultPlan, 48, AT(size, 0), AT(calls, 8), AT(status, 12), AT(nth, 16), AT(times, 24),
          AT(share, 32), AT(seed, 40));
  GROWING(umemPoolOptions, 40, AT(size, 0), AT(initial, 8), AT(growth, 16), AT(maximum, 24),
          AT(memory, 32));
  GROWING(umemPoolStats, 152, AT(size, 0), AT(used, 8), AT(used_peak, 16), AT(reserved, 24),
          AT(reserved_peak, 32), AT(largest_free, 40), AT(fragmentation, 48), AT(blocks, 56),
          AT(allocations, 64), AT(chunks, 72), AT(factor, 80), AT(label, 88));
  GROWING(umemPoolRegion, 56, AT(size, 0), AT(adr, 8), AT(nbytes, 16), AT(used, 24),
          AT(largest_free, 32), AT(ranges, 40), AT(age, 48));
  STRUCT(umemAttempt, 552, AT(outer, 0), AT(failures, 8), AT(type, 16), AT(ctx, 24),
         AT(adopter, 32), AT(text, 40));
}

/* The layout of the structs of DLPack is in the header itself. */
TEST_CASE(tensors) {
  assert_int_equal(sizeof(umemDLTensor), 48);
  STRUCT(umemDLManagedTensor, 64, AT(manager_ctx, 48), AT(deleter, 56));
  assert_int_equal(sizeof(umemDLManagedTensorVersioned), 80);
  GROWING(umemDLPackOptions, 24, AT(size, 0), AT(device, 8), AT(copy, 12), AT(stream, 16));
  COUNT_FROM(0, umemDLDefault, umemDLCPU, umemDLCUDA, umemDLCUDAHost);
  assert_int_equal(umemDLCUDAManaged, 13);
  COUNT_FROM(0, umemDLCopyNever, umemDLCopyIfNeeded, umemDLCopyAlways);
  assert_int_equal(UMEM_DLPACK_NO_STREAM, -1);
  assert_true(UMEM_DLPACK_DEFAULT_STREAM == INT64_MIN);
}

TEST_CASE(numbers) {
  COUNT_FROM(0, umemOK, umemMemoryError, umemRuntimeError, umemIOError, umemValueError,
             umemTypeError, umemIndexError, umemNotImplementedError, umemNotSupportedError,
             umemAssertError, umemCancelledError);
  COUNT_FROM(0, umemVirtualDevice, umemHostDevice, umemFileDevice, umemCudaDevice, umemMMapDevice,
             umemCudaHostDevice, umemCudaManagedDevice, umemCudaAsyncDevice, umemShmDevice);
  assert_int_equal(umemUserDevice, 1024);
  BITS(umemCpuReadable, umemCpuWritable, umemDeviceAccessible, umemReadable, umemWritable,
       umemOrdered, umemConcurrent, umemOffsets, umemFaultable);
  BITS(umemFaultAlloc, umemFaultCalloc, umemFaultAligned, umemFaultRealloc, umemFaultFree,
       umemFaultSet, umemFaultCopyTo, umemFaultCopyFrom, umemFaultSynchronize, umemFaultWait,
       umemFaultFlush, umemFaultTrim);
  assert_int_equal(UMEM_MESSAGE_SIZE, 512);
  assert_int_equal(UMEM_MAX_RANK, 32);
  assert_true(UMEM_UNKNOWN == UINT64_MAX);
  assert_true(UMEM_STREAM_NEW == UINTPTR_MAX);
}

TEST_CASE(the_version_is_written_alike) {
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", UMEM_VERSION_MAJOR, UMEM_VERSION_MINOR,
           UMEM_VERSION_PATCH);
  assert_string_equal(version, UMEM_VERSION);
  assert_string_equal(umem_version(), UMEM_VERSION);
}
