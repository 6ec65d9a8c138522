"""Values of narrow floats in programs: four bits (e2m1) and twelve (e5m6) as words of 32 bits, and back."""

from __future__ import annotations

import tilewright.language as T

WORDS = {"e2m1": 1, "e5m6": 3}  # that eight values fill


def e2m1_code(value):
    """The four bits of the nearest e2m1, ties to the even mantissa; what is beyond 6, and NaN, is 6."""
    magnitude = T.min(T.abs(value), 6.0)
    # Numbers are 0.5 apart below 2, 1 below 4, then 2: so are float32 from 2^22, 2^23 and 2^24 on, to which a sum is rounded.
    # `first` is what the code 0 would have there.
    wide, wider = magnitude >= 2.0, magnitude >= 4.0
    above = T.if_then_else(wider, T.float32(2**24), T.if_then_else(wide, T.float32(2**23), T.float32(2**22)))
    first = T.if_then_else(
        wider, T.uint32(0x4B800000 - 4), T.if_then_else(wide, T.uint32(0x4B000000 - 2), T.uint32(0x4A800000))
    )
    sign = (T.reinterpret(value, "uint32") >> 28) & 8
    return sign | (T.reinterpret(magnitude + above, "uint32") - first)


def e2m1_value(code):
    """The float32 of four bits: exponent and mantissa as those of a float32 have the same meaning 126 powers of two below."""
    bits = ((code & 7) << 22) | ((code & 8) << 28)
    return T.reinterpret(bits, "float32") * T.float32(2.0**126)


def e5m6_code(value):
    """The twelve bits of an e5m6: of a float16 whose mantissa is cut, the upper bits, rounded by what float32 has below them."""
    half = T.cast(T.reinterpret(T.cast(value, "float16", round="rz"), "uint16"), "uint32")
    code = half >> 4
    below = T.reinterpret(value, "uint32") & T.uint32(0x1FFFF)
    return (code + T.if_then_else((code & 1) + below > T.uint32(0x10000), T.uint32(1), T.uint32(0))) & T.uint32(0xFFF)


def e5m6_value(code):
    return T.cast(T.reinterpret(T.cast(code << 4, "uint16"), "float16"), "float32")


def part_of_word(fmt, code, j, word):
    """The bits that value j of eight has in a word: e2m1 begin at the lowest bits, e5m6 at the highest of three words."""
    if fmt == "e2m1":
        return code << (4 * j)
    lowest = 84 - 12 * j - (64 - 32 * word)  # of the value's bits, in this word
    shifted = T.if_then_else(lowest >= 0, code << T.cast(T.max(lowest, 0), "uint32"), code >> T.cast(T.max(-lowest, 0), "uint32"))
    return T.if_then_else(T.logical_and(lowest > -12, lowest < 32), shifted, T.uint32(0))


def code_in_words(words, t, group, j):
    """The twelve bits of value j of eight, whose three words begin at words[t, 3 * group]."""
    lowest = 84 - 12 * j
    word = 2 - lowest // 32
    low = words[t, 3 * group + word] >> T.cast(lowest % 32, "uint32")
    carried = T.max(lowest % 32 - 20, 0)  # bits of it in the word before
    high = words[t, 3 * group + T.max(word - 1, 0)] << T.cast(12 - carried, "uint32")
    return T.if_then_else(carried > 0, low | high, low) & T.uint32(0xFFF)
