// Prints and assertions of a running kernel.
#pragma once
#include <array>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/launch_plan.h"

namespace tilewright::runtime {

// Block (x, y, z), then thread (x, y, z).
using Place = std::array<int64_t, 6>;

// Collects what one call reports. Threads of the call may report at the same time.
class CallReport {
 public:
  explicit CallReport(const LaunchPlan& plan) : plan_(plan) {}
  // Values as kernel_abi.text.h writes them. Prints leave at once, a line each, to the print sink.
  void add(int site, const Place& place, std::span<const uint64_t> values);
  // LaunchError for the failed assertion with the smallest block and thread, if one failed.
  void throw_if_failed() const;
  bool failed() const { return failed_site_ >= 0; }

 private:
  const LaunchPlan& plan_;
  std::mutex mutex_;
  int failed_site_ = -1;
  Place failed_place_{};
  std::vector<uint64_t> failed_values_;
};

using PrintSink = std::function<void(std::string_view line)>;  // the line ends with a newline

// Where T.print goes, stdout at first. Returns the sink before; an empty function restores stdout.
PrintSink replace_print_sink(PrintSink sink);
// Gives whole lines to the sink.
void print_lines(std::string_view lines);

}  // namespace tilewright::runtime
