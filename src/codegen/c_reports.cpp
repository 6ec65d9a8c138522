#include "codegen/c_reports.h"

#include "ir/operators.h"
#include "scalar/convert.h"

namespace tilewright::codegen {

using namespace ir;

std::string CReports::word(DType type, const std::string& v) {
  if (type == f64) return bits_of(f64, v);
  if (type.is_float()) return bits_of(f32, v);
  return fmt::format("(unsigned long long)(long long)({})", v);
}
std::string CReports::word(const Expr& e) { return word(e->type, text(e)); }

void CReports::add(ReportSite site, const std::vector<Expr>& place, const std::vector<std::string>& values) {
  const auto number = static_cast<int>(sites_.size());
  const bool failed = site.kind >= ReportSite::Kind::Assert;
  sites_.push_back(std::move(site));
  report(number, failed, place, values);
}

void CReports::print(const Print& n, const SourceLocation& at) {
  if (n.values.empty() && !n.buffer.valid())
    return add({ReportSite::Kind::PrintMessage, n.message, at, {}}, n.place, {});
  for (const Expr& e : n.values)
    add({ReportSite::Kind::PrintScalar, n.message, at, {{text(e), e->type}}}, n.place, {word(e)});
  if (n.buffer.valid()) print_buffer(n, at);
}

void CReports::print_buffer(const Print& n, const SourceLocation& at) {
  const Buffer& b = program_.buffer(n.buffer);
  Expr count = ir::constant(i64, int64_t{1});
  for (const Expr& e : b.shape) count = mul(count, cast(e, i64));
  // The element by its row-major number, and from that its indices.
  open(fmt::format("for (int64_t index = 0; index < {}; ++index) {{", text(count)));
  std::string rest = "index";
  std::vector<std::string> index(b.rank());
  for (size_t d = b.rank(); d-- > 0;) {
    const std::string extent = in(value(cast(b.shape[d], i64)), Binds::Unary);
    index[d] = d == 0 ? rest : fmt::format("{} % {}", rest, extent);
    rest = fmt::format("({} / {})", rest, extent);
  }
  std::string place = b.offset ? text(cast(b.offset, i64)) : "0";
  Expr stride = ir::constant(i64, int64_t{1});
  for (size_t d = b.rank(); d-- > 0;) {
    place += fmt::format(" + {} * {}", index[d],
                         in(value(b.strides.empty() ? stride : cast(b.strides[d], i64)), Binds::Unary));
    stride = mul(stride, cast(b.shape[d], i64));
  }
  const std::string raw = is_variable(b)       ? names_.of(n.buffer)
                          : b.type.is_packed() ? load_nibble(n.buffer, pointer(n.buffer), place)
                                               : fmt::format("{}[{}]", pointer(n.buffer), place);
  add({ReportSite::Kind::PrintBuffer, n.message, at, {{b.name, b.type}}}, n.place,
      {"(unsigned long long)index", word(b.type, load_text(b.type, raw, pieces_))});
  close();
}

void CReports::assertion(const Assert& n, const SourceLocation& at) {
  open(fmt::format("if (!{}) {{", in(value(n.condition), Binds::Primary)));
  add({ReportSite::Kind::Assert, n.message, at, {}}, n.place, {});
  close();
}

}  // namespace tilewright::codegen
