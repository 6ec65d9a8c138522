"""Random numbers in kernels: T.rng_init, T.rng_rand and T.rng_rand_float, written with the language's own operations, so
that every engine draws the same ones. Each thread has its state. curandStatePhilox4_32_10_t gives cuRAND's numbers for
any seed, sequence and offset; the other two generators have their first sequence only."""
import math

from . import language as T
from .program import macro
from .trace import fail, recording
from .values import Expr, plain

_PHILOX_MULTIPLIERS, _PHILOX_WEYL = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
_MRG_M1, _MRG_M2, _MRG_BITS = 4294967087, 4294944443, 1.000000048662


def _u32(number):
    return T.uint32(number & 0xFFFFFFFF)


@macro
def _philox(counter, key, out):
    """Ten rounds of Philox 4x32: four numbers of a counter."""
    m0, m1 = _u32(_PHILOX_MULTIPLIERS[0]), _u32(_PHILOX_MULTIPLIERS[1])
    a, b = T.alloc_var("uint32", init=counter[0]), T.alloc_var("uint32", init=counter[1])
    c, d = T.alloc_var("uint32", init=counter[2]), T.alloc_var("uint32", init=counter[3])
    k, l = T.alloc_var("uint32", init=key[0]), T.alloc_var("uint32", init=key[1])
    for _ in T.unroll(10):
        high0, low0, high1, low1 = T.mulhi(a, m0), a * m0, T.mulhi(c, m1), c * m1
        a, b, c, d = high1 ^ b ^ k, low1, high0 ^ d ^ l, low0
        k = k + _u32(_PHILOX_WEYL[0])
        l = l + _u32(_PHILOX_WEYL[1])
    out[0] = a
    out[1] = b
    out[2] = c
    out[3] = d


@macro
def _add_to_counter(counter, first, low, high):
    """Adds a number of 64 bits to the words of the counter from `first` on; only those from 0 carry further."""
    counter[first] = counter[first] + low
    carry = T.if_then_else(counter[first] < low, high + _u32(1), high)
    counter[first + 1] = counter[first + 1] + carry
    if first == 0:
        if counter[1] < carry:
            counter[2] = counter[2] + _u32(1)
            if counter[2] == _u32(0):
                counter[3] = counter[3] + _u32(1)


class _Philox:
    def __init__(self, seed, sequence, offset):
        self.counter, self.key = T.alloc_local((4,), "uint32"), T.alloc_local((2,), "uint32")
        self.out, self.at = T.alloc_local((4,), "uint32"), T.alloc_var("int32", init=0)
        self.start(seed, sequence, offset)

    @macro
    def start(self, seed, sequence, offset):
        T.clear(self.counter)
        self.key[0] = T.cast(seed, "uint32")
        self.key[1] = T.cast(seed >> 32, "uint32")
        _add_to_counter(self.counter, 2, T.cast(sequence, "uint32"), T.cast(sequence >> 32, "uint32"))
        quads = offset >> 2
        _add_to_counter(self.counter, 0, T.cast(quads, "uint32"), T.cast(quads >> 32, "uint32"))
        T.let(self.at, T.cast(offset & 3, "int32"))
        _philox(self.counter, self.key, self.out)

    @macro
    def next(self):
        number = self.out[self.at]
        T.let(self.at, self.at + 1)
        if self.at == 4:
            _add_to_counter(self.counter, 0, _u32(1), _u32(0))
            _philox(self.counter, self.key, self.out)
            T.let(self.at, 0)
        return number


class _Xorwow:
    def __init__(self, seed, sequence, offset):
        self.v, self.weyl = T.alloc_local((5,), "uint32"), T.alloc_var("uint32", init=0)
        self.start(seed, offset)

    @macro
    def start(self, seed, offset):
        a = (T.cast(seed, "uint32") ^ _u32(0xAAD26B49)) * _u32(1099087573)
        b = (T.cast(seed >> 32, "uint32") ^ _u32(0xF7DCEFDD)) * _u32(2591861531)
        self.v[0] = _u32(123456789) + a
        self.v[1] = _u32(362436069) ^ a
        self.v[2] = _u32(521288629) + b
        self.v[3] = _u32(88675123) ^ b
        self.v[4] = _u32(5783321) + a
        T.let(self.weyl, _u32(6615241) + b + a)
        for _ in T.serial(T.cast(offset, "int32")):
            self.step()

    @macro
    def step(self):
        t = self.v[0] ^ (self.v[0] >> _u32(2))
        for i in T.unroll(4):
            self.v[i] = self.v[i + 1]
        self.v[4] = (self.v[4] ^ (self.v[4] << _u32(4))) ^ (t ^ (t << _u32(1)))
        T.let(self.weyl, self.weyl + _u32(362437))

    @macro
    def next(self):
        self.step()
        number = self.v[4] + self.weyl  # read before the next step
        return number


class _Mrg:
    def __init__(self, seed, sequence, offset):
        self.a, self.b = T.alloc_local((3,), "uint64"), T.alloc_local((3,), "uint64")
        self.start(seed, offset)

    @macro
    def start(self, seed, offset):
        low = T.cast(T.cast(seed, "uint32") ^ _u32(0x55555555), "uint64")
        high = T.cast(T.cast(seed >> 32, "uint32") ^ _u32(0xAAAAAAAA), "uint64")
        for i in T.unroll(3):
            self.a[i] = T.uint64(12345)
            self.b[i] = T.uint64(12345)
        if seed != 0:
            self.a[0] = low * T.uint64(12345) % T.uint64(_MRG_M1)
            self.a[1] = high * T.uint64(12345) % T.uint64(_MRG_M1)
            self.a[2] = low * T.uint64(12345) % T.uint64(_MRG_M1)
            self.b[0] = high * T.uint64(12345) % T.uint64(_MRG_M2)
            self.b[1] = low * T.uint64(12345) % T.uint64(_MRG_M2)
            self.b[2] = high * T.uint64(12345) % T.uint64(_MRG_M2)
        for _ in T.serial(T.cast(offset, "int32")):
            self.step()

    @macro
    def step(self):
        m1, m2 = T.uint64(_MRG_M1), T.uint64(_MRG_M2)
        a = (T.uint64(1403580) * self.a[1] + T.uint64(810728) * (m1 - self.a[0])) % m1
        b = (T.uint64(527612) * self.b[2] + T.uint64(1370589) * (m2 - self.b[0])) % m2
        for i in T.unroll(2):
            self.a[i] = self.a[i + 1]
            self.b[i] = self.b[i + 1]
        self.a[2] = a
        self.b[2] = b

    @macro
    def next(self):
        self.step()
        a, b = self.a[2], self.b[2]
        z = T.if_then_else(a > b, a - b, a + T.uint64(_MRG_M1) - b)
        return T.cast(T.cast(z, "float64") * T.float64(_MRG_BITS), "uint32")


_GENERATORS = {"curandStatePhilox4_32_10_t": _Philox, "curandStateXORWOW_t": _Xorwow, "curandStateMRG32k3a_t": _Mrg}


class _State:
    """The generator of a trace, and what a pair of normal numbers has left over."""

    def __init__(self, generator):
        self.generator = generator
        self.left = {"float32": None, "float64": None}

    def normal(self, dtype):
        if self.left[dtype] is None:
            self.left[dtype] = T.alloc_var(dtype, init=0), T.alloc_var("bool", init=False)
        return self.left[dtype]


def _of_64_bits(value):
    return T.cast(value, "uint64") if isinstance(value, Expr) else T.uint64(value)


def rng_init(seed, seq=None, off=0, generator="curandStatePhilox4_32_10_t"):
    """Gives each thread a generator: its sequence is `seq`, by default the thread's number in the grid, from `off` on."""
    tracer = recording("T.rng_init")
    kind = _GENERATORS.get(generator)
    if kind is None:
        fail("BadOption", f"there is no random generator '{generator}'", "it is one of: " + ", ".join(_GENERATORS))
    if kind is not _Philox and plain(seq) != 0:
        fail("BadOption", f"rng_init: a sequence other than 0 of {generator}", "curandStatePhilox4_32_10_t has them all")
    sequence = _thread_of_grid() if seq is None else seq
    tracer.random = _State(kind(_of_64_bits(seed), _of_64_bits(sequence), _of_64_bits(off)))


def _thread_of_grid():
    blocks, threads = T.get_block_bindings(), T.get_thread_bindings()
    number = 0
    for index, extent in zip(reversed(blocks), reversed(T.get_block_extents())):
        number = number * extent + index
    for index, extent in zip(reversed(threads), reversed(T.get_thread_extents())):
        number = number * extent + index
    return number


def _state():
    found = recording("T.rng_rand").random
    if found is None:
        fail("OutsideProgram", "T.rng_rand before T.rng_init", "call T.rng_init(seed, seq, off) first, in the same launch")
    return found


def rng_rand():
    """The thread's next 32 random bits."""
    return _state().generator.next()


def rng_rand_float(bit=32, dist="uniform"):
    """The thread's next random number: uniform in (0, 1], or normal with mean 0 and deviation 1."""
    state = _state()
    if bit not in (32, 64) or dist not in ("uniform", "normal"):
        fail("BadOption", f"rng_rand_float(bit={bit!r}, dist={dist!r})", "bit is 32 or 64, dist is 'uniform' or 'normal'")
    if dist == "normal":
        return _normal(state, state.normal(f"float{bit}"), bit)
    return _uniform(state.generator.next(), state.generator.next() if bit == 64 else None)


def _uniform(low, high=None):
    """In (0, 1]: of 32 bits as float32, of 64 as float64."""
    if high is None:
        return T.fma(T.cast(low, "float32"), T.float32(2.0**-32), T.float32(2.0**-33))
    bits = T.cast(low, "uint64") ^ (T.cast(high, "uint64") << T.uint64(21))
    return T.fma(T.cast(bits, "float64"), T.float64(2.0**-53), T.float64(2.0**-54))


@macro
def _normal(state, left, bit):
    """Box and Muller's: two numbers at a time, of which the second waits for the next call."""
    second, waits = left
    number = T.alloc_var(f"float{bit}", init=0)
    if waits:
        number = second
        T.let(waits, False)
    else:
        a, b = state.generator.next(), state.generator.next()
        if bit == 32:
            radius = T.sqrt(T.float32(-2.0) * T.log(_uniform(a)))
            angle = T.fma(T.cast(b, "float32"), T.float32(2 * math.pi * 2.0**-32), T.float32(2 * math.pi * 2.0**-33))
        else:
            c, d = state.generator.next(), state.generator.next()
            radius = T.sqrt(T.float64(-2.0) * T.log(_uniform(a, b)))
            angle = _uniform(c, d) * T.float64(2 * math.pi)
        number = radius * T.sin(angle)
        T.let(second, radius * T.cos(angle))
        T.let(waits, True)
    return number
