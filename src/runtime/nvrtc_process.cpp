#include "runtime/nvrtc_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "runtime/nvrtc_call.h"
#include "runtime/process.h"
#include "support/diagnostic.h"

// The program that the build made of child/device_compiler.cpp.
asm(R"(
  .pushsection .rodata
  .balign 16
  .globl tilewright_device_compiler, tilewright_device_compiler_end
  .hidden tilewright_device_compiler, tilewright_device_compiler_end
tilewright_device_compiler:
  .incbin ")" TILEWRIGHT_DEVICE_COMPILER R"("
tilewright_device_compiler_end:
  .byte 0
  .popsection
)");
extern "C" __attribute__((visibility("hidden"))) const char tilewright_device_compiler[];
extern "C" __attribute__((visibility("hidden"))) const char tilewright_device_compiler_end[];

namespace tilewright::runtime {
namespace {

#ifndef MFD_EXEC
constexpr unsigned MFD_EXEC = 0x10U;
#endif

// A file in memory with these bytes. Kernels before 6.3 do not know the flag, and need none.
File memory_file(const char* name, std::string_view bytes, bool runs) {
  File file(memfd_create(name, MFD_CLOEXEC | (runs ? MFD_EXEC : 0)));
  if (!file && runs && errno == EINVAL) file = File(memfd_create(name, MFD_CLOEXEC));
  return file && file.write_all(bytes) ? std::move(file) : File();
}

std::string content_of(const File& file) {
  std::string bytes;
  char buffer[1 << 16];
  for (ssize_t count; (count = pread(file.get(), buffer, sizeof buffer, static_cast<off_t>(bytes.size()))) > 0;)
    bytes.append(buffer, static_cast<size_t>(count));
  return bytes;
}

void write_request(const NvrtcRequest& request, FieldWriter& out) {
  out.add_text(request.builtins.c_str()), out.add_text(request.path.c_str());
  out.add_text(request.ptx ? "ptx" : "cubin"), out.add_text(request.text.c_str());
  for (const std::string& option : request.options) out.add_text(option.c_str());
}

// Nothing if it is not whole.
std::optional<NvrtcAnswer> read_answer(const char* data, size_t size) {
  FieldReader fields(data, size);
  const char* field[3];
  size_t sizes[3], count = 0;
  while (count < 3 && fields.next(field[count], sizes[count])) ++count;
  NvrtcAnswer out;
  if (count == 1 && sizes[0] > 0) {
    out.problem.assign(field[0], sizes[0] - 1);
    return out;
  }
  int32_t result = 0;
  if (count < 3 || sizes[0] != sizeof result) return std::nullopt;
  std::memcpy(&result, field[0], sizeof result);
  out.end = NvrtcAnswer::End::Answered, out.result = result;
  out.log.assign(field[1], sizes[1]), out.code.assign(field[2], sizes[2]);
  return out;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> out;
  for (char** at = environ; at && *at; ++at) out.push_back(*at);
  return out;
}

// What is said of a process that left no answer.
std::string ending(const ProcessResult& process) {
  if (process.status <= 128)
    return fmt::format("it ended without a word{}{}", process.output.empty() ? "" : ": ", process.output);
  const char* name = sigabbrev_np(process.status - 128);
  return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", process.status - 128);
}

}  // namespace

NvrtcAnswer call_nvrtc_apart(const NvrtcRequest& request, std::chrono::milliseconds deadline) {
  NvrtcAnswer out;
  FieldWriter fields;
  write_request(request, fields);
  const std::string_view image(tilewright_device_compiler,
                               static_cast<size_t>(tilewright_device_compiler_end - tilewright_device_compiler));
  const File program = memory_file("tilewright:nvrtc", image, true);
  const File asked = memory_file("tilewright:request", {fields.data(), fields.size()}, false);
  const File answered = memory_file("tilewright:answer", "", false);
  if (!program || !asked || !answered) {
    out.problem = fmt::format("no file in memory: {}", std::strerror(errno));
    return out;
  }
  const ProcessResult process =
      run_process({"/proc/self/fd/5"}, own_environment(), "/", deadline, {asked.get(), answered.get(), program.get()});
  if (!process.started) {
    out.problem = "this system runs no program from memory";
    return out;
  }
  const std::string bytes = content_of(answered);
  if (std::optional<NvrtcAnswer> answer = read_answer(bytes.data(), bytes.size())) return std::move(*answer);
  out.end = process.timed_out ? NvrtcAnswer::End::TimedOut : NvrtcAnswer::End::Crashed;
  out.problem = ending(process);
  return out;
}

NvrtcAnswer call_nvrtc_here(const NvrtcRequest& request) {
  FieldWriter fields, answered;
  write_request(request, fields);
  call_nvrtc(fields.data(), fields.size(), answered);
  std::optional<NvrtcAnswer> answer = read_answer(answered.data(), answered.size());
  check_internal(answer, "no memory for what NVRTC gives");
  return std::move(*answer);
}

}  // namespace tilewright::runtime
