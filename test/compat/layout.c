/* layout.c - the sizes, offsets and numbers that SOVERSION 0 promises to programs compiled earlier.
 * The figures are those of 64-bit machines. */
#include "cases.h"

typedef struct Promise {
  char const *what;
  long long found, promised;
  bool may_grow; /* found may be more: members are appended */
} Promise;

#define SIZE(type, bytes)                                                                          \
  { "the size of " #type, sizeof(type), bytes, false }
#define LEAST(type, bytes)                                                                         \
  { "the least size of " #type, sizeof(type), bytes, true }
#define OFFSET(type, member, bytes)                                                                \
  { #type "." #member, offsetof(type, member), bytes, false }
#define NUMBER(name, number)                                                                       \
  { #name, name, number, false }

static void expect(Promise const *promises, size_t count) {
  for (Promise const *it = promises; it < promises + count; it++)
    if (it->may_grow ? it->found < it->promised : it->found != it->promised)
      fail_msg("%s is %lld and must be %lld", it->what, it->found, it->promised);
}
#define EXPECT(...)                                                                                \
  expect((Promise const[]){__VA_ARGS__}, sizeof(Promise const[]){__VA_ARGS__} / sizeof(Promise))

TEST_CASE(the_base_of_a_context) {
  EXPECT(SIZE(umemStatus, 16), OFFSET(umemStatus, type, 0), OFFSET(umemStatus, message, 8));
  EXPECT(SIZE(umemVirtual, 640), OFFSET(umemVirtual, vptr, 0), OFFSET(umemVirtual, type, 8),
         OFFSET(umemVirtual, status, 16), OFFSET(umemVirtual, host, 32),
         OFFSET(umemVirtual, name, 40), OFFSET(umemVirtual, capabilities, 48),
         OFFSET(umemVirtual, vtbl_size, 52), OFFSET(umemVirtual, alignment, 56),
         OFFSET(umemVirtual, space, 64), OFFSET(umemVirtual, base, 80),
         OFFSET(umemVirtual, self, 88), OFFSET(umemVirtual, reserved, 96),
         OFFSET(umemVirtual, text, 128));
}

/* A context is its base, and where it has more, one pointer and seven reserved words. */
#define CONTEXT(type)                                                                              \
  SIZE(type, 704), OFFSET(type, super, 0), OFFSET(type, impl, 640), OFFSET(type, reserved, 648)

TEST_CASE(contexts) {
  EXPECT(SIZE(umemHost, 640), OFFSET(umemHost, super, 0), CONTEXT(umemFile), CONTEXT(umemMMap),
         CONTEXT(umemShm), CONTEXT(umemUrl), CONTEXT(umemS3), CONTEXT(umemCuda),
         CONTEXT(umemCudaHost), CONTEXT(umemCudaManaged), CONTEXT(umemCudaAsync), CONTEXT(umemPool),
         CONTEXT(umemPoolOn), CONTEXT(umemFixed), CONTEXT(umemBinning), CONTEXT(umemCudaPrefetch),
         CONTEXT(umemLimit), CONTEXT(umemStats), CONTEXT(umemTrack), CONTEXT(umemDebug),
         CONTEXT(umemRetry), CONTEXT(umemLog), CONTEXT(umemFault), CONTEXT(umemGuarded));
}

TEST_CASE(blocks) {
  EXPECT(SIZE(umemRows, 32), OFFSET(umemRows, ctx, 0), OFFSET(umemRows, adr, 8),
         OFFSET(umemRows, nbytes, 16), OFFSET(umemRows, stride, 24));
  EXPECT(OFFSET(umemBlocksOptions, source, 8), OFFSET(umemBlocksOptions, destination, 40),
         OFFSET(umemBlocksOptions, count, 72), OFFSET(umemBlocksOptions, place, 80),
         OFFSET(umemBlocksOptions, queues, 88), OFFSET(umemBlocksOptions, queue_count, 96),
         OFFSET(umemBlocksOptions, budget, 104), OFFSET(umemBlocksOptions, rows, 112),
         OFFSET(umemBlocksOptions, depth, 120), OFFSET(umemBlocksOptions, before, 128),
         OFFSET(umemBlocksOptions, after, 136), OFFSET(umemBlocksOptions, ghosts, 144),
         OFFSET(umemBlocksOptions, apart, 148), OFFSET(umemBlocksOptions, progress, 152),
         OFFSET(umemBlocksOptions, user, 160));
  EXPECT(OFFSET(umemBlock, number, 8), OFFSET(umemBlock, first, 16), OFFSET(umemBlock, rows, 24),
         OFFSET(umemBlock, before, 32), OFFSET(umemBlock, after, 40), OFFSET(umemBlock, adr, 48),
         OFFSET(umemBlock, out, 56));
  EXPECT(SIZE(umemBlocks, 64), OFFSET(umemBlocks, impl, 0), OFFSET(umemBlocks, status, 8),
         OFFSET(umemBlocks, reserved, 16));
  EXPECT(OFFSET(umemBlocksInfo, rows, 8), OFFSET(umemBlocksInfo, blocks, 16),
         OFFSET(umemBlocksInfo, depth, 24), OFFSET(umemBlocksInfo, nbytes, 32),
         OFFSET(umemBlocksInfo, done, 40));
}

TEST_CASE(shared_memory) {
  EXPECT(OFFSET(umemShmOptions, capacity, 8), OFFSET(umemShmOptions, blocks, 16),
         OFFSET(umemShmOptions, how, 24), OFFSET(umemShmOptions, pages, 28),
         OFFSET(umemShmOptions, permissions, 32), OFFSET(umemShmOptions, sparse, 36),
         OFFSET(umemShmOptions, trust, 40), OFFSET(umemShmOptions, incomplete, 44),
         LEAST(umemShmOptions, 48));
  EXPECT(OFFSET(umemHostOptions, policy, 8), OFFSET(umemHostOptions, pages, 12),
         OFFSET(umemHostOptions, nodes, 16), LEAST(umemHostOptions, 24));
  EXPECT(NUMBER(umemHostBind, 1), NUMBER(umemHostPrefer, 2), NUMBER(umemHostInterleave, 3),
         NUMBER(umemHostFirstTouch, 4), NUMBER(umemHostPages2M, 1), NUMBER(umemHostPages1G, 2));
  EXPECT(SIZE(umemShmBlock, 32), OFFSET(umemShmBlock, address, 0), OFFSET(umemShmBlock, nbytes, 8),
         OFFSET(umemShmBlock, start, 16), OFFSET(umemShmBlock, pid, 24),
         OFFSET(umemShmBlock, dead, 28));
  EXPECT(NUMBER(umemTrustDefault, 0), NUMBER(umemTrustUser, 1), NUMBER(umemTrustGroup, 2),
         NUMBER(umemTrustAll, 3), NUMBER(umemShmOpenOrCreate, 0), NUMBER(umemShmCreate, 1),
         NUMBER(umemShmOpen, 2), NUMBER(umemShmPagesAdvise, 1), NUMBER(umemShmPages2M, 2),
         NUMBER(umemShmPages1G, 3));
  EXPECT(SIZE(umemHandle, 512), OFFSET(umemHandle, version, 0), OFFSET(umemHandle, kind, 4),
         OFFSET(umemHandle, length, 8), OFFSET(umemHandle, offset, 16),
         OFFSET(umemHandle, size, 24), OFFSET(umemHandle, identity, 32),
         OFFSET(umemHandle, flags, 64), OFFSET(umemHandle, zero, 68), OFFSET(umemHandle, name, 72),
         OFFSET(umemHandle, memory, 328), OFFSET(umemHandle, event, 392),
         OFFSET(umemHandle, gpu, 456), OFFSET(umemHandle, reserved, 472));
  EXPECT(NUMBER(umemHandleNamed, 1), NUMBER(umemHandleUnnamed, 2), NUMBER(umemHandleFile, 3),
         NUMBER(umemHandleCuda, 4), NUMBER(umemHandleCudaPool, 5));
}

TEST_CASE(web_servers) {
  EXPECT(OFFSET(umemUrlOptions, connections, 8), OFFSET(umemUrlOptions, retries, 12),
         OFFSET(umemUrlOptions, piece, 16), OFFSET(umemUrlOptions, gap, 24),
         OFFSET(umemUrlOptions, connect_ms, 32), OFFSET(umemUrlOptions, stall_ms, 36),
         OFFSET(umemUrlOptions, total_ms, 40), OFFSET(umemUrlOptions, version, 44),
         OFFSET(umemUrlOptions, redirects, 48), OFFSET(umemUrlOptions, unpinned, 52),
         OFFSET(umemUrlOptions, ca_file, 56), OFFSET(umemUrlOptions, user, 64),
         OFFSET(umemUrlOptions, password, 72), OFFSET(umemUrlOptions, bearer, 80),
         OFFSET(umemUrlOptions, headers, 88), OFFSET(umemUrlOptions, header_count, 96),
         OFFSET(umemUrlOptions, hosts, 104), LEAST(umemUrlOptions, 112));
  EXPECT(OFFSET(umemUrlStats, requests, 8), OFFSET(umemUrlStats, retries, 16),
         OFFSET(umemUrlStats, nbytes, 24), LEAST(umemUrlStats, 32));
  EXPECT(OFFSET(umemS3Options, region, 8), OFFSET(umemS3Options, endpoint, 16),
         OFFSET(umemS3Options, profile, 24), OFFSET(umemS3Options, style, 32),
         OFFSET(umemS3Options, anonymous, 36), OFFSET(umemS3Options, length, 40),
         OFFSET(umemS3Options, part, 48), OFFSET(umemS3Options, url, 56), LEAST(umemS3Options, 64),
         NUMBER(umemS3StylePath, 1), NUMBER(umemS3StyleHost, 2));
  EXPECT(NUMBER(umemUrlVersion1, 1), NUMBER(umemUrlVersion2, 2), NUMBER(umemUrlRedirectsSame, 1),
         NUMBER(umemUrlRedirectsNone, 2), NUMBER(umemUrlDevice, 9));
}

TEST_CASE(names_of_contexts) {
  EXPECT(SIZE(umemOption, 64), OFFSET(umemOption, name, 0), OFFSET(umemOption, kind, 8),
         OFFSET(umemOption, required, 12), OFFSET(umemOption, words, 16),
         OFFSET(umemOption, help, 24));
  EXPECT(SIZE(umemOptionValue, 64), OFFSET(umemOptionValue, given, 0),
         OFFSET(umemOptionValue, text, 8), OFFSET(umemOptionValue, number, 16),
         OFFSET(umemOptionValue, share, 24));
  EXPECT(SIZE(umemScheme, 104), OFFSET(umemScheme, size, 0), OFFSET(umemScheme, name, 8),
         OFFSET(umemScheme, context_size, 16), OFFSET(umemScheme, decorates, 24),
         OFFSET(umemScheme, place, 32), OFFSET(umemScheme, options, 40),
         OFFSET(umemScheme, option_count, 48), OFFSET(umemScheme, construct, 56),
         OFFSET(umemScheme, user, 64), OFFSET(umemScheme, help, 72), OFFSET(umemScheme, commit, 80),
         OFFSET(umemScheme, complete, 88), OFFSET(umemScheme, vtbl, 96));
  EXPECT(NUMBER(umemTextOption, 0), NUMBER(umemNumberOption, 1), NUMBER(umemSizeOption, 2),
         NUMBER(umemShareOption, 3), NUMBER(umemWordOption, 4), NUMBER(umemWordsOption, 5),
         NUMBER(umemDeviceOption, 6), NUMBER(umemPathOption, 7), NUMBER(umemUrlOption, 8));
}

TEST_CASE(the_table_of_methods) {
  EXPECT(OFFSET(struct umemVtbl, dtor, 0), OFFSET(struct umemVtbl, is_same_device, 8),
         OFFSET(struct umemVtbl, alloc, 16), OFFSET(struct umemVtbl, calloc, 24),
         OFFSET(struct umemVtbl, free, 32), OFFSET(struct umemVtbl, aligned_alloc, 40),
         OFFSET(struct umemVtbl, aligned_origin, 48), OFFSET(struct umemVtbl, aligned_free, 56),
         OFFSET(struct umemVtbl, set, 64), OFFSET(struct umemVtbl, copy_to, 72),
         OFFSET(struct umemVtbl, copy_from, 80), OFFSET(struct umemVtbl, copy_direct, 88),
         OFFSET(struct umemVtbl, synchronize, 96), OFFSET(struct umemVtbl, wait, 104),
         OFFSET(struct umemVtbl, flush, 112), OFFSET(struct umemVtbl, trim, 120),
         OFFSET(struct umemVtbl, info, 128), OFFSET(struct umemVtbl, upstream, 136),
         OFFSET(struct umemVtbl, realloc, 144), OFFSET(struct umemVtbl, finish, 152),
         OFFSET(struct umemVtbl, is_captured, 160), OFFSET(struct umemVtbl, window, 168),
         OFFSET(struct umemVtbl, direct_file, 176), OFFSET(struct umemVtbl, copy_pieces, 184),
         OFFSET(struct umemVtbl, dlpack_device, 192), OFFSET(struct umemVtbl, stream_wait, 200),
         OFFSET(struct umemVtbl, pages, 208), OFFSET(struct umemVtbl, share, 216),
         OFFSET(struct umemVtbl, attach, 224), OFFSET(struct umemVtbl, find, 232),
         OFFSET(struct umemVtbl, usage, 240), OFFSET(struct umemVtbl, set_block_label, 248),
         OFFSET(struct umemVtbl, detach, 256), OFFSET(struct umemVtbl, labelled, 264),
         OFFSET(struct umemVtbl, large_pages, 272), OFFSET(struct umemVtbl, locate, 280),
         OFFSET(struct umemVtbl, leave, 288), OFFSET(struct umemVtbl, plan_copy, 296),
         OFFSET(struct umemVtbl, zero_pages, 304), OFFSET(struct umemVtbl, mark, 312),
         OFFSET(struct umemVtbl, sized_pages, 320), OFFSET(struct umemVtbl, copy_runs, 328),
         OFFSET(struct umemVtbl, advise, 336), OFFSET(struct umemVtbl, event_wait, 344),
         LEAST(struct umemVtbl, 352));
}

TEST_CASE(structs_of_arguments) {
  EXPECT(OFFSET(umemPages, page_size, 0), OFFSET(umemPages, reserve, 8),
         OFFSET(umemPages, release, 16), OFFSET(umemPages, map, 24), OFFSET(umemPages, unmap, 32),
         OFFSET(umemPages, move, 40), SIZE(umemPages, 48));
  EXPECT(OFFSET(umemMark, reached, 0), OFFSET(umemMark, release, 8), OFFSET(umemMark, own, 16),
         OFFSET(umemMark, wait, 32), SIZE(umemMark, 40));
  EXPECT(OFFSET(umemInfo, size, 0), OFFSET(umemInfo, capacity, 8), OFFSET(umemInfo, available, 16),
         OFFSET(umemInfo, page_size, 24), OFFSET(umemInfo, alignment, 32),
         OFFSET(umemInfo, ordinal, 40), OFFSET(umemInfo, name, 48), OFFSET(umemInfo, stream, 176),
         OFFSET(umemInfo, nodes, 184), LEAST(umemInfo, 192));
  EXPECT(OFFSET(umemNpyHeader, size, 0), OFFSET(umemNpyHeader, type, 8),
         OFFSET(umemNpyHeader, fortran_order, 12), OFFSET(umemNpyHeader, rank, 16),
         OFFSET(umemNpyHeader, shape, 24), OFFSET(umemNpyHeader, strides, 280),
         OFFSET(umemNpyHeader, offset, 536), OFFSET(umemNpyHeader, nbytes, 544),
         OFFSET(umemNpyHeader, descr, 552), OFFSET(umemNpyHeader, big_endian, 568),
         LEAST(umemNpyHeader, 576));
  EXPECT(OFFSET(umemLayout, size, 0), OFFSET(umemLayout, item_size, 8),
         OFFSET(umemLayout, rank, 16), OFFSET(umemLayout, extents, 24),
         OFFSET(umemLayout, src_strides, 32), OFFSET(umemLayout, dst_strides, 40),
         LEAST(umemLayout, 48));
  EXPECT(OFFSET(umemCopyOptions, size, 0), OFFSET(umemCopyOptions, progress, 8),
         OFFSET(umemCopyOptions, user, 16), OFFSET(umemCopyOptions, step, 24),
         OFFSET(umemCopyOptions, route, 32), LEAST(umemCopyOptions, 40));
  EXPECT(OFFSET(umemCopyItem, src_adr, 8), OFFSET(umemCopyItem, dst, 16),
         OFFSET(umemCopyItem, dst_adr, 24), OFFSET(umemCopyItem, nbytes, 32),
         SIZE(umemCopyItem, 40));
  EXPECT(OFFSET(umemCopyManyOptions, size, 0), OFFSET(umemCopyManyOptions, done, 8),
         OFFSET(umemCopyManyOptions, failed, 16), OFFSET(umemCopyManyOptions, route, 24),
         LEAST(umemCopyManyOptions, 32));
  EXPECT(OFFSET(umemCopyRun, nbytes, 16), OFFSET(umemCopyRun, state, 24), SIZE(umemCopyRun, 32));
  EXPECT(OFFSET(umemRoute, size, 0), OFFSET(umemRoute, bytes, 8), OFFSET(umemRoute, seconds, 16),
         OFFSET(umemRoute, leg_count, 24), OFFSET(umemRoute, left_out, 28),
         OFFSET(umemRoute, legs, 32));
  EXPECT(OFFSET(umemRouteLeg, dst, 32), OFFSET(umemRouteLeg, way, 64),
         OFFSET(umemRouteLeg, bytes, 88), OFFSET(umemRouteLeg, workers, 104),
         SIZE(umemRouteLeg, 128));
  EXPECT(LEAST(umemRoute, 32 + UMEM_ROUTE_LEGS * sizeof(umemRouteLeg)));
  EXPECT(OFFSET(umemLedgerRecord, src, 8), OFFSET(umemLedgerRecord, dst, 40),
         OFFSET(umemLedgerRecord, route, 72), OFFSET(umemLedgerRecord, calls, 232),
         OFFSET(umemLedgerRecord, seconds, 256), LEAST(umemLedgerRecord, 264));
  EXPECT(OFFSET(umemFileOptions, size, 0), OFFSET(umemFileOptions, reserve, 8),
         OFFSET(umemFileOptions, direct, 16), OFFSET(umemFileOptions, reuse, 24),
         OFFSET(umemFileOptions, durable, 32), LEAST(umemFileOptions, 40));
  EXPECT(OFFSET(umemFixedOptions, size, 0), OFFSET(umemFixedOptions, alignment, 8),
         OFFSET(umemFixedOptions, initial, 16), OFFSET(umemFixedOptions, growth, 24),
         OFFSET(umemFixedOptions, maximum, 32), LEAST(umemFixedOptions, 40));
  EXPECT(OFFSET(umemFixedStats, size, 0), OFFSET(umemFixedStats, block_size, 8),
         OFFSET(umemFixedStats, blocks, 16), OFFSET(umemFixedStats, blocks_held, 24),
         OFFSET(umemFixedStats, reserved, 32), OFFSET(umemFixedStats, reserved_peak, 40),
         OFFSET(umemFixedStats, chunks, 48), LEAST(umemFixedStats, 56));
  EXPECT(SIZE(umemCudaEntry, 64));
  EXPECT(SIZE(umemBin, 16), OFFSET(umemBin, largest, 0), OFFSET(umemBin, ctx, 8));
  EXPECT(OFFSET(umemStatsFigures, size, 0), OFFSET(umemStatsFigures, current_bytes, 8),
         OFFSET(umemStatsFigures, peak_bytes, 16), OFFSET(umemStatsFigures, total_bytes, 24),
         OFFSET(umemStatsFigures, current_count, 32), OFFSET(umemStatsFigures, peak_count, 40),
         OFFSET(umemStatsFigures, total_count, 48), OFFSET(umemStatsFigures, label, 56),
         LEAST(umemStatsFigures, 120));
  EXPECT(OFFSET(umemTrackOptions, size, 0), OFFSET(umemTrackOptions, frames, 8),
         LEAST(umemTrackOptions, 16));
  EXPECT(OFFSET(umemLogOptions, size, 0), OFFSET(umemLogOptions, filename, 8),
         OFFSET(umemLogOptions, max_bytes, 16), OFFSET(umemLogOptions, each_process, 24),
         LEAST(umemLogOptions, 24));
  EXPECT(OFFSET(umemTrackBlock, size, 0), OFFSET(umemTrackBlock, ctx, 8),
         OFFSET(umemTrackBlock, adr, 16), OFFSET(umemTrackBlock, nbytes, 24),
         OFFSET(umemTrackBlock, number, 32), OFFSET(umemTrackBlock, frames, 40),
         OFFSET(umemTrackBlock, trace, 48), LEAST(umemTrackBlock, 304));
  EXPECT(OFFSET(umemDebugOptions, size, 0), OFFSET(umemDebugOptions, guard, 8),
         OFFSET(umemDebugOptions, kept_bytes, 16), OFFSET(umemDebugOptions, kept_blocks, 24),
         OFFSET(umemDebugOptions, frames, 32), OFFSET(umemDebugOptions, fill, 36),
         LEAST(umemDebugOptions, 40));
  EXPECT(OFFSET(umemDebugFault, size, 0), OFFSET(umemDebugFault, ctx, 8),
         OFFSET(umemDebugFault, kind, 16), OFFSET(umemDebugFault, adr, 24),
         OFFSET(umemDebugFault, nbytes, 32), OFFSET(umemDebugFault, number, 40),
         OFFSET(umemDebugFault, offset, 48), OFFSET(umemDebugFault, wrong, 56),
         OFFSET(umemDebugFault, found, 64), OFFSET(umemDebugFault, expected, 65),
         OFFSET(umemDebugFault, aligned, 66), OFFSET(umemDebugFault, freed, 67),
         OFFSET(umemDebugFault, allocated_frames, 68), OFFSET(umemDebugFault, freed_frames, 72),
         OFFSET(umemDebugFault, allocated_at, 80), OFFSET(umemDebugFault, freed_at, 336),
         LEAST(umemDebugFault, 592));
  EXPECT(OFFSET(umemDebugFigures, size, 0), OFFSET(umemDebugFigures, faults, 8),
         OFFSET(umemDebugFigures, live_blocks, 16), OFFSET(umemDebugFigures, live_bytes, 24),
         OFFSET(umemDebugFigures, kept_blocks, 32), OFFSET(umemDebugFigures, kept_bytes, 40),
         LEAST(umemDebugFigures, 48));
  EXPECT(NUMBER(umemDebugNothing, 0), NUMBER(umemDebugUnderflow, 1), NUMBER(umemDebugOverflow, 2),
         NUMBER(umemDebugWriteAfterFree, 3), NUMBER(umemDebugBadAccess, 4),
         NUMBER(umemDebugDoubleFree, 5), NUMBER(umemDebugInnerFree, 6),
         NUMBER(umemDebugUnknownFree, 7), NUMBER(umemDebugWrongFunction, 8),
         NUMBER(umemDebugWrongSize, 9));
  EXPECT(OFFSET(umemFaultPlan, size, 0), OFFSET(umemFaultPlan, calls, 8),
         OFFSET(umemFaultPlan, status, 12), OFFSET(umemFaultPlan, nth, 16),
         OFFSET(umemFaultPlan, times, 24), OFFSET(umemFaultPlan, share, 32),
         OFFSET(umemFaultPlan, seed, 40), LEAST(umemFaultPlan, 48));
  EXPECT(OFFSET(umemPoolOptions, size, 0), OFFSET(umemPoolOptions, initial, 8),
         OFFSET(umemPoolOptions, growth, 16), OFFSET(umemPoolOptions, maximum, 24),
         OFFSET(umemPoolOptions, memory, 32), LEAST(umemPoolOptions, 40));
  EXPECT(OFFSET(umemPoolStats, size, 0), OFFSET(umemPoolStats, used, 8),
         OFFSET(umemPoolStats, used_peak, 16), OFFSET(umemPoolStats, reserved, 24),
         OFFSET(umemPoolStats, reserved_peak, 32), OFFSET(umemPoolStats, largest_free, 40),
         OFFSET(umemPoolStats, fragmentation, 48), OFFSET(umemPoolStats, blocks, 56),
         OFFSET(umemPoolStats, allocations, 64), OFFSET(umemPoolStats, chunks, 72),
         OFFSET(umemPoolStats, factor, 80), OFFSET(umemPoolStats, label, 88),
         LEAST(umemPoolStats, 152));
  EXPECT(OFFSET(umemPoolRegion, size, 0), OFFSET(umemPoolRegion, adr, 8),
         OFFSET(umemPoolRegion, nbytes, 16), OFFSET(umemPoolRegion, used, 24),
         OFFSET(umemPoolRegion, largest_free, 32), OFFSET(umemPoolRegion, ranges, 40),
         OFFSET(umemPoolRegion, age, 48), LEAST(umemPoolRegion, 56));
  EXPECT(SIZE(umemAttempt, 552), OFFSET(umemAttempt, outer, 0), OFFSET(umemAttempt, failures, 8),
         OFFSET(umemAttempt, type, 16), OFFSET(umemAttempt, ctx, 24),
         OFFSET(umemAttempt, adopter, 32), OFFSET(umemAttempt, text, 40));
}

/* The layout of the structs of DLPack is in the header itself. */
TEST_CASE(tensors) {
  EXPECT(SIZE(umemDLTensor, 48));
  EXPECT(SIZE(umemDLManagedTensor, 64), OFFSET(umemDLManagedTensor, manager_ctx, 48),
         OFFSET(umemDLManagedTensor, deleter, 56));
  EXPECT(SIZE(umemDLManagedTensorVersioned, 80));
  EXPECT(OFFSET(umemDLPackOptions, size, 0), OFFSET(umemDLPackOptions, device, 8),
         OFFSET(umemDLPackOptions, copy, 12), OFFSET(umemDLPackOptions, stream, 16),
         LEAST(umemDLPackOptions, 24));
  EXPECT(NUMBER(umemDLDefault, 0), NUMBER(umemDLCPU, 1), NUMBER(umemDLCUDA, 2),
         NUMBER(umemDLCUDAHost, 3), NUMBER(umemDLCUDAManaged, 13), NUMBER(umemDLCopyNever, 0),
         NUMBER(umemDLCopyIfNeeded, 1), NUMBER(umemDLCopyAlways, 2),
         NUMBER(UMEM_DLPACK_NO_STREAM, -1));
  assert_true(UMEM_DLPACK_DEFAULT_STREAM == INT64_MIN);
}

TEST_CASE(numbers) {
  umemStatusType const statuses[] = {
      umemOK,          umemMemoryError,         umemRuntimeError,
      umemIOError,     umemValueError,          umemTypeError,
      umemIndexError,  umemNotImplementedError, umemNotSupportedError,
      umemAssertError, umemCancelledError};
  for (unsigned i = 0; i < sizeof statuses / sizeof *statuses; i++)
    assert_int_equal(statuses[i], i);

  umemDeviceType const devices[] = {umemVirtualDevice,     umemHostDevice,      umemFileDevice,
                                    umemCudaDevice,        umemMMapDevice,      umemCudaHostDevice,
                                    umemCudaManagedDevice, umemCudaAsyncDevice, umemShmDevice};
  for (unsigned i = 0; i < sizeof devices / sizeof *devices; i++) assert_int_equal(devices[i], i);
  EXPECT(NUMBER(umemUserDevice, 1024));

  umemCapability const capabilities[] = {umemCpuReadable, umemCpuWritable, umemDeviceAccessible,
                                         umemReadable,    umemWritable,    umemOrdered,
                                         umemConcurrent,  umemOffsets,     umemFaultable};
  for (unsigned i = 0; i < sizeof capabilities / sizeof *capabilities; i++)
    assert_int_equal(capabilities[i], 1u << i);

  umemFaultCalls const calls[] = {umemFaultAlloc,   umemFaultCalloc,   umemFaultAligned,
                                  umemFaultRealloc, umemFaultFree,     umemFaultSet,
                                  umemFaultCopyTo,  umemFaultCopyFrom, umemFaultSynchronize,
                                  umemFaultWait,    umemFaultFlush,    umemFaultTrim};
  for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) assert_int_equal(calls[i], 1u << i);

  EXPECT(NUMBER(UMEM_MESSAGE_SIZE, 512), NUMBER(UMEM_MAX_RANK, 32));
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
