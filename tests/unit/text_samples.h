// Programs in text form that several tests read.
#pragma once

namespace tilewright::ir {

inline constexpr const char* kMatmulText = R"(program matmul {
  symbol M: int32
  param A: float16[M, 512]
  param B: float16[512, 256]
  param C: float16[M, 256]
  assume M % 128 == 0
  launch main(bx: 2, by: (M + 127) // 128) threads(tx: 128) swizzle(10, row) {
    shared A_shared: float16[128, 32]
    shared B_shared: float16[32, 128]
    fragment C_local: float32[128, 128]
    fill to=C_local value=0.0
    for k in 0..16 pipelined(stages=3) {
      copy from=A[by * 128 : 128, k * 32 : 32] to=A_shared
      copy from=B[k * 32 : 32, bx * 128 : 128] to=B_shared
      gemm a=A_shared b=B_shared c=C_local
    }
    map i in 128, j in 128 {
      C_local[i, j] = max(C_local[i, j], 0.0)
    }
    copy from=C_local to=C[by * 128 : 128, bx * 128 : 128]
  }
}
)";

// Every statement, every expression, every property of a buffer.
inline constexpr const char* kEverythingText = R"(program everything {
  symbol M: int32
  symbol S: int64
  param A: float16[M, 64] strides=[S, int64(1)] fill=1.0
  param I: float16[1, 8, 8, 16]
  param n: int32
  param p: pointer
  param out: int32[n]
  param x: float32[]
  global W: float32[M] workspace
  assume M % 16 == 0
  assume n > 0 and n < 100
  option contract=false
  option fast_math=true
  option strict=true
  launch first(bx: M // 16, by: 4) threads(tx: 256) cluster(2, 1) swizzle(8, column) {
    shared A_s: float16[2, 16, 64] layout=swizzled
    shared A_v: int32[16, 64] strides=[32, 1] view=A_s offset=0
    shared A_there: float16[2, 16, 64] view=A_s cta=1
    fragment acc: float32[16, 64] layout=(i, j) -> (i * 8 + j // 8, j % 8) replicate=2
    fragment sums: float32[16]
    fragment total: float32[16] reducer=sum
    local m: float32
    local regs: int8[4] layout=linear
    barrier full: uint64[2] arrive=[1, 256] use=full
    fill to=A_s value=0.0
    fill to=A_s[1, 0 : 16, 0 : 64] value=inf
    m = 0.5
    r0: int32 = 1
    role 0..32 {
      for k in 0..n {
        copy from=A[bx * 16 : 16, 0 : 64] to=A_s[k % 2, 0 : 16, 0 : 64] completion=(queue=cp_async, barrier=full[k % 2]) prefer="tma"
        expect barrier=full[k % 2] bytes=2048 arrive=true
        arrive barrier=full[k % 2] cta=1
        cp_async A_s[k % 2, 0, 0] = A[bx * 16, k]
        arrive barrier=full[k % 2] queue=cp_async
        arrive barrier=full[k % 2] by=warp
        copy from=A[bx * 16 : 16, 0 : 64] to=A_s[k % 2, 0 : 16, 0 : 64] completion=(queue=prefetch)
      }
    }
    role 32..128 {
      set_registers count=240
      for k in 2 : n - 2 pipelined(stages=2, order=[0, 1], stage=[0, 1]) {
        wait barrier=full[k % 2] parity=k // 2 % 2
        gemm a=A_s[k % 2, 0 : 16, 0 : 64] b=A_s[k % 2, 0 : 16, 0 : 64] c=acc[0 : 16, 0 : 16] transpose_b=true policy=full_row clear=k == 0 completion=(queue=wgmma)
      }
    }
    commit cp_async
    drain bulk_store pending=1 written=true
    sync block
    sync named barrier=3 count=128 arrive_only=true
    fence device
    copy from=sums to=W[bx * 16 : 16] combine=add
    copy from=I to=acc[0 : 16, 0 : 16] im2col=(row_block=by, column_block=1, kernel=3, stride=2, pad=1)
    reduce max from=acc to=sums dim=1 clear=false nan_propagate=true
    scan sum from=acc to=acc dim=1 reverse=true
    fill to=total value=0.0
    map i in 16, j in 64 {
      atomic add to=total[i] value=acc[i, j]
      old: float32 = atomic max to=W[i] value=acc[i, j]
      regs[0] = 7
      acc[i, j] = select(i < j and not j == 3, acc[i, j] * 2.0, fma(acc[i, j], -1.5, m))
    }
    finalize_reducer buffer=total
    for i: int64 in 0..S unroll {
      y: int64 = i * 3 + S - 5
      u: uint32 = uint32(y) - uint32(i) * 3 + 7
      v: float16 = float16(exp2(float32(u))) / 3.0
      w: float8_e4m3fn = float8_e4m3fn(v, stochastic, u)
      s: float8_e8m0fnu = float8_e8m0fnu(float32(v), toward_zero)
      b: int32 = bitcast(int32, u) >> 2 & 255 | 1 ^ ~n
      h: float64 = 1e-300
      t: float32 = -nan
      q: bool = isnan(t) or b != truncdiv(b, n) * min(b, 4)
      z: pointer = address(A[bx, 3])
      if q {
        break
      } else if b >= 4 {
        continue
      } else {
        return
      }
    }
    while r0 < n {
    }
    for i in 0..4 vectorized {
      W[i] = W[i + tx * 4] - (W[0] - m)
    }
    r: float32 = shuffle xor value=m lane=1 width=16
    r2: uint32 = vote ballot value=r > 0.0
    r3: uint32 = vote active_mask
    r4: int32 = atomic compare_exchange to=out[0] value=1 compare=0 order=acquire_release
    r5: int32 = atomic load to=out[0] order=acquire
    kept: int32 = atomic and to=out[0] value=3
    joined: int32 = atomic or to=out[0] value=4
    r6: int32 = call function="helper" source="int helper(int a) {\n  return a;\n}" args=[n, 3] reads=[A_s, out[0 : 4]] writes=[out[1]]
    print message="value \"r\"" values=[r, r2]
    print message="tile" buffer=acc
    assert n > 0 message="n is positive"
    assume r6 % 2 == 0
    T: pointer = p
    global tensor: float16[n, 8] address=T
    tensor[0, 0] = A[0, 0]
  }
  launch `second launch`(bx: 1) threads(tx: 32) {
    shared A_s: int32[4]
    A_s[0] = 1
  }
}
)";

}  // namespace tilewright::ir
