"""The two sides of an array, and what guards copy."""
TITLE = ("Time line of an array with a host side and a device side. A guard that writes on the host makes the host side "
         "current. The next guard of the device side copies the bytes to the device first.")
HEIGHT = 300

EVENTS = [(110, "host(write)"), (260, "device(read)"), (400, "device(write)"), (540, "host(read)")]


def draw(p):
    p.text(10, 90, "host side", "", "start")
    p.text(10, 210, "device side", "", "start")
    p.line((100, 86), (620, 86), kind="faint")
    p.line((100, 206), (620, 206), kind="faint")
    for x, words in EVENTS:
        p.text(x + 45, 30, words, "code")
        p.line((x, 40), (x, 250), kind="faint")
    p.box(110, 68, 130, 36, "your loop writes", "host")
    p.arrow((275, 104), (275, 188))
    p.text(285, 150, "copy", "note", "start")
    p.box(280, 188, 105, 36, "kernel reads", "gpu")
    p.box(400, 188, 125, 36, "kernel writes", "gpu")
    p.arrow((550, 188), (550, 104))
    p.text(560, 150, "copy", "note", "start")
    p.box(555, 68, 65, 36, "read", "host")
    p.text(175, 270, "current: host", "note")
    p.text(325, 270, "both", "note")
    p.text(462, 270, "device", "note")
    p.text(585, 270, "both", "note")
    p.text(320, 293, "A guard copies only if its side is not current. A second host(read) would copy nothing.", "note")
