"""Programs of pooling: windows of up to three dimensions, of a fixed size or as many as there are results."""

from __future__ import annotations

import tilewright.language as T

from ...kernels.programs import Family


@Family
def windows(x, largest, places, adaptive, window, stride, padding, dilation, counts_padding, divisor, width, threads):
    """Y of X (M, D, H, W): the mean or the largest of each window, whose first element may lie in the padding. `places`:
    where the largest stands in D x H x W, of equals the first. adaptive: window w of n begins at w * extent / n."""
    M, D, H, W, OD, OH, OW = T.dynamic("M, D, H, W, OD, OH, OW")

    def reach(at, axis, extent, results):
        """(begin, end, step, how many elements it has with padding) of window `at` along a dimension."""
        if adaptive:
            begin, end = at * extent // results, T.ceildiv((at + 1) * extent, results)
            return begin, end, 1, end - begin
        begin = at * stride[axis] - padding[axis]
        whole = T.min(begin + window[axis], extent + padding[axis]) - begin
        return begin, T.min(begin + dilation[axis] * (window[axis] - 1) + 1, extent), dilation[axis], whole

    @T.prim_func
    def pool(
        X: T.Tensor((M, D, H, W), x),
        Y: T.Tensor((M, OD, OH, OW), x),
        P: T.Tensor((M, OD, OH, OW) if places else (1, OD, OH, OW), "int64"),
    ):
        with T.Kernel(T.ceildiv(OD * OH * OW, width), M, threads=threads) as (bx, m):
            for i in T.Parallel(width):
                at = bx * width + i
                if at < OD * OH * OW:
                    od, oh, ow = at // (OH * OW), at // OW % OH, at % OW
                    d0, d1, ds, dn = reach(od, 0, D, OD)
                    h0, h1, hs, hn = reach(oh, 1, H, OH)
                    w0, w1, ws, wn = reach(ow, 2, W, OW)
                    total = T.alloc_var("float32", init=-T.infinity("float32") if largest else 0.0)
                    place = T.alloc_var("int32", init=-1)
                    there = T.alloc_var("int32", init=0)
                    for kd in T.serial(T.ceildiv(d1 - d0, ds)):
                        for kh in T.serial(T.ceildiv(h1 - h0, hs)):
                            for kw in T.serial(T.ceildiv(w1 - w0, ws)):
                                d, h, w = d0 + kd * ds, h0 + kh * hs, w0 + kw * ws
                                if T.logical_and(d >= 0, T.logical_and(h >= 0, w >= 0)):
                                    v = T.cast(X[m, d, h, w], "float32")
                                    if largest:
                                        if T.logical_or(place < 0, T.logical_or(v > total, T.isnan(v))):
                                            total = v
                                            place = (d * H + h) * W + w
                                    else:
                                        total = total + v
                                        there = there + 1
                    if largest:
                        Y[m, od, oh, ow] = T.cast(total, x)
                        if places:
                            P[m, od, oh, ow] = T.cast(place, "int64")
                    else:
                        count = T.cast(divisor if divisor else dn * hn * wn if counts_padding or adaptive else there, "float32")
                        Y[m, od, oh, ow] = T.cast(total / count, x)

    return pool
