// The table of all examples, in the order in which the demo shows them.
#include "example.h"

namespace examples {

std::vector<Case> gemm_cases(Size size);
std::vector<Case> gemm_relu_cases(Size size);
std::vector<Case> int4_gemm_cases(Size size);
std::vector<Case> convolution_cases(Size size);
std::vector<Case> specialized_gemm_cases(Size size);
std::vector<Case> add_cases(Size size);
std::vector<Case> gated_residual_cases(Size size);
std::vector<Case> transpose_cases(Size size);
std::vector<Case> flash_attention_cases(Size size);
std::vector<Case> packed_attention_cases(Size size);
std::vector<Case> flash_decoding_cases(Size size);
std::vector<Case> mla_decode_cases(Size size);

const std::vector<Example>& all_examples() {
  static const std::vector<Example> table = {
      {"gemm", "matrix product", gemm_cases},
      {"gemm_relu", "matrix product and ReLU", gemm_relu_cases},
      {"int4_gemm", "matrix product with 4-bit weights", int4_gemm_cases},
      {"convolution", "convolution as a matrix product over patches", convolution_cases},
      {"specialized_gemm", "matrix product with roles and barriers by hand", specialized_gemm_cases},
      {"add", "sum of two tensors", add_cases},
      {"gated_residual", "SiLU, gate and residual in one pass", gated_residual_cases},
      {"transpose", "batched transpose", transpose_cases},
      {"flash_attention", "attention, forward", flash_attention_cases},
      {"packed_attention", "attention over sequences of different lengths", packed_attention_cases},
      {"flash_decoding", "attention of one query, keys split over blocks", flash_decoding_cases},
      {"mla_decode", "multi-head latent attention, decoding", mla_decode_cases},
  };
  return table;
}

}  // namespace examples
