"""The window of a communicator, and the blocks that ranks have in each other's parts."""
TITLE = "Three ranks, each with a part of the window and records of it; rank 0 allocates in the part of rank 2"
HEIGHT = 330


def draw(p):
    for rank in range(3):
        x = 20 + 210 * rank
        p.box(x, 20, 180, 40, f"rank {rank}: the program", "none")
        p.box(x, 130, 180, 60, "", "host")
        p.text(x + 90, 124, f"part of rank {rank}: umemMpi(comm, {rank})", "note")
        p.box(x, 240, 180, 30, "", "plain")
        p.text(x + 90, 234, "records: two bits for each unit", "note")
    for x, width, words in ((30, 50, "block"), (250, 70, "chunk of\na pool"), (480, 50, "block")):
        p.box(x, 140, width, 40, words, "umem")
    for x, width in ((30, 16), (250, 24), (480, 16)):
        p.box(x, 245, width, 20, "", "umem")
    p.arrow((110, 60), (110, 90), (470, 90), (505, 140))
    p.text(330, 84, "MPI_Put, MPI_Get: umem_copy_to", "note")
    p.arrow((60, 60), (60, 300), (488, 300), (488, 265))
    p.text(280, 318, "MPI_Compare_and_swap: umem_alloc, umem_free", "note")
