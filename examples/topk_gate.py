"""The experts of each word: the largest scores of a row, one after the other, each taken out before the next is looked for."""
import sys

import numpy as np
import tilewright as tw
import tilewright.language as T
from bounds import within

M = T.dynamic("M")


@tw.jit(out_idx=[1, 2])
def topk(N: int, k: int = 4):
    @T.prim_func
    def largest_of_rows(X: T.Tensor[[M, N], T.float32], V: T.Tensor[[M, k], T.float32], I: T.Tensor[[M, k], T.int32]):
        with T.Kernel(T.ceildiv(M, 8), threads=128) as by:
            x = T.alloc_fragment((8, N), "float32")
            places = T.alloc_fragment((8, N), "int32")
            largest = T.alloc_fragment((8,), "float32")
            place = T.alloc_fragment((8,), "int32")
            T.copy(X[by * 8, 0], x)
            for turn in T.serial(k):
                T.reduce_max(x, largest, dim=1)
                for i, j in T.Parallel(8, N):
                    places[i, j] = T.if_then_else(x[i, j] == largest[i], j, N)
                T.reduce_min(places, place, dim=1)              # the first of equals
                for i in T.Parallel(8):
                    V[by * 8 + i, turn] = largest[i]
                    I[by * 8 + i, turn] = place[i]
                for i, j in T.Parallel(8, N):
                    x[i, j] = T.if_then_else(j == place[i], -T.infinity("float32"), x[i, j])

    return largest_of_rows


def main():
    x = np.random.default_rng(0).integers(0, 50, (37, 96)).astype("float32")  # with many equal ones
    values, places = topk(x.shape[1])(x)
    wanted = np.argsort(-x, axis=1, kind="stable")[:, :4]
    # Nothing is computed: the same values, at the same places.
    right = within("4 largest of 37 x 96", values, np.take_along_axis(x, wanted, axis=1), 0)
    return 0 if within("their places", places, wanted, 0) and right else 1


if __name__ == "__main__":
    sys.exit(main())
