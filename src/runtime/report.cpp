#include "runtime/report.h"

#include <cstdio>

#include "scalar/value_text.h"
#include "support/diagnostic.h"

namespace tilewright::runtime {
namespace {

struct Printer {
  std::mutex mutex;
  PrintSink sink;
};

Printer& printer() {
  static Printer* const printer = new Printer;
  return *printer;
}

void print(std::string_view lines) {
  Printer& p = printer();
  std::lock_guard lock(p.mutex);
  if (p.sink) return p.sink(lines);
  std::fwrite(lines.data(), 1, lines.size(), stdout);
  std::fflush(stdout);
}

std::string place_text(const Place& p) {
  return fmt::format("BlockIdx=({}, {}, {}), ThreadIdx=({}, {}, {})", p[0], p[1], p[2], p[3], p[4], p[5]);
}

std::string print_lines(const Site& site, const Place& place, std::span<const uint64_t> values) {
  const std::string head = fmt::format("msg='{}' {}", site.message, place_text(place));
  if (site.kind == Site::Kind::PrintMessage) return head + "\n";
  const Site::Operand& operand = site.operands[0];
  if (site.kind == Site::Kind::PrintScalar)
    return fmt::format("{}: dtype={} value={}\n", head, operand.dtype.name(), value_text(operand.dtype, values[0]));
  std::string lines;
  for (size_t i = 1; i < values.size(); ++i)
    lines += fmt::format("{}: buffer={}, index={}, dtype={} value={}\n", head, operand.name,
                         static_cast<int64_t>(values[0] + i - 1), operand.dtype.name(),
                         value_text(operand.dtype, values[i]));
  return lines;
}

// Blocks in launch order: z slowest, then y, then x; threads alike.
bool before(const Place& a, const Place& b) {
  constexpr size_t order[] = {2, 1, 0, 5, 4, 3};
  for (size_t i : order)
    if (a[i] != b[i]) return a[i] < b[i];
  return false;
}

}  // namespace

void CallReport::add(int site, const Place& place, std::span<const uint64_t> values) {
  check_internal(site >= 0 && static_cast<size_t>(site) < plan_.sites.size(), "{}: a report from site {}", plan_.name,
                 site);
  const Site& s = plan_.sites[static_cast<size_t>(site)];
  if (s.is_print()) {
    check_internal(s.kind == Site::Kind::PrintMessage || !values.empty(), "{}: site {} reports no value", plan_.name,
                   site);
    return print(print_lines(s, place, values));
  }
  std::lock_guard lock(mutex_);
  const bool first =
      failed_site_ < 0 || before(place, failed_place_) || (place == failed_place_ && site < failed_site_);
  if (!first) return;
  failed_site_ = site;
  failed_place_ = place;
  failed_values_.assign(values.begin(), values.end());
}

void CallReport::throw_if_failed() const {
  if (failed_site_ < 0) return;
  const Site& site = plan_.sites[static_cast<size_t>(failed_site_)];
  std::vector<std::string> values;
  for (size_t i = 0; i < std::min(failed_values_.size(), site.operands.size()); ++i)
    values.push_back(
        fmt::format("{} = {}", site.operands[i].name, value_text(site.operands[i].dtype, failed_values_[i])));
  const Place& p = failed_place_;
  const std::string where = fmt::format("block ({}, {}, {}), thread ({}, {}, {})", p[0], p[1], p[2], p[3], p[4], p[5]);
  if (site.kind == Site::Kind::Stuck)
    fail(Code::Deadlock, site.location,
         fmt::format("{}: deadlock: no thread can go on; {} waits {}", plan_.name, where, site.message));
  if (site.kind == Site::Kind::Overflow)
    fail(Code::BarrierOverflow, site.location, fmt::format("{}: in {}, {}", plan_.name, where, site.message));
  fail(Code::AssertionFailed, site.location,
       fmt::format("{}: assertion failed in {}: {}{}", plan_.name, where, site.message,
                   values.empty() ? "" : fmt::format(" ({})", fmt::join(values, ", "))));
}

void print_lines(std::string_view lines) { print(lines); }

PrintSink replace_print_sink(PrintSink sink) {
  Printer& p = printer();
  std::lock_guard lock(p.mutex);
  std::swap(p.sink, sink);
  return sink;
}

}  // namespace tilewright::runtime
