"""The mistakes that test/mutation/run.py makes on purpose: one Mutant each.

A mutant replaces a text that its file holds exactly once. Where the file has been renamed, the text is looked for
in all of c/src and cxx/include. Each stands for a mistake that people make: one too many or too few, a wait, a lock
or a way back that is missing, the wrong order, the wrong errno.
"""
from typing import NamedTuple, Tuple


class Mutant(NamedTuple):
    file: str
    old: str
    new: str
    what: str
    first: Tuple[str, ...] = ()  # tests that are likely to find it, by ctest's names
    preset: str = "gcc"  # the build that must find it


def c(file, old, new, what, **more):
    return Mutant("c/src/" + file, old, new, what, **more)


def cxx(file, old, new, what, first, **more):
    return Mutant("cxx/include/umem/" + file, old, new, what, tuple("cxx." + name for name in first), **more)


MUTANTS = [
    # ---- base ----
    c("base/table.h", "if (((i - home) & mask) < ((i - hole) & mask)) continue;",
      "if (((i - home) & mask) <= ((i - hole) & mask)) continue;",
      "a removal leaves a cell where no search finds it"),
    c("base/lock.c", "  for (umemLock *lock = newest; lock; lock = lock->older) pthread_mutex_unlock(&lock->mutex);\n",
      "", "locks stay taken after fork"),
    c("base/sizes.c", "    umemSizes_release(blocks);\n    if (!allow(", "    if (!allow(",
      "a refused reservation is not given back"),
    c("base/range.c", "  low->wall_above = false;\n", "", "a cut leaves a wall between its parts"),
    c("base/page_map.c", "region <= last; region++", "region < last; region++", "the last region has no leaf"),
    c("base/index.c", "  spans[after].before = span;\n", "", "the next span does not know the new one"),
    c("core/parallel.c", "  if (pieces > most) pieces = most;\n", "", "more pieces than asked for"),

    # ---- core ----
    c("core/run.c", "  if (ordered) umem_wait(dst, src);\n", "", "the destination does not wait for the read"),
    c("core/copy.c", "umem_validate(to, dst_adr, nbytes, umemWritable)", "umem_validate(to, dst_adr, nbytes, umemReadable)",
      "copies to what is only read"),
    c("core/stage.c", "stage->nbytes / stage->chunk + (stage->nbytes % stage->chunk != 0);", "stage->nbytes / stage->chunk;",
      "the last, short chunk is left out"),
    c("core/connect.c", "  umem_aligned_free(to, adr);\n  return null;", "  return null;",
      "a failed connect keeps its block"),
    c("core/realloc.c", "  umem_free(ctx, moved); /*", "  /*", "a failed realloc keeps the new block"),
    c("core/status.c", "  umem_thread.failures = attempt->failures;\n  umem_thread.last", "  umem_thread.last",
      "failures of an attempt count"),
    c("core/layout.c", "if (n->src[last] != item || n->dst[last] != item) break;", "if (n->src[last] != item) break;",
      "dimensions are joined that only the source joins"),
    c("core/items.c", "  umem_finish(sides->dst); /* packed is used again */\n", "",
      "a buffer is used again before it is written"),

    # ---- copies of items ----
    c("core/tiles.c", "      extents[k] = rest < tiling->tile[k] ? rest : tiling->tile[k];", "      extents[k] = tiling->tile[k];",
      "the last tile of a row is a whole one", first=("unit.tiles",)),
    c("core/tiles.c", "stride >= padded_from) stride += line;", "stride >= padded_from) stride -= line;",
      "rows of the buffer overlap", first=("unit.tiles",)),
    c("core/tiles.c", "    copy_blocks(tiling, dst + halves.dst, src + halves.src, &halves.second);",
      "    copy_blocks(tiling, dst + halves.dst, src, &halves.second);", "the second half of a block reads the first", first=("unit.tiles",)),
    c("core/tiles.c", "size_t first = piece * each + (piece < more ? piece : more);", "size_t first = piece * each;",
      "pieces of threads that cannot be equal overlap", first=("unit.tiles",)),
    c("core/tiles.c", "    __atomic_store_n(&copy->failed, true, __ATOMIC_RELAXED);", "    __atomic_store_n(&copy->failed, false, __ATOMIC_RELAXED);",
      "a page that is gone for one thread is forgotten", first=("unit.tiles",)),
    c("base/guarded.c", "guard->order > found->order", "guard->order < found->order", "the outer guard catches what the inner one should",
      first=("unit.guarded",)),
    c("base/guarded.c", "  if (--running == 0) uninstall();", "  --running;", "the handler stays", first=("unit.guarded",)),
    c("base/guarded.c", "  replaced = true;\n", "", "guards go on over a handler of the program", first=("unit.guarded",)),
    c("base/guarded.c", "if (!whole || guard->blocks) pthread_sigmask(", "if (!whole) pthread_sigmask(",
      "SIGBUS is not blocked again", first=("unit.guarded",)),
    c("base/guarded.c", " || adr - ranges[1].first < ranges[1].size;", ";", "only the first range is guarded", first=("unit.tiles",)),
    c("base/guarded.c", "      entry->thread = 0;\n  }\n  if (before_fork", "      (void)0;\n  }\n  if (before_fork",
      "a child keeps the guards of threads that it does not have", first=("unit.guarded",)),
    c("core/window.c", "side->open.first + (adr - side->first)", "side->open.first", "all parts of a window are its beginning",
      first=("unit.file_items",)),
    c("core/window.c", "  bool done = copy_open(copy, src_adr, dst_adr, layout);\n  close_window(&copy->dst);",
      "  bool done = copy_open(copy, src_adr, dst_adr, layout);", "the window of the destination stays open", first=("unit.file_items",)),
    c("core/window.c", "{copy->dst.open, copy->src.open}", "{copy->dst.open, copy->dst.open}", "the source has no guard",
      first=("fault.items",)),
    c("core/window.c", "part(copy, src_adr + (uintptr_t)halves.src, dst_adr + (uintptr_t)halves.dst,",
      "part(copy, src_adr, dst_adr + (uintptr_t)halves.dst,", "the second half of a layout reads the first", first=("unit.file_items",)),
    c("stores/store_window.c", "size <= *length && offset <= *length - size &&", "size <= *length &&",
      "a window may reach beyond the end of the file", first=("unit.file_items",)),
    c("stores/store_window.c", "(access == umemReadable || umemStore_owns(store, offset, size))", "(access || umemStore_owns(store, offset, size))",
      "items outside of the block are written", first=("unit.file_items",)),
    c("stores/store_window.c", "  store->view.users--;\n", "", "a mapping that was used once stays in use", first=("unit.file_items",)),
    c("stores/store_window.c", "  if (!is_inside(view, offset, size) && !view->users) renew", "  if (!is_inside(view, offset, size)) renew",
      "a mapping goes that another thread uses", first=("unit.file_items",)),
    c("stores/store_window.c", "store->taken_over ? -1 : lseek", "store->started && false ? -1 : lseek",
      "the position of a descriptor that was taken over moves", first=("unit.file_items",)),
    c("stores/store_pair.c", "!umemStore_may_touch(to, target, size, umemWritable) || ", "", "a run is written outside of the block",
      first=("unit.file_runs",)),
    c("stores/store_pair.c", "  if (window.release) window.release(src, &window);\n", "", "the mapping of the source stays in use",
      first=("unit.file_runs",)),
    c("stores/store_pair.c", "  return done;", "  return true;", "a run that could not be written counts as copied", first=("unit.file_runs",)),
    c("core/items.c", "  if (sides.ordered) umem_free(sides.host, sides.ordered);\n", "", "the second buffer of a piece stays",
      first=("unit.items",)),
    c("core/items.c", "  place.dst_strides = sorted.src;", "  place.dst_strides = NULL;", "items stay in the order of the source",
      first=("unit.items",)),
    c("cuda/cuda_narrow.c", " || (queued && umemCudaState_is_captured(state))", "", "a capture allocates a block for narrow rows",
      first=("unit.cuda_narrow",)),
    c("cuda/cuda_narrow.c", "extents[0] = rest < count ? rest : count;", "extents[0] = count;", "the last part of narrow rows is a whole one",
      first=("unit.cuda_narrow",)),
    c("cuda/cuda_narrow.c", "  int last = give(state, block, count * slice);\n", "  int last = 0;\n", "the block of narrow rows stays",
      first=("unit.cuda_narrow",)),
    c("cuda/cuda_narrow.c", "    way->rt->last_error();\n    return false;", "    return false;",
      "the runtime keeps the error of a block that it had no memory for", first=("unit.cuda_narrow",)),

    # ---- stores ----
    c("stores/store_io.c", "(off_t)(read->offset + done)", "(off_t)read->offset", "what follows a short read is the same again"),
    c("stores/store_io.c", "    else if (n == 0 || errno != EINTR)", "    else", "an interrupted write fails"),
    c("stores/store_io.c", "  if (!sync_name(store)) return false;\n", "", "the name of a new file is not flushed"),
    c("stores/store_space.c", "  if (!within_limit(store, to)) return false;\n", "", "SIGXFSZ ends the process"),
    c("stores/store_space.c", "  if (provide(store, offset, offset + size)) return offset;\n  umemRange_free(store->range, offset);",
      "  if (provide(store, offset, offset + size)) return offset;", "a block that the file cannot hold stays placed"),
    c("stores/store_room.c", "  if (adjacent) store->reserved = end;", "  store->reserved = end;",
      "what lies before a block counts as reserved"),
    c("stores/store.h", "  store->used = umem_greater(store->used, end);\n", "", "calloc keeps what others have appended"),
    c("stores/mmap.c", "    munmap(start, room + alignment);\n", "", "a failed mapping keeps its addresses"),
    c("stores/store_replace.c", "         keep_mode(replace, fd, old);", "         true;", "a new file loses the permissions of the old", first=("cxx.npy_save",)),

    # ---- cuda ----
    c("cuda/cuda_copy.c", "  if (!error && !umem_can(ctx, umemOrdered)) error = umemCudaState_finish(state);\n", "",
      "umem_set returns before it is done"),
    c("cuda/cuda_copy.c", "return error || !whole ? error : umemCudaState_finish(state);", "return error;",
      "a copy to pageable memory returns before it is done"),
    c("cuda/cuda_state.c", "    if (state->source->give(state, adr, nbytes)) state->gpu->rt->last_error();\n", "", "a block that cannot be remembered is lost"),
    c("cuda/cuda_state.c", "    put_back(state, adr, nbytes); /*", "    ; /*", "a block that could not be freed is forgotten"),
    c("cuda/cuda_direct.c", "    box->depth = extents[last - 1];", "    box->depth = extents[last];", "the wrong extent"),
    c("cuda/cuda_gds_copy.c", "bool captured = umem_can(transfer->ctx, umemOrdered) && umemCudaState_is_captured(state);",
      "bool captured = false;", "registers a file with cuFile for a stream in a capture", first=("unit.gds_refusal",)),
    c("cuda/cuda_async.c", "if (async->owns_stream) error |=", "error |=", "destroys a stream of the program"),

    # ---- pool ----
    c("pool/pool_chunk.c", "size <= umemPoolChunk_allowance(core)", "size < umemPoolChunk_allowance(core)",
      "the maximum cannot be reached"),
    c("pool/growth.c", "  growth->amount -= request->amount;\n", "", "what has come is still expected"),
    c("pool/pool_chunk.c", "  umem_aligned_free(core->upstream, adr);\n", "", "a chunk that cannot be used is lost"),
    c("pool/pool_chunk.c", "  if (umem_wait_apart(list->queue, list->core->upstream) == umemOK) return true;", "  return true;",
      "a queue does not wait for the memory it uses"),
    c("pool/pool_chunk.c", " && !umemPoolQueue_should_follow_upstream(list)", "",
      "a chunk is used before a GPU has done with it"),
    c("pool/growth.c", "growth->serial >= asks_for", "growth->serial == asks_for", "two callbacks wait for each other"),
    c("pool/pool_large.c", "  if (!block->live) return umemValueError;\n", "", "a large block can be freed twice"),
    c("pool/fixed_free_list.c", "if (adr < base || index >= chunk->count) return false;",
      "if (adr < base || index > chunk->count) return false;", "one block too many", preset="asan"),
    c("pool/binning.c", "    umemSizes_put_back(blocks, adr, bin, &none);\n", "    umemSizes_drop(blocks, adr);\n",
      "a block whose free failed is forgotten"),

    # ---- adaptors ----
    c("adaptors/limit.c", "if (more > limit->maximum - used) {", "if (more >= limit->maximum - used) {", "the limit cannot be reached"),
    c("adaptors/meter.c", "    umemAdaptor_failed(ctx, before);\n    retract(ctx, size);\n", "    umemAdaptor_failed(ctx, before);\n",
      "a failed request uses up the limit"),
    c("adaptors/retry.c", "held.type != umemMemoryError;", "held.type == umemOK;", "asks for help when it is no matter of memory"),
    c("adaptors/stats.c", "  if (*peak < current) *peak = current;", "  *peak = current;", "the peak falls"),
    c("adaptors/stats.c", "  umemLock_release(&stats->lock);\n  if (!scope->outer)", "  if (!scope->outer)", "a lock is not released"),

    # ---- adaptors/debug ----
    c("adaptors/debug/debug_bytes.c", "!memcmp(bytes, bytes + 1, n - 1)", "!memcmp(bytes, bytes + 1, n / 2)", "half of a guard is not looked at"),
    c("adaptors/debug/debug_table.c", "  if (is_freed(record)) return umemDebugDoubleFree;\n", "", "a double free is no finding"),
    c("adaptors/debug/debug.c", "  if (!is_sound(ctx, &block) || !put_away(ctx, &block, false))\n    umemDebugTable_revive(table_of(ctx), &block);",
      "  if (is_sound(ctx, &block)) put_away(ctx, &block, false);", "a block whose free was refused cannot be freed"),
    c("adaptors/debug/debug.c", "    if (strides[k] < 0)\n      low += reach;", "    if (strides[k] > 0)\n      low += reach;",
      "the wrong end of a layout"),

    # ---- adaptors/log ----
    c("adaptors/log/log.c", "  partner = copy->partner;\n", "", "the thread's next copy is not in the log"),
    c("adaptors/log/log_record.c", "&file->ring[(record->number - 1) & file->mask]", "&file->ring[record->number & file->mask]",
      "amends the next record"),
    c("base/new_file.c", "file->name, RENAME_NOREPLACE) == 0", "file->name, 0) == 0", "a new file replaces another"),

    # ---- open ----
    c("open/open.c", "  for (size_t i = 0; i < name->count; i++) {\n    umemScheme const *scheme = name->layers[i].scheme;\n    if (!scheme->commit)",
      "  for (size_t i = name->count; i-- > 0;) {\n    umemScheme const *scheme = name->layers[i].scheme;\n    if (!scheme->commit)",
      "the file is emptied before the last thing that can fail"),
    c("open/open.c", "  if (opened) *link = opened->next;\n", "", "a context can be closed twice"),
    c("open/name_value.c", "  if (*text || *bytes > SIZE_MAX >> shift) return false;", "  if (*text) return false;", "a size overflows"),
    c("open/registry.c", "length <= longest_name", "length < longest_name", "the longest name is refused"),
    c("open/default.c", "  if (first) umemOpened_finish(first, report_end);\n", "", "a default does not end with the process"),

    # ---- blocks ----
    c("blocks/blocks_pump.c", "pump->reads.done > writes->done + pump->slots.plan.ahead", "pump->reads.done > writes->done",
      "old values of ghost rows are written over"),
    c("blocks/blocks_pump.c", "pump->stopping || pump->cancelled || reads->failed", "pump->stopping || reads->failed",
      "reads on after a cancellation"),
    c("blocks/blocks_pump.c", "  return pump->writes.failed || pump->writes.done == pump->back;", "  return pump->writes.failed || !pump->writes.running;",
      "the end does not wait until all is written"),
    c("blocks/blocks_slots.c", "return queue == place || umem_wait(queue, place) == umemOK;", "return queue == place || true;",
      "a block is written before the work on it is done"),
    c("blocks/blocks_slots.c", "  if (one->capabilities & queued) umem_synchronize(one);\n", "", "a block comes before it is read"),
    c("blocks/blocks_slots.c", "umem_wait(place, slots->queues[i]);\n  umemAttempt_end", "break;\n  umemAttempt_end", "memory is freed while a queue uses it"),
    c("blocks/blocks_plan.c", "  if (plan->ahead >= depth) return false;\n", "", "waits for ever for blocks that have no room"),
    c("blocks/blocks_plan.c", "low->nbytes <= offset && high->nbytes <= stride - offset", "low->nbytes <= offset",
      "rows that reach into those of the source"),
    c("blocks/blocks_plan.c", "range.missing_after = given->after - range.after;", "range.missing_after = 0;",
      "the last rows have no ghosts"),
    c("blocks/blocks.c", "missed && !umemPump_is_cancelled(pump))", "missed)", "a cancelled read is a failure, too"),
    c("blocks/blocks.c", "  if (asked && missed", "  if ((asked || true) && missed", "what nobody has asked for is a failure"),
    cxx("block.hpp", "std::max<index>(range.begin.at[0] - first(), 0)", "range.begin.at[0]", "each block has an edge", ["blocks"]),

    # ---- array ----
    c("array/array_range.c", "offset % axes->shape[j] * axes->strides[j]", "offset * axes->strides[j]",
      "a box begins elsewhere"),
    c("array/array_range.c", "while (k > 0 && offset % (inner * axes->shape[k]) == 0 && ", "while (k > 0 && ",
      "a box begins in the middle of a row"),
    c("array/array_range.c", "axes->strides[last] == extent * stride", "axes->strides[last] >= extent * stride",
      "dimensions with a gap are joined"),
    c("array/array_contents.c", "umem_finish(from.ctx) != umemOK || umem_thread", "umem_thread",
      "a buffer is read before it is filled"),
    c("array/array_contents.c", "umem_wait(self, src->ctx) == umemOK && umem_wait(self, dst->ctx) == umemOK", "umem_wait(self, dst->ctx) == umemOK",
      "a queue does not wait for the source"),
    c("array/array_contents.c", "  umem_finish(ctx);\n  umem_free(buffer", "  (void)ctx;\n  umem_free(buffer",
      "a buffer is freed before it is read"),
    c("array/array_contents.c", "from->offset == to->offset && same_axes", "same_axes",
      "boxes of other shapes"),
    c("array/array_handle.c", "  view->owner = umemArray_retain(array->owner);", "  view->owner = array->owner;",
      "a view does not keep its owner"),
    c("array/array_handle.c", "  view->read_only = view->for_good = umem_array_read_only(array);\n", "",
      "a view of what is read-only is written"),
    c("array/array.c", "form.low >= 0 || adr >= (uintptr_t)-form.low", "true",
      "elements below address 0"),
    c("array/array_view.c", "    if (covered != shape[j]) return false;\n", "",
      "any shape is a view"),
    c("array/array_view.c", "!check_index(first, form.shape[dim], dim) || !check_index(last", "!check_index(last",
      "a slice begins outside"),
    c("array/array_query.c", "if (extent > 1 && umem", "if (umem",
      "one element has a stride"),
    c("array/array_dlpack.c", "  free(tensor);\n  umemArray_release(array);", "  free(tensor);\n  (void)array;",
      "the deleter keeps the array"),
    c("array/array_dlpack.c", "? umemArray_retain(array) : refuse", "? array : refuse",
      "a tensor does not keep the array"),
    c("array/array_dlpack.c", "if (options->stream == 0)", "if (options->stream == 7)",
      "stream 0 is taken for the legacy one"),
    c("array/array_dlpack.c", "  layer->vptr->lead_stream(layer, (uintptr_t)stream);\n", "",
      "the consumer's stream does not wait"),
    c("array/array_dlpack.c", "umem_array_strides(array)[k] / (int64_t)array->item_size", "umem_array_strides(array)[k]",
      "strides are exported in bytes"),
    c("array/array_dlpack_import.c", "if (array && read_only) array", "if (array && !read_only) array",
      "a read-only tensor is written"),
    c("array/array_dlpack_import.c", "tensor->version.major != UMEM_DLPACK_MAJOR", "false",
      "a tensor of an unknown version is read"),

    # ---- the C++ headers ----
    cxx("view.hpp", "all.at[k] += 2 * ghosts.at[k];", "all.at[k] += ghosts.at[k];", "ghost cells on one side", ["view", "array"]),
    cxx("view.hpp", "(end - begin) / step + ((end - begin) % step != 0);", "(end - begin) / step;", "the last element of a slice", ["view", "view_parts"]),
    cxx("array.hpp", "    if (*this) this->mirror().check_free(this->key_);\n", "", "assigns to a locked array", ["array_assign", "array_lock"]),
    cxx("array_mirror.hpp", "    if (writes) overwrite(side);\n", "", "the other side stays current", ["array_guard", "array"]),
    cxx("array_mirror.hpp", "      src.wait_for(from.side, *to.context);\n", "", "the source may be written to early", ["array_assign", "array"]),
    cxx("npy.hpp", "  file.commit();\n", "", "a saved file never gets its name", ["npy_save", "npy"]),
    cxx("for_each.hpp", "range.begin.at[k] < -most - 1 || ", "", "indices that are too small", ["kernels_indices"]),

    # ---- what only a sanitizer or valgrind sees ----
    c("core/stage.c", "  umem_free(host, (uintptr_t)buffers);\n", "", "a leak", preset="asan"),
    c("core/items.c", "  free(buffer);\n  return true;", "  return true;", "a leak", preset="asan"),
    c("base/index.c", "slots->available += capacity - slots->capacity;", "slots->available += capacity;", "writes behind an array", preset="asan"),
    c("adaptors/stats.c", "  umemLock_acquire(&stats->lock);\n  umem_write_sized(figures, &stats->life.figures, sizeof stats->life.figures);\n  umemLock_release(&stats->lock);",
      "  umem_write_sized(figures, &stats->life.figures, sizeof stats->life.figures);", "reads without the lock", preset="tsan"),
    c("cuda/cuda_state.c", "  umemLock_acquire(&state->lock);\n  bool kept = umemTable_insert(&state->blocks, adr, nbytes);\n  umemLock_release(&state->lock);",
      "  bool kept = umemTable_insert(&state->blocks, adr, nbytes);", "enters a block without the lock", preset="tsan"),
    c("core/stage.c", "  if (umem_can(side->ctx, umemOrdered)) pthread_mutex_lock(&side->turn);", "  (void)side;",
      "unlocks what it has not locked", preset="tsan"),
]
