#include "support/warning.h"

#include <cstdio>
#include <mutex>

namespace tilewright {
namespace {

struct State {
  std::mutex mutex;
  std::set<std::pair<uint16_t, std::string>> seen;
  WarningSink sink;
};

State& state() {
  static State* const state = new State;  // never destroyed: destructors of statics may warn
  return *state;
}

}  // namespace

void warn(Diagnostic diagnostic) {
  diagnostic.severity = Diagnostic::Severity::Warning;
  State& s = state();
  WarningSink sink;
  {
    std::lock_guard lock(s.mutex);
    sink = s.sink;
    if (!sink && !s.seen.insert({diagnostic.code, diagnostic.message}).second) return;
  }
  if (sink) return sink(diagnostic);
  fmt::print(stderr, "{}\n", diagnostic.to_string());
}

WarningSink replace_warning_sink(WarningSink sink) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  std::swap(s.sink, sink);
  return sink;
}

}  // namespace tilewright
