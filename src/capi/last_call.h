// The last call of a kernel, as it was bound: one that differs only in where its tensors lie needs less checking.
#pragma once
#include <atomic>
#include <vector>

#include "runtime/executable.h"
#include "tilewright/c_api.h"

namespace tilewright::capi {

class LastCall {
 public:
  // Binds a call of the first version of the same program. False where it is another call than the last one, or where
  // its addresses want the checks of bind_call().
  bool bind(const runtime::LoadedProgram& program, const tw_argument* arguments, size_t count, runtime::BoundCall& out);
  // A call that the first version took, after all of its checks.
  void keep(const runtime::LoadedProgram& program, const tw_argument* arguments, size_t count,
            const runtime::BoundCall& bound);

 private:
  // A tensor beside its address, or a number.
  struct Known {
    int32_t kind;
    int64_t number = 0;  // its bits
    tw_tensor type{};    // shape and strides are in extents_, from `first` on
    size_t first = 0;
    int64_t begin = 0, end = 0;  // the bytes of its elements, counted from its first
    uint64_t unaligned = 0;      // bits that its address must not have
    bool written = false;
  };
  bool is_like(const Known& known, const tw_argument& argument) const;
  bool find_address(const Known& known, const tw_tensor& tensor, runtime::BoundCall& out) const;
  bool may_overlap(const runtime::BoundCall& bound) const;
  bool add(const runtime::LoadedProgram& program, size_t parameter, const tw_argument& argument,
           const runtime::BoundCall& bound);
  bool bind_alone(const runtime::LoadedProgram& program, const tw_argument* arguments, size_t count,
                  runtime::BoundCall& out) const;

  std::atomic_flag taken_;  // one thread at a time; others bind their calls from the beginning
  bool is_there_ = false;
  std::vector<Known> known_;
  std::vector<int64_t> extents_;
  std::vector<int64_t> integers_;
  int buffer_count_ = 0;
};

}  // namespace tilewright::capi
