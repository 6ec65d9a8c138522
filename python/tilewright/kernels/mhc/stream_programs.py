"""Programs over the streams of hyper-connections: spreading a row over them, their weighted sums, and the gradients of both."""

from __future__ import annotations

import tilewright.language as T

from ..programs import Family, added, range_of


def tiles(count, shape, dtype="float32"):
    """As many fragments: one for each stream, so that a stream's number needs no index."""
    return [T.alloc_fragment(shape, dtype) for _ in range(count)]


@Family
def expand(streams, x, backward, rows=8, columns=512):
    """Each row for every stream; backward: the sum over the streams, rounded once."""
    tokens, hidden = T.dynamic("tokens, hidden")
    numbers = tuple(range(streams))

    @T.prim_func
    def expand_to_mhc(X: T.Tensor((tokens, hidden), x), Y: T.Tensor((tokens, streams, hidden), x)):
        with T.Kernel(T.ceildiv(hidden, columns), T.ceildiv(tokens, rows), threads=128) as (bx, by):
            values = T.alloc_fragment((rows, columns), "float32")
            if backward:
                T.clear(values)
                for m in numbers:
                    for i, j in T.Parallel(rows, columns):
                        values[i, j] = values[i, j] + T.cast(Y[by * rows + i, m, bx * columns + j], "float32")
                for i, j in T.Parallel(rows, columns):
                    X[by * rows + i, bx * columns + j] = T.cast(values[i, j], x)
            else:
                for i, j in T.Parallel(rows, columns):
                    values[i, j] = T.cast(X[by * rows + i, bx * columns + j], "float32")
                for m in numbers:
                    for i, j in T.Parallel(rows, columns):
                        Y[by * rows + i, m, bx * columns + j] = T.cast(values[i, j], x)

    return expand_to_mhc


@T.macro
def write_mixed(X, mix, Y, rows=4, columns=512):
    """A launch: the sums of the streams times their weights."""
    tokens, streams, hidden = X.shape
    with T.Kernel(T.ceildiv(hidden, columns), T.ceildiv(tokens, rows), threads=128) as (bx, by):
        for i, j in T.Parallel(rows, columns):
            t, c = by * rows + i, bx * columns + j
            if t < tokens:
                Y[t, c] = T.cast(added([mix[t, m] * T.cast(X[t, m, c], "float32") for m in range_of(streams)]), "bfloat16")


@Family
def apply(streams):
    """The sum of the streams times their weights."""
    tokens, hidden = T.dynamic("tokens, hidden")

    @T.prim_func
    def apply_mix(
        X: T.Tensor((tokens, streams, hidden), "bfloat16"),
        mix: T.Tensor((tokens, streams), "float32"),
        Y: T.Tensor((tokens, hidden), "bfloat16"),
    ):
        write_mixed(X, mix, Y)

    return apply_mix


@Family
def apply_gradient(streams, columns=1024, threads=128):
    """Gradients of apply(): that of the streams is added to what is there."""
    tokens, hidden = T.dynamic("tokens, hidden")
    numbers = tuple(range(streams))

    @T.prim_func
    def apply_mix_backward(
        dY: T.Tensor((tokens, hidden), "bfloat16"),
        X: T.Tensor((tokens, streams, hidden), "bfloat16"),
        mix: T.Tensor((tokens, streams), "float32"),
        dX: T.Tensor((tokens, streams, hidden), "bfloat16"),
        d_mix: T.Tensor((tokens, streams), "float32"),
    ):
        with T.Kernel(tokens, threads=threads) as t:
            sums = T.alloc_fragment((streams, columns), "float32")
            total = T.alloc_fragment((streams,), "float32")
            T.clear(sums)
            for step in T.serial(T.ceildiv(hidden, columns)):
                for m, j in T.Parallel(streams, columns):
                    c = step * columns + j
                    dy = T.cast(dY[t, c], "float32")
                    sums[m, j] = sums[m, j] + dy * T.cast(X[t, m, c], "float32")
                for m, j in T.Parallel(streams, columns):
                    c = step * columns + j
                    dX[t, m, c] = T.cast(T.cast(dX[t, m, c], "float32") + T.cast(dY[t, c], "float32") * mix[t, m], "bfloat16")
            T.reduce_sum(sums, total, dim=1)
            for m in T.Parallel(streams):
                d_mix[t, m] = total[m]

    return apply_mix_backward


def posted(x, weight, weights, streams):
    """What a stream is behind a layer: its share of what the layer gives, and of each stream before."""
    return x * weight + added([w * r for w, r in zip(weights, streams)])


@Family
def post(streams, rows=2, columns=512):
    """Stream n: x times its weight, and the streams m times comb[m, n]."""
    tokens, hidden = T.dynamic("tokens, hidden")
    numbers = tuple(range(streams))

    @T.prim_func
    def mhc_post(
        comb: T.Tensor((tokens, streams, streams), "float32"),
        R: T.Tensor((tokens, streams, hidden), "bfloat16"),
        weights: T.Tensor((tokens, streams), "float32"),
        X: T.Tensor((tokens, hidden), "bfloat16"),
        Y: T.Tensor((tokens, streams, hidden), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(hidden, columns), T.ceildiv(tokens, rows), threads=128) as (bx, by):
            x = T.alloc_fragment((rows, columns), "float32")
            before = tiles(streams, (rows, columns))
            for i, j in T.Parallel(rows, columns):
                x[i, j] = T.cast(X[by * rows + i, bx * columns + j], "float32")
            for m in numbers:
                for i, j in T.Parallel(rows, columns):
                    before[m][i, j] = T.cast(R[by * rows + i, m, bx * columns + j], "float32")
            for n in numbers:
                for i, j in T.Parallel(rows, columns):
                    t = by * rows + i
                    if t < tokens:
                        Y[t, n, bx * columns + j] = T.cast(
                            posted(x[i, j], weights[t, n], [comb[t, m, n] for m in numbers], [before[m][i, j] for m in numbers]),
                            "bfloat16",
                        )

    return mhc_post


LAYERS = 4  # of a launch of recompute()


@Family
def recompute(streams, layers, behind, columns=1024):
    """apply() and post() of `layers` layers in turn, the last without post() where `behind` is one less; streams stay in registers.
    Of a layer: its mix, what goes into it; what comes out, its weight, its comb, and the streams behind it."""
    tokens, hidden = T.dynamic("tokens, hidden")
    numbers = tuple(range(streams))

    @T.prim_func
    def mhc_recompute(
        R: T.Tensor((tokens, streams, hidden), "bfloat16"),
        mix_0: T.Tensor((tokens, streams), "float32"),
        Y_0: T.Tensor((tokens, hidden), "bfloat16"),
        X_0: T.Tensor((tokens, hidden), "bfloat16"),
        weights_0: T.Tensor((tokens, streams), "float32"),
        comb_0: T.Tensor((tokens, streams, streams), "float32"),
        R_0: T.Tensor((tokens, streams, hidden), "bfloat16"),
        mix_1: T.Tensor((tokens, streams), "float32"),
        Y_1: T.Tensor((tokens, hidden), "bfloat16"),
        X_1: T.Tensor((tokens, hidden), "bfloat16"),
        weights_1: T.Tensor((tokens, streams), "float32"),
        comb_1: T.Tensor((tokens, streams, streams), "float32"),
        R_1: T.Tensor((tokens, streams, hidden), "bfloat16"),
        mix_2: T.Tensor((tokens, streams), "float32"),
        Y_2: T.Tensor((tokens, hidden), "bfloat16"),
        X_2: T.Tensor((tokens, hidden), "bfloat16"),
        weights_2: T.Tensor((tokens, streams), "float32"),
        comb_2: T.Tensor((tokens, streams, streams), "float32"),
        R_2: T.Tensor((tokens, streams, hidden), "bfloat16"),
        mix_3: T.Tensor((tokens, streams), "float32"),
        Y_3: T.Tensor((tokens, hidden), "bfloat16"),
        X_3: T.Tensor((tokens, hidden), "bfloat16"),
        weights_3: T.Tensor((tokens, streams), "float32"),
        comb_3: T.Tensor((tokens, streams, streams), "float32"),
        R_3: T.Tensor((tokens, streams, hidden), "bfloat16"),
    ):
        fed = ((mix_0, Y_0), (mix_1, Y_1), (mix_2, Y_2), (mix_3, Y_3))[:layers]
        left = (
            (X_0, weights_0, comb_0, R_0),
            (X_1, weights_1, comb_1, R_1),
            (X_2, weights_2, comb_2, R_2),
            (X_3, weights_3, comb_3, R_3),
        )[:behind]
        chunks = T.ceildiv(hidden, columns)
        with T.Kernel(tokens * chunks, threads=128) as block:
            t, bx = block // chunks, block % chunks
            before = tiles(streams, (columns,))
            x = tiles(behind, (columns,), "bfloat16")
            made = tiles(streams, (columns,), "bfloat16")
            numbers_of = [mix[t, 0:streams] for mix, _ in fed]
            for _, weight, comb, _ in left:
                numbers_of += [weight[t, 0:streams], *[comb[t, m, 0:streams] for m in numbers]]
            read = tiles(len(numbers_of), (streams,))
            lying = [T.alloc_shared((streams,), "float32") for _ in numbers_of]
            for of, into in zip_of(numbers_of, read):
                T.copy(of, into)
            for m in numbers:
                for j in T.Parallel(columns):
                    before[m][j] = T.cast(R[t, m, bx * columns + j], "float32")
            for layer, (given, _, _, _) in enumerate_of(left):
                T.copy(given[t, bx * columns], x[layer])
            for of, into in zip_of(read, lying):
                T.copy(of, into)
            for layer, (_, into) in enumerate_of(fed):
                for j in T.Parallel(columns):
                    into[t, bx * columns + j] = T.cast(added([lying[layer][m] * before[m][j] for m in numbers]), "bfloat16")
                if layer < behind:
                    at = layers + layer * (1 + streams)
                    weight, comb = lying[at], lying[at + 1 : at + 1 + streams]
                    for n in numbers:
                        for j in T.Parallel(columns):
                            found = posted(
                                T.cast(x[layer][j], "float32"), weight[n], [comb[m][n] for m in numbers], [s[j] for s in before]
                            )
                            made[n][j] = T.cast(found, "bfloat16")
                    for n in numbers:
                        T.copy(made[n], left[layer][3][t, n, bx * columns])
                        for j in T.Parallel(columns):
                            before[n][j] = T.cast(made[n][j], "float32")

    return mhc_recompute


@Family
def post_gradient(streams, threads=128):
    """Gradients of post(). A thread has eight columns at a time, and a sum for each pair of what goes in and what came out."""
    tokens, hidden = T.dynamic("tokens, hidden")
    numbers, together = tuple(range(streams)), (threads, 8)
    pairs = tuple((m, n) for m in range(streams + 1) for n in range(streams))  # the last rows: of x itself

    @T.prim_func
    def mhc_post_backward(
        dY: T.Tensor((tokens, streams, hidden), "bfloat16"),
        comb: T.Tensor((tokens, streams, streams), "float32"),
        R: T.Tensor((tokens, streams, hidden), "bfloat16"),
        weights: T.Tensor((tokens, streams), "float32"),
        X: T.Tensor((tokens, hidden), "bfloat16"),
        d_comb: T.Tensor((tokens, streams, streams), "float32"),
        dR: T.Tensor((tokens, streams, hidden), "bfloat16"),
        d_weights: T.Tensor((tokens, streams), "float32"),
        dX: T.Tensor((tokens, hidden), "bfloat16"),
    ):
        with T.Kernel(tokens, threads=threads) as t:
            sums = tiles(len(pairs), (threads,))
            before = tiles(streams + 1, together, "bfloat16")
            given = tiles(streams, together, "bfloat16")
            dy = tiles(streams, together)
            lying = T.alloc_shared((len(pairs), threads), "float32")
            total = T.alloc_fragment((len(pairs),), "float32")
            for each in sums:
                T.clear(each)
            for step in T.serial(T.ceildiv(hidden, threads * 8)):
                for m in numbers:
                    for i, j in T.Parallel(*together):
                        given[m][i, j] = dY[t, m, (step * threads + i) * 8 + j]
                for m in numbers:
                    for i, j in T.Parallel(*together):
                        before[m][i, j] = R[t, m, (step * threads + i) * 8 + j]
                for i, j in T.Parallel(*together):
                    before[streams][i, j] = X[t, (step * threads + i) * 8 + j]
                for n in numbers:
                    for i, j in T.Parallel(*together):
                        dy[n][i, j] = T.cast(given[n][i, j], "float32")
                for m in numbers:
                    for i, j in T.Parallel(*together):
                        found = added([comb[t, m, n] * dy[n][i, j] for n in numbers])
                        dR[t, m, (step * threads + i) * 8 + j] = T.cast(found, "bfloat16")
                for i, j in T.Parallel(*together):
                    found = added([dy[n][i, j] * weights[t, n] for n in numbers])
                    dX[t, (step * threads + i) * 8 + j] = T.cast(found, "bfloat16")
                for q, (m, n) in enumerate_of(pairs):
                    for i in T.Parallel(threads):
                        products = [T.cast(before[m][i, j], "float32") * dy[n][i, j] for j in range_of(8)]
                        sums[q][i] = sums[q][i] + added(products)
            for q, _ in enumerate_of(pairs):
                T.copy(sums[q], lying[q, 0:threads])
            T.reduce_sum(lying, total, dim=1)
            for q in T.Parallel(len(pairs)):
                if q < streams * streams:
                    d_comb[t, q // streams, q % streams] = total[q]
                else:
                    d_weights[t, q - streams * streams] = total[q]

    return mhc_post_backward


def zip_of(*items):
    return tuple(zip(*items))


def enumerate_of(items):
    return tuple(enumerate(items))
