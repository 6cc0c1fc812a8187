"""Contexts and adaptors as a stack."""
TITLE = "Three stacks: a context alone; a pool over a GPU; a log over a limit over a pool over RAM"
HEIGHT = 340


def draw(p):
    p.box(20, 20, 600, 40, "your program:  umem_alloc(context, ...)   umem_copy_to(...)   umem_free(...)", "none")
    stacks = [(20, [("File", "file", "bytes on a disk")]),
              (230, [("Pool", "umem", "cuts chunks into blocks"), ("Cuda", "gpu", "device memory")]),
              (440, [("Log", "umem", "writes each call to a file"), ("Limit", "umem", "bounds the bytes"),
                     ("Pool", "umem", "cuts chunks into blocks"), ("Host", "host", "RAM")])]
    for x, layers in stacks:
        top = 300 - 50 * len(layers)
        p.arrow((x + 90, 60), (x + 90, top))
        for number, (name, kind, does) in enumerate(layers):
            y = top + 50 * number
            p.box(x, y, 180, 44, f"{name}\n{does}", kind)
    p.text(320, 328, "Each layer is a context. It serves the layer above and asks the one below.", "note")
