// Scalar pieces for which devices of compute capability 9.0 and above have instructions of the same meaning (PTX ISA
// 9.7.9.21, cvt with .tf32: .rn, to nearest even, is of sm_90).

//@ round_tf32: types
__device__ __forceinline__ float round_tf32(float x) {
  uint32_t bits;
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return __uint_as_float(bits);
}
