#include "capi/last_call.h"

#include <algorithm>
#include <bit>

#include "runtime/shared_memory.h"

namespace tilewright::capi {
namespace {

// Of what others take meanwhile nothing is waited for.
class Turn {
 public:
  explicit Turn(std::atomic_flag& taken) : taken_(taken), mine_(!taken.test_and_set(std::memory_order_acquire)) {}
  Turn(const Turn&) = delete;
  ~Turn() {
    if (mine_) taken_.clear(std::memory_order_release);
  }
  explicit operator bool() const { return mine_; }

 private:
  std::atomic_flag& taken_;
  bool mine_;
};

uintptr_t address_of(const tw_tensor& tensor) { return reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset; }

bool is_tensor(const runtime::Parameter& p) { return p.kind == runtime::Parameter::Kind::Tensor; }

}  // namespace

bool LastCall::is_like(const Known& known, const tw_argument& argument) const {
  if (argument.kind != known.kind) return false;
  if (argument.kind != TW_TENSOR) return argument.kind == TW_NONE || argument.as.integer == known.number;
  const tw_tensor &t = *argument.as.tensor, &type = known.type;
  if (t.rank != type.rank || t.type_code != type.type_code || t.type_bits != type.type_bits ||
      t.type_lanes != type.type_lanes || t.device_type != type.device_type || t.device_index != type.device_index ||
      !t.strides != !type.strides)
    return false;
  const auto rank = static_cast<size_t>(t.rank);
  const int64_t* extents = extents_.data() + known.first;
  return std::equal(t.shape, t.shape + rank, extents) &&
         (!t.strides || std::equal(t.strides, t.strides + rank, extents + rank));
}

bool LastCall::find_address(const Known& known, const tw_tensor& tensor, runtime::BoundCall& out) const {
  const uintptr_t address = tensor.data ? address_of(tensor) : 0;
  if (!address || (address & known.unaligned)) return false;
  out.buffers[static_cast<size_t>(out.buffer_count++)] = reinterpret_cast<void*>(address);
  return true;
}

// Where tensors share bytes, bind_call() has to see which.
bool LastCall::may_overlap(const runtime::BoundCall& bound) const {
  const auto extent = [&](const Known& k, size_t buffer) {
    const auto address = reinterpret_cast<uintptr_t>(bound.buffers[buffer]);
    return runtime::Extent{address + static_cast<uintptr_t>(k.begin), address + static_cast<uintptr_t>(k.end)};
  };
  for (size_t i = 0, buffer = 0; i < known_.size(); ++i) {
    if (known_[i].kind != TW_TENSOR) continue;
    for (size_t k = 0, other = 0; k < i; ++k) {
      if (known_[k].kind != TW_TENSOR) continue;
      if ((known_[i].written || known_[k].written) && extent(known_[i], buffer).meets(extent(known_[k], other)))
        return true;
      ++other;
    }
    ++buffer;
  }
  return false;
}

bool LastCall::bind_alone(const runtime::LoadedProgram& program, const tw_argument* arguments, size_t count,
                          runtime::BoundCall& out) const {
  if (!is_there_ || count != known_.size()) return false;
  out.buffer_count = 0;
  for (size_t i = 0; i < count; ++i)
    if (!is_like(known_[i], arguments[i]) ||
        (known_[i].kind == TW_TENSOR && !find_address(known_[i], *arguments[i].as.tensor, out)))
      return false;
  if (may_overlap(out)) return false;
  std::fill(out.buffers.begin() + out.buffer_count, out.buffers.begin() + buffer_count_, nullptr);  // workspaces
  std::copy(integers_.begin(), integers_.end(), out.integers.begin());
  out.plan = &program.first().plan;
  out.arguments = {};
  out.nothing_to_do = false;
  out.device_index = 0;
  out.buffer_count = buffer_count_;
  out.integer_count = static_cast<int>(integers_.size());
  return true;
}

bool LastCall::bind(const runtime::LoadedProgram& program, const tw_argument* arguments, size_t count,
                    runtime::BoundCall& out) {
  const Turn turn(taken_);
  return turn && bind_alone(program, arguments, count, out);
}

// False: calls with such an argument are bound from the beginning, each of them.
bool LastCall::add(const runtime::LoadedProgram& program, size_t parameter, const tw_argument& argument,
                   const runtime::BoundCall& bound) {
  const runtime::Parameter& p = program.plan().parameters[parameter];
  if (is_tensor(p) != (argument.kind == TW_TENSOR)) return false;
  Known& known = known_.emplace_back(Known{argument.kind});
  if (!is_tensor(p)) {
    known.number = argument.as.integer;
    return true;
  }
  const tw_tensor& tensor = *argument.as.tensor;
  const auto rank = static_cast<size_t>(tensor.rank);
  known.type = tensor, known.first = extents_.size();
  extents_.insert(extents_.end(), tensor.shape, tensor.shape + rank);
  if (tensor.strides) extents_.insert(extents_.end(), tensor.strides, tensor.strides + rank);
  const NDArray& array = bound.arguments[parameter].tensor();
  if (array.size() == 0) return false;
  const runtime::Extent extent = runtime::extent_of(array);
  const auto address = reinterpret_cast<uintptr_t>(array.data());
  known.begin = static_cast<int64_t>(extent.begin - address), known.end = static_cast<int64_t>(extent.end - address);
  known.written = p.written;
  int alignment = p.alignment > 0 ? p.alignment : static_cast<int>(bytes_of(p.dtype, 1));
  alignment = std::max(alignment, program.first().plan.parameters[parameter].alignment);
  known.unaligned = static_cast<uint64_t>(alignment) - 1;
  return std::has_single_bit(static_cast<unsigned>(alignment));
}

void LastCall::keep(const runtime::LoadedProgram& program, const tw_argument* arguments, size_t count,
                    const runtime::BoundCall& bound) {
  if (program.first().callee->reads_arguments()) return;
  const Turn turn(taken_);
  if (!turn) return;
  known_.clear(), extents_.clear();
  is_there_ = true;
  for (size_t i = 0; i < count; ++i) is_there_ = is_there_ && add(program, i, arguments[i], bound);
  integers_.assign(bound.integers.begin(), bound.integers.begin() + bound.integer_count);
  buffer_count_ = bound.buffer_count;
}

}  // namespace tilewright::capi
