#include "runtime/cuda_report.h"

#include "embedded_text.h"
#include "support/diagnostic.h"
#include "support/warning.h"

namespace tilewright::runtime::cuda {
namespace {

struct Head {  // of tw_reports
  uint32_t used = 0, capacity = 0, end = 0, lost = 0, failed = 0, reserved = 0;
};
constexpr size_t kHeadWords = 4;  // of one report

int64_t low(uint64_t word) { return static_cast<int64_t>(word & 0xffffffffu); }
int64_t high(uint64_t word) { return static_cast<int64_t>(word >> 32); }

void hand_on(std::span<const uint64_t> words, CallReport& report) {
  while (words.size() >= kHeadWords) {
    const size_t count = static_cast<size_t>(high(words[0]));
    if (count > words.size() - kHeadWords) return;
    report.add(static_cast<int>(low(words[0])),
               {low(words[1]), high(words[1]), low(words[2]), high(words[2]), low(words[3]), high(words[3])},
               words.subspan(kHeadWords, count));
    words = words.subspan(kHeadWords + count);
  }
}

void copy_to_host(const CudaDevice& device, Stream stream, void* to, const void* from, size_t bytes) {
  const Driver& d = device.driver;
  d.check(d.copy_to_host(to, reinterpret_cast<DevicePointer>(from), bytes, stream), "copy a kernel's reports");
  d.check(d.stream_synchronize(stream), "wait for a kernel that reports");
}

}  // namespace

std::string report_text_head() { return text::runtime_cuda_report; }

void refuse_capture_of_reports() {
  fail(Code::CaptureForbidden, {}, "a program with prints or assertions cannot be captured: its call waits for them",
       "capture the program without them");
}

void begin_reports(const CudaDevice& device, Stream stream, void* buffer) {
  const Driver& d = device.driver;
  Head head;
  head.capacity = static_cast<uint32_t>((static_cast<size_t>(kReportBytes) - sizeof head) / sizeof(uint64_t));
  head.end = head.capacity;
  d.check(d.copy_to_device(reinterpret_cast<DevicePointer>(buffer), &head, sizeof head, stream),
          "prepare a kernel's reports");
}

void collect_reports(const CudaDevice& device, Stream stream, void* buffer, CallReport& report) {
  Head head;
  copy_to_host(device, stream, &head, buffer, sizeof head);
  std::vector<uint64_t> words(std::min(head.used, head.end));
  if (!words.empty())
    copy_to_host(device, stream, words.data(), static_cast<char*>(buffer) + sizeof head,
                 words.size() * sizeof(uint64_t));
  hand_on(words, report);
  if (head.failed != 0 && !report.failed()) report.add(static_cast<int>(head.failed) - 1, {}, {});
  if (head.lost != 0)
    warn(make_diagnostic(Code::ReportsLost, {},
                         fmt::format("{} prints of a kernel were lost: {} bytes hold no more", head.lost, kReportBytes),
                         "print less in one call"));
}

}  // namespace tilewright::runtime::cuda
