"""Reading, computing and writing of blocks at the same time."""
TITLE = ("While the program works on block 2, umem already reads block 3 and writes block 1: the loop takes as long as "
         "the slowest of the three")
HEIGHT = 250


def draw(p):
    rows = [(50, "read", "file", 0), (110, "your loop", "host", 1), (170, "write", "umem", 2)]
    for y, words, kind, late in rows:
        p.text(10, y + 23, words, "", "start")
        for block in range(4):
            x = 100 + 88 * (block + late)
            p.box(x, y, 82, 36, f"block {block + 1}", kind)
    p.arrow((100, 30), (620, 30))
    p.text(105, 22, "time", "note", "start")
    p.text(320, 235, "In the budget at any time: the block in work, those read ahead, those not yet written.", "note")
