// A stand-in for NVRTC, loaded as that is. What it does with a text stands in the text.
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>

namespace {

struct Program {
  std::string text, code;
};

int give_size(const std::string& text, size_t* size) { return *size = text.size() + 1, 0; }
int give(const std::string& text, char* to) { return std::memcpy(to, text.c_str(), text.size() + 1), 0; }

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) { return *major = 99, *minor = 0, 0; }
int nvrtcGetNumSupportedArchs(int* count) { return *count = 1, 0; }
int nvrtcGetSupportedArchs(int* architectures) { return *architectures = 90, 0; }
const char* nvrtcGetErrorString(int) { return "AN_ERROR"; }
int nvrtcCreateProgram(Program** out, const char* text, const char*, int, const char* const*, const char* const*) {
  return *out = new Program{text, {}}, 0;
}
int nvrtcDestroyProgram(Program** program) { return delete *program, 0; }
int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  bool few = false;
  for (int i = 0; i < count; ++i) few |= std::strcmp(options[i], "--Ofast-compile=min") == 0;
  const auto says = [&](const char* what) { return program->text.find(what) != std::string::npos; };
  if (says("crash always") || (says("crash where optimized") && !few)) raise(SIGSEGV);
  if (says("end in between")) _exit(0);
  while (says("never end")) sleep(1);
  program->code = "made by " + std::to_string(getpid());
  return 0;
}
int nvrtcGetProgramLogSize(Program*, size_t* size) { return give_size("", size); }
int nvrtcGetProgramLog(Program*, char* to) { return give("", to); }
int nvrtcGetCUBINSize(Program* program, size_t* size) { return give_size(program->code, size); }
int nvrtcGetCUBIN(Program* program, char* to) { return give(program->code, to); }
int nvrtcGetPTXSize(Program* program, size_t* size) { return give_size(program->code, size); }
int nvrtcGetPTX(Program* program, char* to) { return give(program->code, to); }
}
