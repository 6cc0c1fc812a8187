"""A configuration file names where an array is kept; the program is the same for each."""
import configparser

import umem


def storage_in(path):
    """The text behind "storage = " in the file."""
    config = configparser.ConfigParser()
    config.read(path)
    return config.get("arrays", "storage", fallback="host:")


for choice in ("host:", "mmap:field.bin?mode=w+", "limit+host:?limit=1K"):
    with open("program.conf", "w", encoding="utf-8") as file:
        file.write(f"[arrays]\nstorage = {choice}\n")
    try:
        field = umem.full(1000, 0.5, "float64", umem.open(storage_in("program.conf")))
        with field.host("r") as x:
            print(f"{choice}: {x.sum():g}")
    except umem.MemoryError as error:
        print(error)
