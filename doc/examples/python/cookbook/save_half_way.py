"""Saves the state of a long run now and then, and goes on from there after an interruption."""
from pathlib import Path

import umem


def run(until):
    """Steps up to a number; the file has the state of the last step that was saved."""
    if Path("state.npy").exists():
        state = umem.load("state.npy", umem.Host())
    else:
        state = umem.zeros(1001, "float64")
    for step in range(int(state[0].item()), until):
        with state.host() as x:
            x[0] = step + 1
            x[1:] += 0.5
        if (step + 1) % 10 == 0:
            umem.save("state.npy", state)  # whatever interrupts this, the old state stays complete
    return state


run(until=25)  # as if the program were killed here: steps 21 to 25 are lost
print("saved at step", int(umem.load("state.npy")[0].item()))
print("the result is", run(until=40)[1000].item())
