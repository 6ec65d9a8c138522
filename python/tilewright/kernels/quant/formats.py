"""Values of narrow floats in programs: four bits (e2m1) and twelve (e5m6) as words of 32 bits, and back."""

from __future__ import annotations

import tilewright.language as T

WORDS = {"e2m1": 1, "e5m6": 3}  # that eight values fill


def e2m1_code(value):
    """The four bits of the nearest e2m1, ties to the even mantissa; what is beyond 6, and NaN, is 6."""
    magnitude = T.min(T.abs(value), 6.0)
    # Numbers are 0.5 apart below 2, 1 below 4, then 2: so are float32 from 2^22, 2^23 and 2^24 on, to which a sum is rounded.
    # The last bits of the sum are how many steps there are to the number, which are two fewer for each power of two above 1:
    # power >> 22 is two for each, and two too few in its last bits for 1, whence the 1 behind 2^22, which is two steps.
    power = T.reinterpret(T.max(magnitude, 1.0), "uint32") & T.uint32(0x7F800000)
    steps = T.reinterpret(T.fma(T.reinterpret(power, "float32"), T.float32(2**22 + 1), magnitude), "uint32")
    return ((steps + (power >> 22)) & 7) | ((T.reinterpret(value, "uint32") >> 28) & 8)


def e2m1_value(code):
    """The float32 of four bits: exponent and mantissa as those of a float32 have the same meaning 126 powers of two below."""
    bits = ((code & 7) << 22) | ((code & 8) << 28)
    return T.reinterpret(bits, "float32") * T.float32(2.0**126)


def e4m3_of_e2m1(word, half, power):
    """Four e2m1 of a word, its lower or upper half, times 2^power, as four e4m3: exact for powers from -5 to 6."""
    codes = (word >> T.cast(16 * half, "uint32")) & T.uint32(0xFFFF)
    codes = (codes | (codes << 8)) & T.uint32(0x00FF00FF)
    codes = (codes | (codes << 4)) & T.uint32(0x0F0F0F0F)  # one in each byte
    sizes = codes & T.uint32(0x07070707)
    # 0.5 is 48 and 1 is 56, from where on each code is 4 more; a power of two is 8; zeros stay.
    no_zero = ((sizes + T.uint32(0x07070707)) >> 3) & T.uint32(0x01010101)
    from_one = ((sizes + T.uint32(0x06060606)) >> 3) & T.uint32(0x01010101)
    shifted = no_zero * T.cast(44 + 8 * power, "uint32") + ((sizes + from_one) << 2)
    return shifted | ((codes & T.uint32(0x08080808)) << 4)


def e5m6_code(value):
    """The twelve bits of an e5m6: of a float16 whose mantissa is cut, the upper bits, rounded by what float32 has below them:
    one more where these and the last bit kept come to more than a half."""
    code = T.cast(T.reinterpret(T.cast(value, "float16", round="rz"), "uint16"), "uint32") >> 4
    below = T.reinterpret(value, "uint32") & T.uint32(0x1FFFF)
    return (code + ((below + (code & 1) + T.uint32(0xFFFF)) >> 17)) & T.uint32(0xFFF)


def e5m6_value(code):
    return T.cast(T.reinterpret(T.cast(code << 4, "uint16"), "float16"), "float32")


def part_of_word(fmt, code, j, word):
    """The bits that value j of eight has in a word: e2m1 begin at the lowest bits, e5m6 at the highest of three words."""
    if fmt == "e2m1":
        return code << (4 * j)
    lowest = 84 - 12 * j - (64 - 32 * word)  # of the value's bits, in this word
    shifted = T.if_then_else(lowest >= 0, code << T.cast(T.max(lowest, 0), "uint32"), code >> T.cast(T.max(-lowest, 0), "uint32"))
    return T.if_then_else(T.logical_and(lowest > -12, lowest < 32), shifted, T.uint32(0))


def code_in_words(words, j):
    """The twelve bits of value j of the eight that three words hold."""
    lowest = 84 - 12 * j

    def nth(word):
        return T.if_then_else(word == 0, words[0], T.if_then_else(word == 1, words[1], words[2]))

    low = nth(2 - lowest // 32) >> T.cast(lowest % 32, "uint32")
    carried = T.max(lowest % 32 - 20, 0)  # bits of it in the word before
    high = nth(1 - lowest // 32) << T.cast(12 - carried, "uint32")
    return T.if_then_else(carried > 0, low | high, low) & T.uint32(0xFFF)
