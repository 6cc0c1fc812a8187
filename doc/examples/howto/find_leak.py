"""Arrays that nobody has released, and where they are."""
import umem

ram = umem.Host()
tracked = umem.Track(ram)  # the rest of the program uses tracked, not ram

cache = []


def load():
    table = umem.zeros(125, "float64", tracked)
    tracked.set_block_label(table.address, "table of load()")
    cache.append(table)  # this keeps it alive


load()
umem.zeros(3, "float64", tracked)  # ends at once: nothing refers to it

for block in tracked.blocks:
    found = umem.find(block["address"], tracked)
    print(f'block {block["number"]}: {block["nbytes"]} bytes of {found.block_label}')
