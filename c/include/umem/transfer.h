/* umem/transfer.h - copies that go on while the program does other work.
 *
 *     umemTransfer *transfer;
 *     umem_start(&file, 0, &gpu, adr, nbytes, NULL, &transfer);   // returns at once
 *     ...                                                         // work on other arrays
 *     umemStatusType status = umemTransfer_wait(transfer);        // now the bytes are there
 *     umemTransfer_release(transfer);
 *
 * umem_start checks the copy as umem_copy_to does, and refuses it with the same failures. Then it
 * returns a handle, and threads of umem copy. Any number of transfers may go on at the same time,
 * between any contexts.
 *
 *   order      Transfers are not ordered among each other. A transfer copies from the first byte
 *              (the first item in C order) on, so that the first bytes are there if it is
 *              cancelled or fails; a list in an order that umem chooses. Source and destination may
 *              overlap.
 *   memory     Until a transfer has ended, both blocks must live, and no one may write to the
 *              source, or use the destination. umem_dtor of a context of the transfer, and
 *              umem_free, umem_aligned_free and umem_realloc of a block of it, wait for it first:
 *              in the order of a queue if the block and the copy are in this queue. Of a context
 *              that knows no lengths of blocks (see umem_find; RAM knows them) they wait for those
 *              with the first byte of the block. To end memory by other means ends no transfer.
 *   at once    A copy of less than 32 KiB between pointers of the CPU is done when umem_start
 *              returns. So is every copy after umem_set_threads(1), and where the system cannot
 *              start a thread, and every copy of a context that is not umemConcurrent. The
 *              failure of such a copy is that of umem_start.
 *   streams    If a context is umemOrdered, umem_start queues the copy on it, behind the earlier
 *              work and before what is queued later, and the transfer ends when the queue has done
 *              it. If such a context can only copy while the host waits (from a file, from memory
 *              that is not pinned), umem_start waits, too. To read a file into memory of a GPU
 *              while kernels run, copy to a umemCuda, and run the kernels on a stream of their own.
 *              umem_start refuses contexts whose stream is being captured into a graph.
 *   threads    At most four threads, and one fewer than umem_set_threads allows (see threads.h),
 *              serve all transfers, and several threads share each long copy. Long transfers are
 *              done piece by piece and take turns: one thread does pieces of about a millisecond
 *              only, and those of less than 1 MiB go first. umemTransfer_wait copies itself what no
 *              thread has begun; but it leaves what can join a sequence to one GPU (see below) to
 *              the threads for a millisecond, and while such a sequence runs, until that ends it.
 *              Buffers are those of the plain copies, for at most four copies at a time, and one
 *              of each thread that waits. Transfers that pass through pinned buffers
 *              (umemCuda_set_staging) share these, and the threads that fill them. To one GPU,
 *              those of at least 2 MiB are one sequence of pieces, in the order of their starts:
 *              the next one begins while the last pieces of the one before are copied.
 *   failures   A failure of the copy is recorded when umemTransfer_wait returns it: on the context
 *              that has failed, if it still lives, on the thread that waits, and by a call of the
 *              failure hook. If no call has returned it, umemTransfer_release does.
 *   fork       The transfers of the parent do not go on in the child. There those that had not
 *              ended fail with umemRuntimeError, and umemTransfer_release frees the handle only.
 *              New transfers of the child have threads of the child; after umem_set_threads(1), in
 *              the parent or the child, umem_start does them.
 *   exit       exit cancels all transfers, and waits for the pieces that threads have begun.
 *
 * All functions may be called from any thread, several at a time; but after umemTransfer_release
 * has begun, no other function may use the handle. */
#ifndef UMEM_TRANSFER_H
#define UMEM_TRANSFER_H

#include <umem/context.h>
#include <umem/copy.h>

/* A copy that goes on. */
typedef struct umemTransfer umemTransfer;

/* Starts to copy nbytes from src_adr in src to dst_adr in dst. Sets *transfer to the handle, for
 * umemTransfer_release, or to NULL after a failure. options.route (borrowed until the transfer has
 * ended) is written before the transfer ends; options.progress must be NULL.
 *
 * Errors: those of umem_copy_to; umemMemoryError without memory for a handle;
 * umemNotSupportedError if the stream of a context is being captured. */
UMEM_EXTERN umemStatusType umem_start(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                                      size_t nbytes, umemCopyOptions const *options,
                                      umemTransfer **transfer);

/* Starts to copy the items of layout, as umem_copy_strided does. umem copies the layout: it need
 * not live on. Errors: those of umem_copy_strided, and of umem_start. */
UMEM_EXTERN umemStatusType umem_start_strided(void *src, uintptr_t src_adr, void *dst,
                                              uintptr_t dst_adr, umemLayout const *layout,
                                              umemCopyOptions const *options,
                                              umemTransfer **transfer);

/* Starts to copy count items, as umem_copy_many does: one transfer for all of them. umem copies the
 * list: it need not live on. options.done, failed and route (borrowed until the transfer has ended)
 * say what umem_copy_many writes there: read them when the transfer has ended. options.progress
 * must be NULL. A transfer that is cancelled, or fails, leaves the rest of the list: the bits of
 * done say which items are copied, and the message of a failure names the item.
 *
 * Each item is queued if one of its contexts is umemOrdered, and copied at once if one is not
 * umemConcurrent: the failure of such an item is that of umem_start_many, and then no other is
 * copied. The transfer ends when all queues have done theirs, too.
 *
 * Errors: those of umem_copy_many, and of umem_start. A transfer takes some 150 bytes for each
 * item. */
UMEM_EXTERN umemStatusType umem_start_many(umemCopyItem const *items, size_t count,
                                           umemCopyManyOptions const *options,
                                           umemTransfer **transfer);

/* Returns when the transfer has ended: umemOK if all bytes are there, otherwise the failure, which
 * it records. umemCancelledError if it was cancelled before its last byte. Further calls return,
 * and record, the same. umemValueError for NULL. */
UMEM_EXTERN umemStatusType umemTransfer_wait(umemTransfer *transfer);

/* Waits for at most nanoseconds, about. If no thread of umem has been free for the transfer
 * until then, the calling thread copies a piece. Returns whether the transfer has ended, also if it
 * has failed. Records nothing; umemTransfer_wait then returns at once. True for NULL. */
UMEM_EXTERN bool umemTransfer_wait_for(umemTransfer *transfer, uint64_t nanoseconds);

/* Returns whether the transfer has ended, also if it has failed. Does not wait. Records nothing.
 * True for NULL. */
UMEM_EXTERN bool umemTransfer_poll(umemTransfer *transfer);

/* Cancels the transfer, and does not wait for its end. One that no thread has begun ends at once,
 * one that goes on after the pieces that its threads have begun. Work that is queued on a stream
 * goes on. umemTransfer_progress then says how many bytes are done; of a long transfer some behind
 * them may be in the destination, too. umemTransfer_wait then records umemCancelledError on the
 * destination, or on a source whose read was cut off, such as one that waited for a server; where
 * no call waits, nothing is recorded. Does nothing after the end, and for NULL. */
UMEM_EXTERN void umemTransfer_cancel(umemTransfer *transfer);

/* Sets *done to the bytes that are in the destination, and *total to all that are to be copied.
 * They are the first ones: of a strided copy the first items, in C order; of a list any. Either may
 * be NULL.
 * Returns umemOK, or umemValueError if transfer is NULL. */
UMEM_EXTERN umemStatusType umemTransfer_progress(umemTransfer *transfer, uint64_t *done,
                                                 uint64_t *total);

/* Returns a descriptor (an eventfd) that poll, select and epoll show as readable when the transfer
 * has ended. Each call returns the same one. It is the transfer's: umemTransfer_release closes it.
 * Do not read from it. Returns -1 after a failure: umemValueError for NULL, umemRuntimeError if
 * the system has no descriptor, or in a child of fork. */
UMEM_EXTERN int umemTransfer_descriptor(umemTransfer *transfer);

/* Ends the handle. Waits until the transfer has ended; to stop it earlier, cancel it before.
 * Returns umemOK, or the failure of the transfer if no call of umemTransfer_wait has returned it,
 * and records that. A cancellation is no such failure. NULL is ignored. */
UMEM_EXTERN umemStatusType umemTransfer_release(umemTransfer *transfer);

#endif
