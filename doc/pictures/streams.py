"""Queued work of two streams, and a wait between them."""
TITLE = ("Calls on two streams return at once and their work is done later, in the order of each stream. umem_wait lets "
         "the second stream start only after the work of the first. umem_synchronize blocks the program.")
HEIGHT = 290


def draw(p):
    rows = [(60, "program"), (140, "stream a"), (220, "stream b")]
    for y, words in rows:
        p.text(10, y + 5, words, "", "start")
        p.line((90, y), (620, y), kind="faint")
    calls = [(95, 58, "copy a"), (158, 68, "kernel a"), (231, 90, "wait(b, a)"), (326, 58, "copy b"),
             (389, 221, "synchronize(b): waits")]
    for x, width, words in calls:
        p.box(x, 42, width, 36, words, "none" if width > 100 else "plain", "code")
    p.box(125, 122, 110, 36, "copy", "gpu")
    p.box(239, 122, 150, 36, "kernel", "gpu")
    p.box(405, 202, 200, 36, "copy", "gpu")
    p.arrow((389, 158), (405, 202))
    p.arrow((605, 202), (608, 80))
    p.text(320, 200, "b waits on the GPU", "note")
    p.text(320, 272, "Calls queue work and return. The order between streams is set by umem_wait and by copies.", "note")
    p.arrow((90, 16), (620, 16))
    p.text(100, 11, "time", "note", "start")
