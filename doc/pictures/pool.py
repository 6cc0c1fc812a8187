"""Chunks, spans, blocks and caches of a pool."""
TITLE = ("A pool has chunks from the context below. Chunks hold ranges for large blocks and spans, which are cut into "
         "small blocks of one size. Each thread has a cache of freed small blocks.")
HEIGHT = 350


def draw(p):
    p.box(20, 20, 290, 60, "cache of thread 1\nfreed small blocks, no lock", "umem")
    p.box(330, 20, 290, 60, "cache of thread 2\nfreed small blocks, no lock", "umem")
    for x in (165, 475):
        p.arrow((x, 80), (x, 130), both=True)
    p.text(320, 110, "batches of up to 32 blocks", "note")

    p.text(20, 125, "chunk 1", "note", "start")
    p.box(20, 130, 600, 80, "", "free")
    p.box(28, 138, 180, 64, "", "plain")
    for n in range(9):
        p.box(33 + 19 * n, 168, 16, 26, "", "host" if n in (0, 1, 3, 4, 7) else "free")
    p.text(118, 158, "span: blocks of 96 B", "")
    p.box(216, 138, 130, 64, "", "plain")
    for n in range(3):
        p.box(222 + 41 * n, 168, 36, 26, "", "host" if n != 1 else "free")
    p.text(281, 158, "span: 4 KiB", "")
    p.box(354, 138, 150, 64, "large block\n3 MiB", "host")
    p.text(560, 175, "free range", "note")

    p.text(20, 235, "chunk 2", "note", "start")
    p.box(20, 240, 600, 40, "", "free")
    p.box(28, 246, 330, 28, "large block, 12 MiB", "host")
    p.text(490, 265, "free range", "note")

    p.arrow((320, 280), (320, 305))
    p.box(20, 305, 600, 36, "context below: Cuda, Host, File, ...  (chunks, or pages where it can map them)", "gpu")
