#include "runtime/lowered_kernel.h"

namespace tilewright::runtime {
namespace {

using cuda::BufferParameter, cuda::CudaPlan, cuda::KernelLaunch, cuda::ReportParameter, cuda::TensorMapParameter,
    cuda::TensorMapPlan, cuda::ValueParameter;

template <class T, class To>
concept Is = std::same_as<std::remove_const_t<T>, To>;

// The fields of each struct, bound so that a new one does not compile before it is written here.
void fields(Is<SourceLocation> auto& n, auto&& f) {
  auto& [file, line, column] = n;
  f(file), f(line), f(column);
}
void fields(Is<IntOp> auto& n, auto&& f) {
  auto& [kind, value] = n;
  f(kind), f(value);
}
void fields(Is<IntProgram> auto& n, auto&& f) {
  auto& [ops] = n;
  f(ops);
}
void fields(Is<Site::Operand> auto& n, auto&& f) {
  auto& [name, dtype] = n;
  f(name), f(dtype);
}
void fields(Is<Site> auto& n, auto&& f) {
  auto& [kind, message, location, operands] = n;
  f(kind), f(message), f(location), f(operands);
}
void fields(Is<TensorMapPlan> auto& n, auto&& f) {
  auto& [name, buffer, dtype, offset, dims, strides, box, element_strides, swizzle, interleave, promotion, fill] = n;
  f(name), f(buffer), f(dtype), f(offset), f(dims), f(strides), f(box), f(element_strides), f(swizzle), f(interleave),
      f(promotion), f(fill);
}
void fields(Is<BufferParameter> auto& n, auto&& f) {
  auto& [buffer] = n;
  f(buffer);
}
void fields(Is<ValueParameter> auto& n, auto&& f) {
  auto& [value, bytes] = n;
  f(value), f(bytes);
}
void fields(Is<TensorMapParameter> auto& n, auto&& f) {
  auto& [map] = n;
  f(map);
}
void fields(Is<ReportParameter> auto&, auto&&) {}
void fields(Is<KernelLaunch> auto& n, auto&& f) {
  auto& [function, grid, block, cluster, shared, cooperative, serialization, parameters] = n;
  f(function), f(grid), f(block), f(cluster), f(shared), f(cooperative), f(serialization), f(parameters);
}
void fields(Is<CudaPlan> auto& n, auto&& f) {
  auto& [maps, launches] = n;
  f(maps), f(launches);
}
void fields(Is<KernelWorkspace> auto& n, auto&& f) {
  auto& [bytes, zeroed] = n;
  f(bytes), f(zeroed);
}
// Without the text, which is the entry's payload.
void fields(Is<LoweredKernel> auto& n, auto&& f) {
  auto& [text, sites, plan, alignments, workspaces] = n;
  f(sites), f(plan), f(alignments), f(workspaces);
}

// The last enumerator: what a damaged number is held against.
constexpr IntOp::Kind last(IntOp::Kind) { return IntOp::Kind::Fits; }
constexpr Site::Kind last(Site::Kind) { return Site::Kind::Overflow; }
constexpr TensorMapPlan::Swizzle last(TensorMapPlan::Swizzle) { return TensorMapPlan::Swizzle::Bytes128; }
constexpr TensorMapPlan::Interleave last(TensorMapPlan::Interleave) { return TensorMapPlan::Interleave::Bytes32; }
constexpr TensorMapPlan::L2Promotion last(TensorMapPlan::L2Promotion) { return TensorMapPlan::L2Promotion::Bytes256; }
constexpr TensorMapPlan::OobFill last(TensorMapPlan::OobFill) { return TensorMapPlan::OobFill::Nan; }

// Numbers as they lie in memory, strings and lists after their length, variants after their index, types by their name.
class Writer {
 public:
  std::string bytes;

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void operator()(const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void operator()(const std::string& value) {
    (*this)(value.size());
    bytes += value;
  }
  void operator()(const DType& type) { (*this)(type.name()); }
  template <class T>
  void operator()(const std::vector<T>& list) {
    (*this)(list.size());
    for (const T& item : list) (*this)(item);
  }
  template <class T, size_t n>
  void operator()(const std::array<T, n>& list) {
    for (const T& item : list) (*this)(item);
  }
  template <class... T>
  void operator()(const std::variant<T...>& value) {
    (*this)(static_cast<uint8_t>(value.index()));
    std::visit([&](const auto& chosen) { (*this)(chosen); }, value);
  }
  template <class T>
  requires requires(const T& n, Writer& w) { fields(n, w); }
  void operator()(const T& node) { fields(node, *this); }
};

// Takes what Writer wrote. Once something is wrong all further values stay as they are.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  bool done() const { return good_ && left_.empty(); }

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void operator()(T& value) {
    if (good_ = good_ && sizeof value <= left_.size(); !good_) return;
    T read;
    std::memcpy(&read, left_.data(), sizeof read);
    left_.remove_prefix(sizeof read);
    if constexpr (std::is_enum_v<T>) good_ = read <= last(T{});
    if (good_) value = read;
  }
  void operator()(bool& value) {
    uint8_t read = 0;
    (*this)(read);
    good_ = good_ && read <= 1;
    value = read == 1;
  }
  void operator()(std::string& value) {
    const size_t size = length();
    value.assign(left_.substr(0, size));
    left_.remove_prefix(size);
  }
  void operator()(DType& type) {
    std::string name;
    (*this)(name);
    const std::optional<DType> named = parse_dtype(name);
    good_ = good_ && named && named->name() == name;  // no alias
    if (good_) type = *named;
  }
  template <class T>
  void operator()(std::vector<T>& list) {
    for (size_t n = length(); n > 0 && good_; --n) (*this)(list.emplace_back());
  }
  template <class T, size_t n>
  void operator()(std::array<T, n>& list) {
    for (T& item : list) (*this)(item);
  }
  template <class... T>
  void operator()(std::variant<T...>& value) {
    uint8_t index = 0;
    (*this)(index);
    size_t i = 0;
    const auto take = [&](auto chosen) {
      if (i++ != index || !good_) return;
      (*this)(chosen);
      value = std::move(chosen);
    };
    (take(T{}), ...);
    good_ = good_ && index < sizeof...(T);
  }
  template <class T>
  requires requires(T& n, Reader& r) { fields(n, r); }
  void operator()(T& node) { fields(node, *this); }

 private:
  // No list is longer than the bytes that are left: every item takes one, or more.
  size_t length() {
    size_t size = 0;
    (*this)(size);
    good_ = good_ && size <= left_.size();
    return good_ ? size : 0;
  }

  std::string_view left_;
  bool good_ = true;
};

}  // namespace

CacheEntry encode_lowered(const LoweredKernel& kernel) {
  Writer writer;
  writer(kernel);
  return {std::move(writer.bytes), kernel.text};
}

std::optional<LoweredKernel> decode_lowered(CacheEntry entry) {
  LoweredKernel kernel;
  Reader reader(entry.metadata);
  reader(kernel);
  if (!reader.done()) return std::nullopt;
  kernel.text = std::move(entry.payload);
  return kernel;
}

LoweredPlace::LoweredPlace(std::string_view origin, std::string_view build) {
  if (!build.empty()) key_ = fmt::format("tilewright lowered kernel 1\n{}\n{}", build, origin);
}

std::optional<LoweredKernel> LoweredPlace::find() const {
  if (key_.empty()) return std::nullopt;
  std::optional<CacheEntry> entry = KernelCache::from_environment().leave_words_to_another().find(key_);
  return entry ? decode_lowered(std::move(*entry)) : std::nullopt;
}

void LoweredPlace::keep(const LoweredKernel& kernel) const {
  if (!key_.empty()) KernelCache::from_environment().leave_words_to_another().store(key_, encode_lowered(kernel));
}

}  // namespace tilewright::runtime
