#include "driver/npy.h"

#include <charconv>

#include "support/diagnostic.h"

namespace tilewright {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

struct Name {
  std::string_view text;
  DType type;
};
constexpr Name kNames[] = {{"|b1", boolean}, {"|i1", i8},  {"<i2", i16}, {"<i4", i32}, {"<i8", i64}, {"|u1", u8},
                           {"<u2", u16},     {"<u4", u32}, {"<u8", u64}, {"<f2", f16}, {"<f4", f32}, {"<f8", f64}};

[[noreturn]] void refuse(const std::string& name, const std::string& message) {
  fail(Code::NpyFile, {}, fmt::format("{}: {}", name, message));
}

// The value of a key of the header, a Python dictionary of which only this form is written:
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
std::string_view value_of(std::string_view header, std::string_view key, const std::string& name) {
  const std::string quoted = fmt::format("'{}':", key);
  const size_t at = header.find(quoted);
  if (at == std::string_view::npos) refuse(name, fmt::format("the header has no {}", key));
  std::string_view rest = header.substr(at + quoted.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

std::vector<int64_t> shape_of(std::string_view text, const std::string& name) {
  const size_t end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos) refuse(name, "the shape is not a tuple");
  text = text.substr(1, end - 1);
  std::vector<int64_t> shape;
  int64_t elements = 1;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" ,"), text.size()));
    if (text.empty()) return shape;
    int64_t extent = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc() || extent < 0) refuse(name, "an extent is not a number");
    if (shape.size() == static_cast<size_t>(NDArray::max_rank)) refuse(name, "more than 8 dimensions");
    if (__builtin_mul_overflow(elements, std::max<int64_t>(extent, 1), &elements)) refuse(name, "an impossible shape");
    text.remove_prefix(static_cast<size_t>(stop - text.data()));
    shape.push_back(extent);
  }
}

}  // namespace

bool npy_has(DType type) {
  return std::any_of(std::begin(kNames), std::end(kNames), [&](const Name& n) { return n.type == type; });
}

std::string to_npy(const NDArray& array) {
  const auto* at =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& n) { return n.type == array.dtype(); });
  if (at == std::end(kNames))
    fail(Code::NpyFile, {}, fmt::format("{} has no name in .npy files", array.dtype().name()));
  std::string shape;
  for (int64_t e : array.shape()) shape += fmt::format("{}, ", e);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", at->text, shape);
  // The data begin at a multiple of 64.
  const size_t prefix = kMagic.size() + 4;
  header.append(63 - (prefix + header.size()) % 64, ' ').append("\n");
  std::string out(kMagic);
  out.append({'\1', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)});
  const NDArray rows = array.is_contiguous() ? array : array.clone();
  out.append(header);
  return out.append(static_cast<const char*>(rows.data()), static_cast<size_t>(bytes_of(rows.dtype(), rows.size())));
}

NDArray from_npy(std::string_view bytes, const std::string& name) {
  if (!bytes.starts_with(kMagic) || bytes.size() < 12) refuse(name, "not an .npy file");
  const int version = bytes[6];
  if (version < 1 || version > 3) refuse(name, fmt::format(".npy version {} is not known", version));
  const size_t length_bytes = version == 1 ? 2 : 4;
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, length_bytes);
  bytes.remove_prefix(8 + length_bytes);
  if (length > bytes.size()) refuse(name, "the file ends in its header");
  const std::string_view header = bytes.substr(0, length);
  bytes.remove_prefix(length);
  std::string_view descr = value_of(header, "descr", name);
  const char quote = descr.empty() ? ' ' : descr[0];
  const size_t end = descr.find(quote, 1);
  if ((quote != '\'' && quote != '"') || end == std::string_view::npos) refuse(name, "elements of a compound type");
  descr = descr.substr(1, end - 1);
  const auto* at = std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& n) { return n.text == descr; });
  if (at == std::end(kNames)) refuse(name, fmt::format("no dtype for '{}'", descr));
  if (!value_of(header, "fortran_order", name).starts_with("False")) refuse(name, "Fortran order is not read");
  const std::vector<int64_t> shape = shape_of(value_of(header, "shape", name), name);
  int64_t elements = 1;
  for (int64_t e : shape) elements *= e;
  if (elements > INT64_MAX / 8 || static_cast<uint64_t>(bytes_of(at->type, elements)) != bytes.size())
    refuse(name,
           fmt::format("{} bytes of data do not make {} elements of {}", bytes.size(), elements, at->type.name()));
  NDArray array = NDArray::empty(shape, at->type);
  if (!bytes.empty()) std::memcpy(array.data(), bytes.data(), bytes.size());
  return array;
}

}  // namespace tilewright
