"""Programs of convolutions: products of weights with patches, which are gathered into tiles as the sum goes on."""

from __future__ import annotations

import tilewright.language as T

from ...kernels.programs import Family
from .image_lines import Lying, bring

_OUTSIDE = -(1 << 30)  # as a place along a dimension


@T.macro
def _places(at, n, j, here, begin, extents, results, stride, padding):
    """here[0..2, j]: where in an image of `extents` the window of result `at` begins, begin[j]: the same as one number; n:
    whether there is one."""
    D, H, W = extents
    OH, OW = results
    line = at // OW
    d = line // OH * stride[0] - padding[0]
    h = line % OH * stride[1] - padding[1]
    w = (at - line * OW) * stride[2] - padding[2]
    here[0, j] = T.if_then_else(n, d, _OUTSIDE)
    here[1, j] = h
    here[2, j] = w
    begin[j] = (T.cast(d, begin.dtype) * H + h) * W + w


@T.macro
def _results(acc, by, bx, B, Y, F, first, S, line, bias, index):
    """The sums of tile (by, bx) of F channels at S places, of which channel 0 is `first` of the bias B and `line` of the
    lines of Y: those that there are."""
    rows, columns = acc.shape
    for i, j in T.Parallel(rows, columns):
        f, at = by * rows + i, bx * columns + j
        made = acc[i, j] + T.cast(B[first + f], "float32") if bias else acc[i, j]
        inside = T.logical_and(f < F, at < S)
        to = T.cast(line + f, index) * S + at
        Y[T.if_then_else(inside, to, T.cast(-1, index))] = T.cast(made, Y.dtype)


@Family
def patches(x, index, window, stride, padding, dilation, bias, tf32, rows, columns, depth, threads):
    """Y[n, g * F + f, at] = sum over (channel, window) of W[g * F + f, channel, window] X[n, g * C + channel, at * stride -
    padding + window * dilation], plus B. A block has `rows` channels of the result and `columns` places, and sums `depth`
    terms in a step, which are looked up one by one: of images of any number of channels. index: a dtype that counts the
    elements of an image and of Y."""
    N, L, OC, C, LY, G = T.dynamic("N, L, OC, C, LY, G")
    taps = window[0] * window[1] * window[2]

    @T.prim_func
    def convolution(
        X: T.Tensor((N, L), x),
        K: T.Tensor((OC, C * taps), x),
        B: T.Tensor((OC if bias else 1,), x),
        Y: T.Tensor((LY,), x),
        groups: T.Tensor((G,), "int8"),
        D: T.int32,
        H: T.int32,
        W: T.int32,
        OD: T.int32,
        OH: T.int32,
        OW: T.int32,
    ):
        F, S = OC // G, OD * OH * OW
        with T.Kernel(T.ceildiv(S, columns), T.ceildiv(F, rows), N * G, threads=threads) as (bx, by, bz):
            n, g = bz // G, bz % G
            lying = T.alloc_shared((rows, depth), x)
            patch = T.alloc_shared((depth, columns), x)
            here = T.alloc_shared((3, columns), "int32")
            begin = T.alloc_shared((columns,), index)
            on = T.alloc_shared((3, depth), "int32")
            far = T.alloc_shared((depth,), index)
            acc = T.alloc_fragment((rows, columns), "float32")
            for j in T.Parallel(columns):
                _places(bx * columns + j, bx * columns + j < S, j, here, begin, (D, H, W), (OH, OW), stride, padding)
            T.clear(acc)
            for k in T.serial(T.ceildiv(C * taps, depth)):
                for i in T.Parallel(depth):
                    t = k * depth + i
                    c, tap = t // taps, t % taps
                    kd = tap // (window[1] * window[2]) * dilation[0]
                    kh = tap // window[2] % window[1] * dilation[1]
                    kw = tap % window[2] * dilation[2]
                    on[0, i] = T.if_then_else(c < C, kd, _OUTSIDE)
                    on[1, i] = kh
                    on[2, i] = kw
                    far[i] = ((T.cast(g * C + c, index) * D + kd) * H + kh) * W + kw
                for i, j in T.Parallel(rows, depth):
                    f, t = by * rows + i, k * depth + j
                    lying[i, j] = K[T.if_then_else(f < F, g * F + f, -1), t]
                for i, j in T.Parallel(depth, columns):
                    d, h, w = on[0, i] + here[0, j], on[1, i] + here[1, j], on[2, i] + here[2, j]
                    low = T.logical_and(d >= 0, T.logical_and(h >= 0, w >= 0))
                    high = T.logical_and(d < D, T.logical_and(h < H, w < W))
                    inside = T.logical_and(low, high)
                    patch[i, j] = X[n, T.if_then_else(inside, far[i] + begin[j], T.cast(-1, index))]
                T.gemm(lying, patch, acc)
            _results(acc, by, bx, B, Y, F, g * F, S, n * OC + g * F, bias, index)

    return convolution


@Family
def straight(x, window, stride, padding, dilation, bias, rows, room, width, lines, threads):
    """The same on a CPU: a line of an image that `rows` channels of the result need is brought once, those of its elements beside
    each other that are a stride apart, and goes into sums of a line of results. A block has `lines` of these. room, width: of as
    many elements at least as lie so, of as many results as a line has."""
    M, DH, W, OC, K, L, R, OW, G = T.dynamic("M, DH, W, OC, K, L, R, OW, G")
    taps = window[0] * window[1] * window[2]
    lying = Lying(window[2], stride[2], padding[2], dilation[2])

    @T.prim_func
    def convolution(
        X: T.Tensor((M, DH, W), x),
        F: T.Tensor((OC, K), x),
        B: T.Tensor((OC if bias else 1,), x),
        Y: T.Tensor((L, R, OW), x),
        groups: T.Tensor((G,), "int8"),
        D: T.int32,
        H: T.int32,
        OH: T.int32,
    ):
        C, of_group = K // taps, OC // G
        with T.Kernel(T.ceildiv(R, lines), T.ceildiv(of_group, rows), L // of_group, threads=threads) as (bx, by, bz):
            brought = T.alloc_shared((lying.apart, room), "float32")
            acc = T.alloc_shared((rows, width), "float32")
            weights = T.alloc_shared((rows, window[2]), "float32")
            channel = bz % G * of_group + by * rows
            T.clear(brought)
            for l in T.serial(T.min(lines, R - bx * lines)):
                line = bx * lines + l
                T.clear(acc)
                for c in T.serial(C):
                    for kd, kh in T.grid(window[0], window[1]):
                        d = line // OH * stride[0] - padding[0] + kd * dilation[0]
                        h = line % OH * stride[1] - padding[1] + kh * dilation[1]
                        if T.logical_and(T.logical_and(d >= 0, d < D), T.logical_and(h >= 0, h < H)):
                            bring(brought, lying, X, bz * C + c, d * H + h, W)
                            tap = ((c * window[0] + kd) * window[1] + kh) * window[2]
                            for i, k in T.Parallel(rows, window[2]):
                                weights[i, k] = T.cast(F[T.min(channel + i, OC - 1), tap + k], "float32")
                            for j in T.Parallel(T.min(OW, width)):
                                for i in tuple(range(rows)):
                                    total = acc[i, j]
                                    for k in tuple(range(window[2])):
                                        total = T.bind(total + weights[i, k] * lying.element(brought, k, j))
                                    acc[i, j] = total
                for i in T.serial(T.min(rows, of_group - by * rows)):
                    for j in T.Parallel(T.min(OW, width)):
                        made = acc[i, j] + T.cast(B[channel + i], "float32") if bias else acc[i, j]
                        Y[bz * of_group + by * rows + i, line, j] = T.cast(made, x)

    return convolution


@Family
def turned(x, tile=64, threads=256):
    """Y[m, p, c] = X[m, c, p]: channels beside each other."""
    M, C, S = T.dynamic("M, C, S")

    @T.prim_func
    def channels_last(X: T.Tensor((M, C, S), x), Y: T.Tensor((M, S, C), x)):
        with T.Kernel(T.ceildiv(S, tile), T.ceildiv(C, tile), M, threads=threads) as (bx, by, m):
            held = T.alloc_shared((tile, tile), x)
            T.copy(X[m, by * tile, bx * tile], held)
            for i, j in T.Parallel(tile, tile):
                Y[m, bx * tile + i, by * tile + j] = held[j, i]

    return channels_last


@Family
def lines(x, index, bias, tf32, rows, columns, depth, stages, threads):
    """The same of windows of one element that stand at every place: products of weights (OC, C) with images (N, G * C, S) as
    they are."""
    N, IC, OC, C, S, LY, G = T.dynamic("N, IC, OC, C, S, LY, G")

    @T.prim_func
    def convolution(
        X: T.Tensor((N, IC, S), x),
        K: T.Tensor((OC, C), x),
        B: T.Tensor((OC if bias else 1,), x),
        Y: T.Tensor((LY,), x),
        groups: T.Tensor((G,), "int8"),
    ):
        F = OC // G
        with T.Kernel(T.ceildiv(S, columns), T.ceildiv(F, rows), N * G, threads=threads) as (bx, by, bz):
            n, g = bz // G, bz % G
            lying = T.alloc_shared((rows, depth), x)
            patch = T.alloc_shared((depth, columns), x)
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(C, depth), num_stages=stages):
                T.copy(K[g * F + by * rows, k * depth], lying)
                T.copy(X[n, g * C + k * depth, bx * columns], patch)
                T.gemm(lying, patch, acc)
            _results(acc, by, bx, B, Y, F, g * F, S, n * OC + g * F, bias, index)

    return convolution


@Family
def channels(x, index, window, stride, padding, dilation, bias, tf32, rows, columns, depth, stages, threads):
    """The same of images whose channels lie beside each other, X (N * D * H * W, G * C), and weights (OC * window, C): threads
    copy runs of channels ahead of the products, zeros where a window is outside. Places of all images are in one line."""
    R, IC, OC, C, LY, G = T.dynamic("R, IC, OC, C, LY, G")
    taps = window[0] * window[1] * window[2]
    piece = 4 if x == "float32" else 8  # channels that a thread copies at once, 16 bytes
    across = depth // piece
    step = threads // across  # rows that all threads copy at once

    def part(tx):
        return tx % across * piece

    def channel(k, tx):
        return k // taps * depth + part(tx)

    @T.prim_func
    def convolution(
        X: T.Tensor((R, IC), x),
        K: T.Tensor((OC * taps, C), x),
        B: T.Tensor((OC if bias else 1,), x),
        Y: T.Tensor((LY,), x),
        groups: T.Tensor((G,), "int8"),
        D: T.int32,
        H: T.int32,
        W: T.int32,
        OD: T.int32,
        OH: T.int32,
        OW: T.int32,
    ):
        T.assume(C % piece == 0)
        T.assume(IC % piece == 0)
        F, S, N = OC // G, OD * OH * OW, R // (D * H * W)
        with T.Kernel(T.ceildiv(N * S, columns), T.ceildiv(F, rows), G, threads=threads) as (bx, by, g):
            lying = T.alloc_shared((stages, rows, depth), x)
            patch = T.alloc_shared((stages, columns, depth), x)
            here = T.alloc_shared((3, columns), "int32")
            begin = T.alloc_shared((columns,), "int32")
            to = T.alloc_shared((columns,), index)
            mine = T.alloc_local((columns // step, 4), "int32")
            acc = T.alloc_fragment((rows, columns), "float32")
            tx = T.get_thread_binding()
            down = tx // across
            for j in T.Parallel(columns):
                n = (bx * columns + j) // S
                at = bx * columns + j - n * S
                _places(at, n < N, j, here, begin, (D, H, W), (OH, OW), stride, padding)
                begin[j] = begin[j] + n * (D * H * W)
                to[j] = T.if_then_else(n < N, T.cast(n * OC, index) * S + at, T.min_value(index))
            T.sync_threads()
            for r in T.unroll(columns // step):
                for e in T.unroll(3):
                    mine[r, e] = here[e, r * step + down]
                mine[r, 3] = begin[r * step + down]
            T.clear(acc)
            turns = T.ceildiv(C, depth) * taps
            for k in T.serial(turns + stages - 1):  # turn k is brought, the one before those under way is multiplied
                T.ptx_wait_group(stages - 2)
                T.sync_threads()
                if k < turns:
                    tap = k % taps
                    kd = tap // (window[1] * window[2]) * dilation[0]
                    kh = tap // window[2] % window[1] * dilation[1]
                    kw = tap % window[2] * dilation[2]
                    on = (kd * H + kh) * W + kw
                    for r in T.unroll(rows // step):
                        f = by * rows + r * step + down
                        T.ptx_cp_async(
                            T.access_ptr(lying[k % stages, r * step + down, part(tx)], "w", piece),
                            T.access_ptr(K[(g * F + f) * taps + tap, channel(k, tx)], "r", piece),
                            piece,
                            predicate=T.logical_and(f < F, channel(k, tx) < C),
                        )
                    for r in T.unroll(columns // step):
                        d, h, w = mine[r, 0] + kd, mine[r, 1] + kh, mine[r, 2] + kw
                        low = T.logical_and(d >= 0, T.logical_and(h >= 0, w >= 0))
                        high = T.logical_and(d < D, T.logical_and(h < H, w < W))
                        T.ptx_cp_async(
                            T.access_ptr(patch[k % stages, r * step + down, part(tx)], "w", piece),
                            T.access_ptr(X[mine[r, 3] + on, g * C + channel(k, tx)], "r", piece),
                            piece,
                            predicate=T.logical_and(T.logical_and(low, high), channel(k, tx) < C),
                        )
                T.ptx_commit_group()
                if k >= stages - 1:
                    T.gemm(
                        lying[(k + 1) % stages, 0:rows, 0:depth],
                        patch[(k + 1) % stages, 0:columns, 0:depth],
                        acc,
                        transpose_B=True,
                    )
            for i, j in T.Parallel(rows, columns):
                f = by * rows + i
                made = acc[i, j] + T.cast(B[g * F + f], "float32") if bias else acc[i, j]
                Y[T.if_then_else(f < F, to[j] + T.cast(g * F + f, index) * S, T.cast(-1, index))] = T.cast(made, x)

    return convolution
