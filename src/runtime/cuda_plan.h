// The launch plan of a CUDA program beyond what every engine checks: which functions run on which grid, and what each
// is given, as data over the symbols and scalars of a call.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/launch_plan.h"

namespace tilewright::runtime::cuda {

// A CUtensorMap: how TMA sees a buffer. Dimensions are innermost first, as cuTensorMapEncodeTiled counts them.
// Numbers of the enumerations are cuda.h's.
struct TensorMapPlan {
  enum class Swizzle : uint8_t { None = 0, Bytes32 = 1, Bytes64 = 2, Bytes128 = 3 };
  enum class Interleave : uint8_t { None = 0, Bytes16 = 1, Bytes32 = 2 };
  enum class L2Promotion : uint8_t { None = 0, Bytes64 = 1, Bytes128 = 2, Bytes256 = 3 };
  enum class OobFill : uint8_t { Zero = 0, Nan = 1 };  // what a load finds outside of the buffer

  std::string name;                 // of the buffer, in messages
  int buffer = 0;                   // index in BoundCall::buffers
  DType dtype;                      // of an element as TMA counts them: 4-bit elements are written as bytes of two
  int64_t byte_offset = 0;          // of the first element from the buffer's address
  std::vector<IntProgram> dims;     // elements, 1 to 5 of them
  std::vector<IntProgram> strides;  // elements, of dims[1] and on; dims[0] is dense
  std::vector<uint32_t> box;        // elements; one per dimension
  std::vector<uint32_t> element_strides;  // empty: all 1
  Swizzle swizzle = Swizzle::None;
  Interleave interleave = Interleave::None;
  L2Promotion l2_promotion = L2Promotion::Bytes256;  // at most: of rows that are whole lines
  OobFill oob_fill = OobFill::Zero;
};

// One parameter of a kernel.
struct BufferParameter {
  int buffer = 0;  // index in BoundCall::buffers: 8 bytes, null where null was given
};
struct ValueParameter {
  IntProgram value;  // a symbol, a scalar or an expression of them; a scalar alone may be a float (kernel_abi.text.h)
  int bytes = 8;     // 4 or 8: the value must fit, signed or unsigned
};
struct TensorMapParameter {
  int map = 0;  // index among the plan's: const __grid_constant__, 128 bytes, aligned to 64
};
struct ReportParameter {};  // a pointer to the report buffer (cuda_report.text.h); null in programs without sites
using KernelParameter = std::variant<BufferParameter, ValueParameter, TensorMapParameter, ReportParameter>;

struct KernelLaunch {
  std::string function;            // the extern "C" name
  std::array<IntProgram, 3> grid;  // blocks, whole clusters of them; a grid with a 0 runs nothing
  std::array<int, 3> block = {1, 1, 1};
  std::array<int, 3> cluster = {1, 1, 1};
  int dynamic_shared_bytes = 0;
  bool cooperative = false;
  bool programmatic_serialization = false;  // may begin before the launch before it ends; the kernel itself waits
  std::vector<KernelParameter> parameters;
};

struct CudaPlan {
  std::vector<TensorMapPlan> tensor_maps;
  std::vector<KernelLaunch> launches;  // in order, on one stream
};

// Bytes of one launch's parameters: what kernels get before CUDA 12.1.
inline constexpr int kMaxParameterBytes = 4096;
inline constexpr int kMaxParameters = 256;

// Bytes of the parameters as the compiler lays them out.
int parameter_bytes(const KernelLaunch& launch);

// InternalError if the plan contradicts itself, `plan`, or a rule of the hardware that needs no call to check;
// LaunchError if the parameters are too many. Once per plan.
void verify(const CudaPlan& cuda, const LaunchPlan& plan);

}  // namespace tilewright::runtime::cuda
