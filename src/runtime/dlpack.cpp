// NDArray to and from DLPack.
#include "runtime/dlpack.h"

#include "scalar/dtype_rows.h"
#include "support/diagnostic.h"
#include "tilewright/tensor.h"

namespace tilewright {
namespace {

constexpr uint32_t kMajor = 1, kMinor = 1;
constexpr uint64_t kReadOnly = 1;  // DLPACK_FLAG_BITMASK_READ_ONLY
constexpr uint64_t kUnpacked = 4;  // DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED: 4-bit elements with a byte each

DLDataType dlpack_type(DType type) {
  if (type == tf32) type = f32;  // stored alike
  const DTypeRow* row = dtype_row(type);
  if (!row || row->dlpack_code < 0)
    fail(Code::DlpackInvalid, {}, fmt::format("DLPack has no type for {}", type.name()));
  return {static_cast<uint8_t>(row->dlpack_code), static_cast<uint8_t>(type.storage_bits()), 1};
}

NDArray import(const DLTensor& t, uint64_t flags) {
  const std::optional<DType> dtype = dtype_of_dlpack(t.dtype.code, t.dtype.bits, t.dtype.lanes);
  if (!dtype)
    fail(Code::DlpackInvalid, {},
         fmt::format("a DLPack tensor of type code {}, {} bits, {} lanes has no dtype here", t.dtype.code, t.dtype.bits,
                     t.dtype.lanes));
  if (t.ndim < 0 || t.ndim > NDArray::max_rank)
    fail(Code::DlpackInvalid, {},
         fmt::format("a DLPack tensor has {} dimensions; at most {}", t.ndim, NDArray::max_rank));
  if (flags & kReadOnly)
    fail(Code::DlpackInvalid, {}, "a DLPack tensor is read-only, and a kernel could write to it", "pass a copy");
  if (dtype->is_packed() && (flags & kUnpacked))
    fail(Code::DlpackInvalid, {},
         fmt::format("a DLPack tensor of {} is not packed two elements to a byte", dtype->name()));
  const size_t rank = static_cast<size_t>(t.ndim);
  const std::span<const int64_t> shape(t.shape, rank);
  const std::span<const int64_t> strides(t.strides, t.strides ? rank : 0);
  return NDArray::borrow(t.data, shape, *dtype, strides, static_cast<int64_t>(t.byte_offset), {},
                         {t.device.device_type, t.device.device_id});
}

template <class Managed>
std::shared_ptr<void> owner_of(Managed* managed) {
  return std::shared_ptr<void>(managed, [](void* self) {
    auto* tensor = static_cast<Managed*>(self);
    if (tensor->deleter) tensor->deleter(tensor);
  });
}

template <class Managed>
struct Exported {
  Managed managed{};
  NDArray array;  // shapes, strides and memory that `managed` points to
  std::array<int64_t, NDArray::max_rank> shape{}, strides{};
};

template <class Managed>
Managed* give(const NDArray& array) {
  if (array.is_null()) fail(Code::DlpackInvalid, {}, "a null array has no DLPack tensor");
  const DLDataType type = dlpack_type(array.dtype());
  auto* exported = new Exported<Managed>;
  exported->array = array;
  std::copy(array.shape().begin(), array.shape().end(), exported->shape.begin());
  std::copy(array.strides().begin(), array.strides().end(), exported->strides.begin());
  exported->managed.dl_tensor = {array.data(),
                                 {array.device().type, array.device().index},
                                 array.rank(),
                                 type,
                                 exported->shape.data(),
                                 exported->strides.data(),
                                 0};
  exported->managed.manager_ctx = exported;
  exported->managed.deleter = [](Managed* self) { delete static_cast<Exported<Managed>*>(self->manager_ctx); };
  return &exported->managed;
}

}  // namespace

NDArray NDArray::from_dlpack(DLManagedTensor* tensor) {
  NDArray array = import(tensor->dl_tensor, 0);
  array.owner_ = owner_of(tensor);
  return array;
}

NDArray NDArray::from_dlpack(DLManagedTensorVersioned* tensor) {
  // Another major version may lay out everything but the version and the deleter differently.
  if (tensor->version.major != kMajor)
    fail(Code::DlpackInvalid, {},
         fmt::format("a tensor of DLPack {}.{}; understood is {}.x", tensor->version.major, tensor->version.minor,
                     kMajor));
  NDArray array = import(tensor->dl_tensor, tensor->flags);
  array.owner_ = owner_of(tensor);
  return array;
}

DLManagedTensor* NDArray::to_dlpack() const { return give<DLManagedTensor>(*this); }

DLManagedTensorVersioned* NDArray::to_dlpack_versioned() const {
  DLManagedTensorVersioned* tensor = give<DLManagedTensorVersioned>(*this);
  tensor->version = {kMajor, kMinor};
  return tensor;
}

}  // namespace tilewright
