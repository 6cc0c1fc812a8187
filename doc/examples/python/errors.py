"""Failures as exceptions."""
import umem

# [errors]
with umem.Limit(umem.Host(), "1M") as place:
    try:
        umem.empty(1_000_000, place=place)
    except MemoryError as error:  # also a umem.Error
        print(type(error).__name__, error.status, error, sep=" | ")

try:
    umem.File("missing.bin", "r")
except OSError as error:
    print(type(error).__name__, error.errno, error.filename, sep=" | ")

array = umem.zeros(3, place=umem.File())
try:
    array.numpy()
except umem.NotSupportedError as error:
    print(error)
print(array.numpy(copy=True))
# [/errors]

# [hook]
seen = []
umem.set_failure_hook(lambda status, message, kind: seen.append((status, kind)))
try:
    umem.empty(100, place=umem.Limit(umem.Host(), 10))
except umem.MemoryError:
    print(seen)
umem.set_failure_hook(None)
# [/hook]
