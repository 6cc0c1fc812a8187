"""Lists the places of a program, with what each of them holds, and asks whose array one is."""
import umem

ram = umem.Host()
fields, particles = umem.Track(ram), umem.Track(ram)  # each keeps the records of a part of the program
fields.label = "fields"
particles.label = "particles"

velocity = umem.zeros(3_000_000, "uint8", fields)
pressure = umem.zeros(1_000_000, "uint8", fields)
positions = umem.zeros(240_000, "uint8", particles)

print(umem.describe_places())  # those that hold most come first
found = umem.find(pressure.address + 999)
if found:
    print(f'the address is in a block of "{found.label}"')
