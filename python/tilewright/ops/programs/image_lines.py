"""Lines of images that a CPU brings for windows along them."""

from __future__ import annotations

import tilewright.language as T


class Lying:
    """How a line lies: its elements that are a stride apart beside each other, behind the padding, so that the windows of
    results that follow one another have elements that do."""

    def __init__(self, window, stride, padding, dilation):
        self.apart = stride
        # Of each remainder: where its first element stands in the room for it, and in the line.
        self.first = [max(-(-(padding - r) // stride), 0) for r in range(stride)]
        self.begins = [f * stride + r - padding for r, f in enumerate(self.first)]
        self.places = [divmod(k * dilation, stride) for k in range(window)]

    def element(self, line, k, j):
        """Element k of the window of result j."""
        step, r = self.places[k]
        return line[r, step + j]


@T.macro
def bring(line, lying, X, m, n, W):
    """Line n of X[m], of W elements."""
    for r in tuple(range(lying.apart)):
        begin, first = lying.begins[r], lying.first[r]
        for j in T.Parallel(T.min(T.ceildiv(T.max(W - begin, 0), lying.apart), line.shape[1] - first)):
            line[r, first + j] = T.cast(X[m, n, begin + j * lying.apart], "float32")
