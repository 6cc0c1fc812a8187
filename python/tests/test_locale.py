"""Numbers in texts have a point, and messages of the system are known, in a German locale."""
import shutil
import subprocess

import pytest

PROGRAM = r"""
import errno, locale, os
locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
assert locale.str(1.5) == "1,5" and locale.localeconv()["thousands_sep"] == "."
import umem

for text, size in (("8K", 8192), ("2M", 2 << 20)):
    for place in (umem.Limit(umem.host(), text), umem.open(f"limit+host:?limit={text}")):
        umem.zeros(size, "u1", place).release()
        try:
            umem.zeros(size + 1, "u1", place)
        except umem.MemoryError:
            continue
        raise AssertionError(text)
for wrong in ("1,5G", "1.5G", "50,5%", "1.024", "1.024K"):
    for make in (lambda: umem.Pool(umem.host(), initial=wrong), lambda: umem.open(f"pool+host:?initial={wrong}")):
        try:
            make()
        except umem.ValueError as error:
            assert "initial" in str(error), error
        else:
            raise AssertionError(wrong)
with umem.open("pool+host:?initial=1%&max=90%"), umem.Pool(umem.host(), initial="1%"):
    pass
with umem.open("fault+host:?share=0.25&seed=1") as place, umem.Fault(umem.host(), share=0.25, seed=1) as twin:
    for text in (repr(place), repr(twin)):
        assert "0,25" not in text, text
try:
    umem.open("fault+host:?share=0,25")
except umem.ValueError as error:
    assert "0,25" in str(error), error
else:
    raise AssertionError("0,25")
try:
    umem.Fault(umem.host(), share=1.25)
except umem.ValueError as error:
    assert "1.25" in str(error), error
array = umem.asarray([1234567.5, -0.25])
assert "1.2345675e+06 -2.5000000e-01]" in repr(array), repr(array)
assert f"{array[0]:.1f}" == "1234567.5" and array[1].item() == -0.25
try:
    array.random_uniform(2.5, 1.5)
except umem.ValueError as error:
    assert "low 2.5 is not below high 1.5" in str(error), error
for path, kind, number in (("/nowhere/a.npy", umem.FileNotFoundError, errno.ENOENT), ("/", umem.IsADirectoryError, errno.EISDIR)):
    for use in (umem.load, lambda path: umem.File(path, "r+")):
        try:
            use(path)
        except kind as error:
            assert error.errno == number, error
        else:
            raise AssertionError(path)
with umem.ledger.on():
    umem.copy(umem.zeros(1 << 20), umem.ones(1 << 20))
assert umem.copy(umem.zeros(1 << 20), umem.ones(1 << 20))["seconds"] > 0
"""


def test_a_german_locale_changes_no_number(run_python, tmp_path, monkeypatch):
    if not shutil.which("localedef"):
        pytest.skip("there is no localedef")
    name = tmp_path / "de_DE.UTF-8"
    subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", name], capture_output=True)  # which may warn
    if not (name / "LC_NUMERIC").exists():
        pytest.skip("the sources of the locale are not installed")
    monkeypatch.setenv("LOCPATH", str(tmp_path))
    run_python(PROGRAM)
