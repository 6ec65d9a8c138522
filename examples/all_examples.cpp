// The table of all examples, in the order in which the demo shows them.
#include "example.h"

namespace examples {

std::vector<Case> gemm_cases(Size size);
std::vector<Case> gemm_relu_cases(Size size);
std::vector<Case> batched_gemm_cases(Size size);
std::vector<Case> split_gemm_cases(Size size);
std::vector<Case> split_reduce_gemm_cases(Size size);
std::vector<Case> persistent_gemm_cases(Size size);
std::vector<Case> grouped_gemm_cases(Size size);
std::vector<Case> masked_gemm_cases(Size size);
std::vector<Case> fp8_gemm_cases(Size size);
std::vector<Case> int4_gemm_cases(Size size);
std::vector<Case> sparse_gemm_cases(Size size);
std::vector<Case> convolution_cases(Size size);
std::vector<Case> specialized_gemm_cases(Size size);
std::vector<Case> add_cases(Size size);
std::vector<Case> gated_residual_cases(Size size);
std::vector<Case> transpose_cases(Size size);
std::vector<Case> flash_attention_cases(Size size);
std::vector<Case> packed_attention_cases(Size size);
std::vector<Case> attention_backward_cases(Size size);
std::vector<Case> specialized_attention_cases(Size size);
std::vector<Case> block_sparse_attention_cases(Size size);
std::vector<Case> linear_attention_cases(Size size);
std::vector<Case> flash_decoding_cases(Size size);
std::vector<Case> mla_decode_cases(Size size);
std::vector<Case> mla_decode_specialized_cases(Size size);
std::vector<Case> paged_mla_cases(Size size);
std::vector<Case> sparse_mla_cases(Size size);
std::vector<Case> softmax_cases(Size size);
std::vector<Case> online_softmax_cases(Size size);
std::vector<Case> rms_norm_cases(Size size);
std::vector<Case> rms_norm_silu_cases(Size size);
std::vector<Case> layer_norm_cases(Size size);
std::vector<Case> topk_gate_cases(Size size);
std::vector<Case> expert_mapping_cases(Size size);
std::vector<Case> per_token_cast_cases(Size size);
std::vector<Case> per_block_cast_cases(Size size);
std::vector<Case> swiglu_quantize_cases(Size size);
std::vector<Case> sinkhorn_cases(Size size);
std::vector<Case> cumsum_cases(Size size);
std::vector<Case> histogram_cases(Size size);

const std::vector<Example>& all_examples() {
  static const std::vector<Example> table = {
      {"gemm", "matrix product", gemm_cases},
      {"gemm_relu", "matrix product and ReLU", gemm_relu_cases},
      {"batched_gemm", "matrix products of a batch, either operand transposed", batched_gemm_cases},
      {"split_gemm", "matrix product, parts of K added by atomics", split_gemm_cases},
      {"split_reduce_gemm", "matrix product, parts of K added by a second launch", split_reduce_gemm_cases},
      {"persistent_gemm", "matrix product, each block walks over tiles", persistent_gemm_cases},
      {"grouped_gemm", "matrix products of groups of rows, packed", grouped_gemm_cases},
      {"masked_gemm", "matrix products of groups of rows, with gaps", masked_gemm_cases},
      {"fp8_gemm", "matrix product of 8-bit floats with scales", fp8_gemm_cases},
      {"int4_gemm", "matrix product with 4-bit weights", int4_gemm_cases},
      {"sparse_gemm", "matrix product, two of four elements of A kept", sparse_gemm_cases},
      {"convolution", "convolution as a matrix product over patches", convolution_cases},
      {"specialized_gemm", "matrix product with roles and barriers by hand", specialized_gemm_cases},
      {"add", "sum of two tensors", add_cases},
      {"gated_residual", "SiLU, gate and residual in one pass", gated_residual_cases},
      {"transpose", "batched transpose", transpose_cases},
      {"flash_attention", "attention, forward", flash_attention_cases},
      {"packed_attention", "attention over sequences of different lengths", packed_attention_cases},
      {"attention_backward", "attention, backward", attention_backward_cases},
      {"specialized_attention", "attention with roles and barriers by hand", specialized_attention_cases},
      {"block_sparse_attention", "attention over the blocks of keys of a mask", block_sparse_attention_cases},
      {"linear_attention", "linear attention, causal, in chunks", linear_attention_cases},
      {"flash_decoding", "attention of one query, keys split over blocks", flash_decoding_cases},
      {"mla_decode", "multi-head latent attention, decoding", mla_decode_cases},
      {"mla_decode_specialized", "the same with roles and barriers by hand", mla_decode_specialized_cases},
      {"paged_mla", "latent attention over pages, decoding", paged_mla_cases},
      {"sparse_mla", "latent attention over chosen rows", sparse_mla_cases},
      {"softmax", "softmax of rows on chip", softmax_cases},
      {"online_softmax", "softmax over tiles of a row", online_softmax_cases},
      {"rms_norm", "root mean square normalization", rms_norm_cases},
      {"rms_norm_silu", "RMSNorm and SiLU, rows of any length", rms_norm_silu_cases},
      {"layer_norm", "layer normalization", layer_norm_cases},
      {"topk_gate", "the best experts of each token", topk_gate_cases},
      {"expert_mapping", "tokens sorted by expert, in thread code", expert_mapping_cases},
      {"per_token_cast", "8-bit floats, a scale per 1x128", per_token_cast_cases},
      {"per_block_cast", "8-bit floats, a scale per 128x128", per_block_cast_cases},
      {"swiglu_quantize", "SwiGLU, then 8-bit floats", swiglu_quantize_cases},
      {"sinkhorn", "matrices scaled to rows and columns of sum one", sinkhorn_cases},
      {"cumsum", "cumulative sums along rows", cumsum_cases},
      {"histogram", "counts by atomics", histogram_cases},
  };
  return table;
}

}  // namespace examples
