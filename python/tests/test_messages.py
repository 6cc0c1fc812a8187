"""What a program reads that gives objects of the wrong kind to any public function: words of umem or of Python, never names of
the binding."""
import inspect
import itertools
import types

import pytest

import umem

numpy = pytest.importorskip("numpy")

LEAKS = "umem._core", "nanobind", "incompatible function", "ArrayType", "PlaceType"


class Odd:
    pass


ODD = [None, "text", 2.5, 1j, b"\2\3", [None], {}, Odd(), Odd, len, -1, numpy.zeros(3), numpy.complex64(1j), umem.zeros(3), umem.host(), True]
NOT_CALLED = {"list_when_out_of_memory", "log_decisions", "set_failure_hook"}  # which would stay for the tests after this one


def methods_of(thing):
    """Pairs of a name and a function of an object: its public methods, and those of protocols."""
    for name in dir(type(thing)):
        if (not name.startswith("_") or name in ("__getitem__", "__setitem__", "__dlpack__", "__dlpack_device__", "__array__", "__len__",
                                                 "__contains__", "__eq__", "__deepcopy__")) and callable(getattr(type(thing), name)):
            yield f"{type(thing).__name__}.{name}", getattr(thing, name)
            yield f"{type(thing).__name__}.{name} of another object", getattr(type(thing), name)


def functions():
    for module in (umem, umem.ledger, umem.trace):
        for name, member in vars(module).items():
            is_error = isinstance(member, type) and issubclass(member, BaseException)
            if name.startswith("_") or name in NOT_CALLED or is_error or isinstance(member, types.ModuleType) or not callable(member):
                continue
            if getattr(member, "__module__", "").startswith("umem"):
                yield f"{module.__name__}.{name}", member


def calls(function, arguments=(), **named):
    """Calls the function, and runs what it returns a little; yields the messages of exceptions."""
    try:
        made = function(*arguments, **named)
        if inspect.isgenerator(made) or hasattr(made, "__next__"):
            next(iter(made), None)
        elif hasattr(made, "__enter__") and not isinstance(made, (umem.Place, numpy.ndarray, memoryview)):
            with made:
                pass
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def check(name, function):
    wrong = []
    # what Python calls for an operator always has its arguments
    own = {"__getitem__": [1], "__setitem__": [2], "__len__": [0]}.get(name.partition(".")[2].partition(" ")[0])
    is_method = own and "another" in name  # the binding itself refuses None as the object of a method
    for count in [n + ("another" in name) for n in own] if own else (0, 1, 2, 3):
        choices = itertools.product(ODD, repeat=count) if count < 2 else \
            [tuple(ODD[(i * step + k) % len(ODD)] for k, step in zip(range(count), (1, 5, 3))) for i in range(len(ODD))]
        for arguments in choices:
            if is_method and arguments[0] is None:
                continue
            text = calls(function, arguments)
            wrong += [f"{name}{arguments}: {text}"] * any(leak in text for leak in LEAKS)
    for text in () if own else (calls(function, named=1), calls(function, (umem.zeros(3),) * 9)):
        wrong += [f"{name}: {text}"] * any(leak in text for leak in LEAKS)
    return wrong


@pytest.mark.parametrize("name, function", [case for case in functions() if "Shm" not in case[0]], ids=lambda x: x if isinstance(x, str) else "")
def test_functions_say_what_is_wrong_in_words_of_umem(name, function, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = check(name, function)
    umem.set_threads(0)
    assert not wrong, "\n".join(wrong[:20])


MADE = {
    "array": lambda: umem.zeros((3, 2)), "ghosts": lambda: umem.zeros(3, ghosts=1).ghosts, "host": umem.Host, "pool": lambda: umem.Pool(umem.Host()),
    "dtype": lambda: umem.dtype("f8"), "blocks": lambda: umem.blocks(umem.zeros((9, 2)), umem.Host()), "stats": lambda: umem.Stats(umem.Host()),
    "fixed": lambda: umem.Fixed(umem.Host(), 256), "limit": lambda: umem.Limit(umem.Host(), 4096), "track": lambda: umem.Track(umem.Host()),
    "debug": lambda: umem.Debug(umem.Host()), "fault": lambda: umem.Fault(umem.Host()), "guarded": lambda: umem.Guarded(umem.Host()),
    "log": lambda: umem.Log(umem.Host(), "trace.log"), "file": lambda: umem.File("x", "w+"), "mmap": lambda: umem.MMap("y", "w+"),
}


@pytest.mark.parametrize("kind", MADE)
def test_methods_say_what_is_wrong_in_words_of_umem(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = []
    for name, _ in methods_of(MADE[kind]()):
        # each on an object of its own, as some end it
        wrong += check(name, lambda *arguments, **named: dict(methods_of(MADE[kind]()))[name](*arguments, **named))
    assert not wrong, "\n".join(wrong[:20])


def test_attributes_say_what_is_wrong_in_words_of_umem():
    array, place = umem.zeros(3), umem.Host()
    for thing, name in ((array, "read_only"), (place, "label")):
        for value in ODD:
            text = calls(setattr, (thing, name, value))
            assert not any(leak in text for leak in LEAKS), text
    for value in ODD:
        for text in (calls(lambda: array[value]), calls(array.__setitem__, (value, 1)), calls(array.__setitem__, (0, value))):
            assert not any(leak in text for leak in LEAKS), text
    assert array[None].shape == (1, 3) and array[..., None].shape == (3, 1)
    assert "read_only must be True or False, not str" in calls(setattr, (array, "read_only", "yes"))
    assert calls(array.fill) == "TypeError: umem.Array.fill got (), and expects (value: object)"
    assert calls(umem.find, ("x",)) == "TypeError: umem.find got (str), and expects (where: Array | int, place: Place | None = None)"
    assert calls(umem.set_threads, (-1,)) == "TypeError: umem.set_threads got (-1), and expects (count: int = 0)"
    assert calls(umem.Array.fill, (3, 4)) == "TypeError: umem.Array.fill is called with int in place of a umem.Array"
    assert "missing 1 required positional argument: 'shape'" in calls(umem.empty) and "argument 'form'" in calls(umem.zeros, (3,), form=1)
    for value in (numpy.complex64(1j), 1j, "1"):
        for draw in (umem.zeros(3).random_uniform, umem.zeros(3).random_normal):
            assert calls(draw, (value,)).startswith("TypeError: ")
