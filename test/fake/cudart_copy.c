/* cudart_copy.c - the CUDA double: copies and sets.
 *
 * When a call returns before its work is done follows "API synchronization behavior" of the
 * runtime's manual. */
#include "cudart_state.h"

#include <string.h>

enum { longest_pitch = 2147483647 };

/* ---- what is to be copied ---- */

typedef struct Copy {
  Side to, from;
  umemCudaBox box; /* no height: nothing */
} Copy;

/* The bytes from the first to the last of one side; 0 where that is no size. */
static size_t extent_of(umemCudaBox const *box, size_t pitch, size_t rows) {
  size_t count, plane, nbytes;
  if (__builtin_mul_overflow(box->depth - 1, rows, &plane)) return 0;
  if (__builtin_add_overflow(plane, box->height - 1, &count)) return 0;
  if (__builtin_mul_overflow(count, pitch, &nbytes)) return 0;
  return __builtin_add_overflow(nbytes, box->width, &nbytes) ? 0 : nbytes;
}

static int error_of_pitches(umemCudaBox const *box) {
  if (box->width > box->dst_pitch || box->width > box->src_pitch) return cudartInvalidPitch;
  if (box->dst_pitch > longest_pitch || box->src_pitch > longest_pitch) return cudartInvalidPitch;
  bool overlap = box->height > box->dst_rows || box->height > box->src_rows;
  return box->depth > 1 && overlap ? umemCudaInvalidValue : umemCudaSuccess;
}

static bool may_be_device(Side const *side) {
  return side->kind == umemCudaDeviceMemory || side->kind == umemCudaManagedMemory;
}

static bool may_be_host(Side const *side) { return side->kind != umemCudaDeviceMemory; }

static int error_of_kind(Copy const *copy, umemCudaDirection kind) {
  bool right = false;
  if (kind == umemCudaToDevice) right = may_be_device(&copy->to) && may_be_host(&copy->from);
  if (kind == umemCudaToHost) right = may_be_host(&copy->to) && may_be_device(&copy->from);
  if (kind == umemCudaWithinDevice) right = may_be_device(&copy->to) && may_be_device(&copy->from);
  if (kind == umemCudaAnyDirection) right = true;
  if (!right) cudart_misuse("the addresses are not of kind %d", (int)kind);
  return right ? umemCudaSuccess : umemCudaInvalidValue;
}

static int copy_make(Copy *copy, umemCudaBox const *box, umemCudaDirection kind) {
  *copy = (Copy){.box = *box};
  if (!box->width || !box->height || !box->depth) {
    copy->box.height = 0;
    return umemCudaSuccess;
  }
  size_t to = extent_of(box, box->dst_pitch, box->dst_rows);
  size_t from = extent_of(box, box->src_pitch, box->src_rows);
  int error = to && from ? umemCudaSuccess : umemCudaInvalidValue;
  if (!error) error = cudart_side(&copy->to, box->dst, to);
  if (!error) error = cudart_side(&copy->from, box->src, from);
  if (!error) error = error_of_kind(copy, kind);
  return error;
}

static umemCudaBox box_of(void *dst, void const *src, size_t nbytes) {
  return (umemCudaBox){.dst = dst,
                       .dst_pitch = nbytes,
                       .dst_rows = 1,
                       .src = src,
                       .src_pitch = nbytes,
                       .src_rows = 1,
                       .width = nbytes,
                       .height = 1,
                       .depth = 1};
}

/* ---- records ---- */

static bool reaches(int device, Side const *side) {
  Block const *block = cudart_block_at(side->adr);
  unsigned peers = cudart_state.device[device].peers;
  if (block && block->range) return cudart_range_allows(block, side->adr, side->nbytes, device);
  if (block && block->pool) return block->pool->allowed & 1U << device;
  return peers & 1U << side->device;
}

static void note(Copy const *copy) {
  Side const *to = &copy->to, *from = &copy->from;
  FakeCudartDone *done = &cudart_state.done;
  if (to->kind == umemCudaUnregistered || from->kind == umemCudaUnregistered) done->pageable++;
  if (to->device < 0 || from->device < 0 || to->device == from->device) return;
  if (reaches(from->device, to) || reaches(to->device, from))
    done->direct_peer++;
  else
    done->indirect_peer++;
}

/* ---- queueing ---- */

/* Reads a pageable source now, into a box without gaps. */
static int stage(Work *work) {
  umemCudaBox *box = &work->box;
  work->staged = malloc(box->width * box->height * box->depth);
  if (!work->staged) return umemCudaOutOfMemory;
  unsigned char const *from = (unsigned char const *)work->from.adr;
  for (size_t z = 0; z < box->depth; z++)
    for (size_t y = 0; y < box->height; y++)
      memcpy(work->staged + (z * box->height + y) * box->width,
             from + (z * box->src_rows + y) * box->src_pitch, box->width);
  box->src_pitch = box->width;
  box->src_rows = box->height;
  return umemCudaSuccess;
}

/* Whether the call returns only when the copy is done. */
static bool is_blocking(Copy const *copy, bool async) {
  bool to_host = copy->to.device < 0, from_host = copy->from.device < 0;
  bool late = cudart_state.machine.late_pageable;
  if (to_host && from_host) return true;
  if (!async) return to_host || (from_host && !(late && copy->from.kind == umemCudaUnregistered));
  return to_host && copy->to.kind == umemCudaUnregistered && !late;
}

static int copy_queue(Copy const *copy, Stream *stream, bool async) {
  if (!copy->box.height) return umemCudaSuccess;
  Work work = {.kind = workCopy, .to = copy->to, .from = copy->from, .box = copy->box};
  bool blocking = !stream->capture && is_blocking(copy, async);
  bool early = copy->from.kind == umemCudaUnregistered && !blocking && !stream->capture;
  int error = early ? stage(&work) : umemCudaSuccess;
  if (!error) error = cudart_push(stream, &work);
  if (error) return error;
  note(copy);
  if (blocking) cudart_demand(stream, stream->queued);
  return umemCudaSuccess;
}

static int copy_late(umemCudaBox const *box, umemCudaDirection kind, void *stream) {
  int error = umemCudaSuccess;
  Copy copy;
  Stream *on = cudart_stream(stream, &error);
  if (on) error = copy_make(&copy, box, kind);
  if (on && !error) error = copy_queue(&copy, on, true);
  return error;
}

static int peer_copy_late(umemCudaBox const *box, int dst_device, int src_device, void *stream) {
  int error = umemCudaSuccess;
  Copy copy;
  Stream *on = cudart_stream(stream, &error);
  if (on) error = copy_make(&copy, box, umemCudaAnyDirection);
  if (on && !error && copy.box.height &&
      (copy.to.device != dst_device || copy.from.device != src_device)) {
    cudart_misuse("memory of devices %d and %d is said to be of %d and %d", copy.to.device,
                  copy.from.device, dst_device, src_device);
    error = umemCudaInvalidValue;
  }
  if (on && !error) error = copy_queue(&copy, on, true);
  return error;
}

/* ---- the calls ---- */

int cudart_memcpy(void *dst, void const *src, size_t nbytes, umemCudaDirection kind) {
  int error = umemCudaSuccess;
  umemCudaBox box = box_of(dst, src, nbytes);
  Copy copy;
  Stream *on = cudart_stream(NULL, &error);
  if (on) error = copy_make(&copy, &box, kind);
  return error ? error : copy_queue(&copy, on, false);
}

int cudart_memcpy_async(void *dst, void const *src, size_t nbytes, umemCudaDirection kind,
                        void *stream) {
  umemCudaBox box = box_of(dst, src, nbytes);
  return copy_late(&box, kind, stream);
}

int cudart_memcpy_peer_async(void *dst, int dst_device, void const *src, int src_device,
                             size_t nbytes, void *stream) {
  umemCudaBox box = box_of(dst, src, nbytes);
  return peer_copy_late(&box, dst_device, src_device, stream);
}

int cudart_memcpy_box_async(umemCudaBox const *box, umemCudaDirection kind, void *stream) {
  int error = error_of_pitches(box);
  return error ? error : copy_late(box, kind, stream);
}

int cudart_memcpy_box_peer_async(umemCudaBox const *box, int dst_device, int src_device,
                                 void *stream) {
  int error = error_of_pitches(box);
  return error ? error : peer_copy_late(box, dst_device, src_device, stream);
}

int cudart_memcpy_batch_async(void *const *dst, void const *const *src, size_t const *nbytes,
                              size_t count, void *stream) {
  int error = umemCudaSuccess;
  Stream *on = cudart_stream(stream, &error);
  if (!stream || (on && on->capture)) {
    cudart_misuse("copies together on the legacy stream or in a capture");
    return umemCudaInvalidValue;
  }
  for (size_t i = 0; i < count && !error; i++)
    error = cudart_memcpy_async(dst[i], src[i], nbytes[i], umemCudaAnyDirection, stream);
  return error;
}

int cudart_memset_async(void *adr, int c, size_t nbytes, void *stream) {
  int error = umemCudaSuccess;
  Stream *on = cudart_stream(stream, &error);
  Work work = {.kind = workSet, .value = c};
  if (!on || !nbytes) return error;
  error = cudart_side(&work.to, adr, nbytes);
  if (error || work.to.kind != umemCudaUnregistered) return error ? error : cudart_push(on, &work);
  cudart_misuse("a set of pageable memory");
  return umemCudaInvalidValue;
}
