// Prints and failed assertions of a kernel on a device. A program that has any runs synchronously: its call returns
// when the reports are in.
#pragma once
#include "runtime/cuda_device.h"
#include "runtime/report.h"

namespace tilewright::runtime::cuda {

inline constexpr int64_t kReportBytes = 1 << 20;

// What stands before the text of a kernel that reports.
std::string report_text_head();

// LaunchError CaptureForbidden: a graph cannot wait for its own reports.
[[noreturn]] void refuse_capture_of_reports();
void begin_reports(const CudaDevice& device, Stream stream, void* buffer);
// Waits for the stream and hands every report on. Those for which there was no room are a warning.
void collect_reports(const CudaDevice& device, Stream stream, void* buffer, CallReport& report);

}  // namespace tilewright::runtime::cuda
