"""The configuration of a program says where its arrays are: in RAM, in a file, on a GPU."""
import umem


def simulate(steps):
    field = umem.zeros((4, 4))  # no place: where the configuration says
    for _ in range(steps):
        with field.host() as x:
            x += 1
    return field


for config in {"place": "host:"}, {"place": "pool+host:?max=1M"}, {"place": "file:field.bin?mode=w+"}:
    with umem.using(config["place"]):
        field = simulate(3)
    print(field.place.stack, field[0, 0].item())
