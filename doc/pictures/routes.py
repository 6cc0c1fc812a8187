"""The routes of the router."""
TITLE = ("The router asks in turn: does one of the contexts have a route of its own; can the CPU use the addresses of "
         "one side; otherwise the bytes go through a buffer")
HEIGHT = 330


def step(p, y, number, question, answer, kind, note):
    p.box(20, y, 290, 50, f"{number}. {question}")
    p.arrow((310, y + 25), (360, y + 25))
    p.text(334, y + 18, "yes", "note")
    p.box(360, y, 260, 50, f"{answer}\n{note}", kind)


def draw(p):
    p.box(110, 10, 420, 34, "umem_copy_to(source, from, destination, to, nbytes)", "none")
    p.arrow((165, 44), (165, 70))
    step(p, 70, 1, "Does one side have\na route of its own?", "direct", "gpu", "GPU to GPU, to pinned RAM, to a file")
    p.arrow((165, 120), (165, 150))
    step(p, 150, 2, "Are the addresses of one\nside pointers for the CPU?", "by pointer", "host", "RAM to RAM, RAM to file")
    p.arrow((165, 200), (165, 230))
    p.text(180, 140, "no", "note", "start")
    p.text(180, 220, "no", "note", "start")
    step(p, 230, 3, "Neither.", "staged", "file", "in chunks through a buffer in RAM")
    p.text(320, 310, "The router takes the first route that works. The bytes are the same on every route.", "note")
