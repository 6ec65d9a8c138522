#include "runtime/cuda_plan.h"

#include "runtime/cuda_tensor_map.h"
#include "support/diagnostic.h"

namespace tilewright::runtime::cuda {
namespace {

struct Limits {
  int buffers = 0, symbols = 0, scalars = 0, maps = 0;
};

Limits limits_of(const CudaPlan& cuda, const LaunchPlan& plan) {
  Limits limits;
  for (const Parameter& p : plan.parameters) ++(p.kind == Parameter::Kind::Tensor ? limits.buffers : limits.scalars);
  limits.buffers += static_cast<int>(plan.workspaces.size());
  limits.symbols = static_cast<int>(plan.symbols.size());
  limits.maps = static_cast<int>(cuda.tensor_maps.size());
  return limits;
}

int span_of(TensorMapPlan::Swizzle swizzle) {
  switch (swizzle) {
    case TensorMapPlan::Swizzle::None: return 256 * 16;  // the box alone limits it
    case TensorMapPlan::Swizzle::Bytes32: return 32;
    case TensorMapPlan::Swizzle::Bytes64: return 64;
    case TensorMapPlan::Swizzle::Bytes128: return 128;
  }
  return 0;
}

// What cuTensorMapEncodeTiled asks of the parts that are the same in every call (CUDA driver API, Tensor Map Object
// Management).
void verify_map(const TensorMapPlan& m, const Limits& limits) {
  const size_t rank = m.dims.size();
  check_internal(rank >= 1 && rank <= kMaxTensorMapRank, "tensor map of {}: rank {}", m.name, rank);
  check_internal(m.strides.size() == rank - 1 && m.box.size() == rank, "tensor map of {}: {} strides, {} box extents",
                 m.name, m.strides.size(), m.box.size());
  check_internal(m.element_strides.empty() || m.element_strides.size() == rank, "tensor map of {}: {} element strides",
                 m.name, m.element_strides.size());
  check_internal(m.buffer >= 0 && m.buffer < limits.buffers, "tensor map of {}: buffer {}", m.name, m.buffer);
  check_internal(tensor_map_type(m.dtype) >= 0, "tensor map of {}: no elements of {}", m.name, m.dtype.name());
  for (uint32_t extent : m.box)
    check_internal(extent >= 1 && extent <= 256, "tensor map of {}: a box extent of {}", m.name, extent);
  for (uint32_t stride : m.element_strides)
    check_internal(stride >= 1 && stride <= 8, "tensor map of {}: an element stride of {}", m.name, stride);
  if (m.interleave == TensorMapPlan::Interleave::None) {
    const int64_t inner = bytes_of(m.dtype, m.box[0]);
    check_internal(inner % 16 == 0 && inner <= span_of(m.swizzle), "tensor map of {}: rows of {} bytes with swizzle {}",
                   m.name, inner, static_cast<int>(m.swizzle));
  } else {
    check_internal(rank >= 3, "tensor map of {}: interleaved with rank {}", m.name, rank);
  }
  check_internal(m.oob_fill == TensorMapPlan::OobFill::Zero || m.dtype.is_float(), "tensor map of {}: NaN of {}",
                 m.name, m.dtype.name());
  for (const IntProgram& e : m.dims) verify(e, limits.symbols, limits.scalars);
  for (const IntProgram& e : m.strides) verify(e, limits.symbols, limits.scalars);
}

void verify_parameters(const KernelLaunch& launch, const LaunchPlan& plan, const Limits& limits) {
  for (const KernelParameter& parameter : launch.parameters) {
    if (const auto* buffer = std::get_if<BufferParameter>(&parameter)) {
      check_internal(buffer->buffer >= 0 && buffer->buffer < limits.buffers, "{}: buffer {}", launch.function,
                     buffer->buffer);
    } else if (const auto* value = std::get_if<ValueParameter>(&parameter)) {
      check_internal(value->bytes == 4 || value->bytes == 8, "{}: a value of {} bytes", launch.function, value->bytes);
      verify(value->value, limits.symbols, limits.scalars);
    } else if (const auto* map = std::get_if<TensorMapParameter>(&parameter)) {
      check_internal(map->map >= 0 && map->map < limits.maps, "{}: tensor map {}", launch.function, map->map);
    }
  }
  const int bytes = parameter_bytes(launch);
  if (bytes > kMaxParameterBytes || launch.parameters.size() > kMaxParameters)
    fail(Code::PlanTooLarge, {},
         fmt::format("{}: kernel '{}' takes {} parameters of {} bytes; at most {} of {}", plan.name, launch.function,
                     launch.parameters.size(), bytes, kMaxParameters, kMaxParameterBytes),
         "join tensors into one, or split the program");
}

void verify_launch(const KernelLaunch& launch, const LaunchPlan& plan, const Limits& limits) {
  for (const IntProgram& e : launch.grid) verify(e, limits.symbols, limits.scalars);
  for (size_t d = 0; d < 3; ++d)
    check_internal(launch.block[d] >= 1 && launch.cluster[d] >= 1, "{}: block {} or cluster {} in dimension {}",
                   launch.function, launch.block[d], launch.cluster[d], d);
  check_internal(launch.dynamic_shared_bytes >= 0, "{}: {} bytes of dynamic shared memory", launch.function,
                 launch.dynamic_shared_bytes);
  verify_parameters(launch, plan, limits);
}

}  // namespace

int parameter_bytes(const KernelLaunch& launch) {
  int bytes = 0;
  for (const KernelParameter& parameter : launch.parameters) {
    const auto* value = std::get_if<ValueParameter>(&parameter);
    const bool is_map = std::holds_alternative<TensorMapParameter>(parameter);
    const int size = is_map ? 128 : value ? value->bytes : 8, alignment = is_map ? 64 : size;
    bytes = (bytes + alignment - 1) / alignment * alignment + size;
  }
  return bytes;
}

void verify(const CudaPlan& cuda, const LaunchPlan& plan) {
  const Limits limits = limits_of(cuda, plan);
  for (const TensorMapPlan& map : cuda.tensor_maps) verify_map(map, limits);
  for (const KernelLaunch& launch : cuda.launches) verify_launch(launch, plan, limits);
}

}  // namespace tilewright::runtime::cuda
