// The text form of layouts, both ways.
#include <cctype>

#include "layout/fragment.h"
#include "layout/memory.h"

namespace tilewright {
namespace {

constexpr std::string_view kHomes = "RLWGC";

void append_factor(std::string& out, const Factor& f) {
  out += fmt::format("{}:{}({})", f.extent, kHomes[static_cast<size_t>(f.home)], f.stride);
}

std::string text_of_shape(const std::vector<int64_t>& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

// Reads one layout from left to right; every fault names the column.
class Reader {
 public:
  Reader(std::string_view text, const SourceLocation& location) : text_(text), location_(location) {}

  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }
  bool take(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) wrong(fmt::format("'{}' is expected", word));
  }
  int64_t number() {
    skip_space();
    const size_t begin = at_;
    int64_t value = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) && at_ - begin < 18)
      value = value * 10 + (text_[at_++] - '0');
    if (at_ == begin) wrong("a number is expected");
    return value;
  }
  std::string word() {
    skip_space();
    const size_t begin = at_;
    while (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_]))) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::vector<int64_t> shape() {
    std::vector<int64_t> extents;
    expect("(");
    while (!take(")")) {
      if (!extents.empty()) expect(",");
      extents.push_back(number());
    }
    return extents;
  }
  Factor factor() {
    Factor f;
    f.extent = number();
    expect(":");
    skip_space();
    const size_t home = at_ < text_.size() ? kHomes.find(text_[at_]) : std::string_view::npos;
    if (home == std::string_view::npos) wrong("a home is expected: R, L, W, G or C");
    ++at_;
    f.home = static_cast<Home>(home);
    expect("(");
    f.stride = number();
    expect(")");
    return f;
  }
  Mode mode() {
    Mode m;
    m.extent = number();
    expect(":");
    m.stride = number();
    return m;
  }
  [[noreturn]] void wrong(const std::string& what) {
    fail(Code::TextLayout, location_, fmt::format("column {} of the layout '{}': {}", at_ + 1, text_, what),
         "a fragment reads (64, 32): [4:W(1) 16:L(2)] x [16:R(1) 2:L(1)]; memory reads (64, 32): [64:32] x [32:1]; "
         "bits 16");
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  std::string_view text_;
  SourceLocation location_;
  size_t at_ = 0;
};

std::optional<Combine> combine_of(Reader& reader) {
  const std::string name = reader.word();
  const auto names = enum_names(Combine{});
  for (size_t i = 0; i < names.size(); ++i)
    if (name == names[i]) return static_cast<Combine>(i);
  reader.wrong("a way to combine is expected: sum, max, min, and, or, xor");
}

}  // namespace

std::string FragmentLayout::text() const {
  std::string out = text_of_shape(shape_) + ":";
  for (int d = 0; d < rank(); ++d) {
    out += d == 0 ? " [" : " x [";
    for (size_t i = 0; i < dims_[d].size(); ++i) {
      if (i > 0) out += ' ';
      append_factor(out, dims_[d][i]);
    }
    out += ']';
  }
  for (size_t i = 0; i < copies_.size(); ++i) {
    const bool starts = i == 0 || copies_[i].partial != copies_[i - 1].partial;
    const char* kind = copies_[i].partial ? enum_names(Combine{})[static_cast<size_t>(*copies_[i].partial)] : "";
    if (starts) out += copies_[i].partial ? fmt::format("; partial {} [", kind) : "; replica [";
    append_factor(out, copies_[i].factor);
    out += i + 1 == copies_.size() || copies_[i + 1].partial != copies_[i].partial ? "]" : " ";
  }
  return out;
}

FragmentLayout parse_fragment_layout(std::string_view text, const SourceLocation& location) {
  Reader reader(text, location);
  std::vector<int64_t> shape = reader.shape();
  FragmentLayout::Dims dims;
  std::vector<Copies> copies;
  reader.expect(":");
  while (dims.size() < shape.size()) {
    if (!dims.empty()) reader.expect("x");
    reader.expect("[");
    dims.emplace_back();
    while (!reader.take("]")) dims.back().push_back(reader.factor());
  }
  while (reader.take(";")) {
    std::optional<Combine> partial;
    if (!reader.take("replica")) {
      reader.expect("partial");
      partial = combine_of(reader);
    }
    reader.expect("[");
    while (!reader.take("]")) copies.push_back({reader.factor(), partial});
  }
  if (!reader.at_end()) reader.wrong("nothing more is expected");
  if (const std::string fault = FragmentLayout::fault(shape, dims, copies); !fault.empty()) reader.wrong(fault);
  return FragmentLayout(std::move(shape), std::move(dims), std::move(copies));
}

std::string MemoryLayout::text() const {
  std::string out = text_of_shape(shape_) + ":";
  for (int d = 0; d < rank(); ++d) {
    out += d == 0 ? " [" : " x [";
    for (size_t i = 0; i < dims_[d].size(); ++i)
      out += fmt::format("{}{}:{}", i > 0 ? " " : "", dims_[d][i].extent, dims_[d][i].stride);
    out += ']';
  }
  out += fmt::format("; bits {}", element_bits_);
  if (swizzle_.bits > 0) out += fmt::format("; swizzle ({}, {}, {})", swizzle_.bits, swizzle_.base, swizzle_.shift);
  return out;
}

MemoryLayout parse_memory_layout(std::string_view text, const SourceLocation& location) {
  Reader reader(text, location);
  std::vector<int64_t> shape = reader.shape();
  MemoryLayout::Dims dims;
  reader.expect(":");
  while (dims.size() < shape.size()) {
    if (!dims.empty()) reader.expect("x");
    reader.expect("[");
    dims.emplace_back();
    while (!reader.take("]")) dims.back().push_back(reader.mode());
  }
  reader.expect(";");
  reader.expect("bits");
  const int64_t bits = reader.number();
  Swizzle swizzle;
  if (reader.take(";")) {
    reader.expect("swizzle");
    const std::vector<int64_t> numbers = reader.shape();
    if (numbers.size() != 3 || std::any_of(numbers.begin(), numbers.end(), [](int64_t n) { return n > 30; }))
      reader.wrong("a swizzle has three small numbers: bits, base and shift");
    swizzle = {static_cast<int>(numbers[0]), static_cast<int>(numbers[1]), static_cast<int>(numbers[2])};
  }
  if (!reader.at_end()) reader.wrong("nothing more is expected");
  if (const std::string fault = MemoryLayout::fault(shape, dims, bits, swizzle); !fault.empty()) reader.wrong(fault);
  return MemoryLayout(std::move(shape), std::move(dims), static_cast<int>(bits), swizzle);
}

}  // namespace tilewright
