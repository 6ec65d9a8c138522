// A stand-in for NVRTC that makes a shared library of a text, whose kernels the stand-in driver runs on the host
// (host_threads.cpp): compiled with the checks of what is undefined in C++, which a device's compiler takes for
// granted.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

struct Program {
  std::string text, code, log;
};

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

size_t end_of_group(const std::string& s, size_t open) {  // of the parenthesis that closes the one there
  int depth = 0;
  for (size_t i = open; i < s.size(); ++i) {
    if (s[i] == '"') {
      for (++i; s[i] != '"'; ++i)
        if (s[i] == '\\') ++i;
    } else if (s[i] == '(') {
      ++depth;
    } else if (s[i] == ')' && --depth == 0) {
      return i;
    }
  }
  return s.size();
}

// asm("...": outputs : inputs : memory) as a call of tw_asm() of device.h.
std::string host_asm(const std::string& inside) {
  std::vector<std::string> parts{""};
  for (size_t i = 0; i < inside.size(); ++i) {
    size_t end = i + 1;
    if (inside[i] == '"') {
      while (inside[end] != '"') end += inside[end] == '\\' ? 2 : 1;
      ++end;
    } else if (inside[i] == '(') {
      end = end_of_group(inside, i) + 1;
    } else if (inside[i] == ':') {
      parts.emplace_back();
      continue;
    }
    parts.back() += inside.substr(i, end - i), i = end - 1;
  }
  parts.resize(4);
  const auto operands = [](const std::string& list) {
    std::vector<std::string> out;
    for (size_t at = list.find('"'); at != std::string::npos; at = list.find('"', at)) {
      const size_t open = list.find('(', at), end = end_of_group(list, open);
      out.push_back(list.substr(open + 1, end - open - 1)), at = end;
    }
    return out;
  };
  std::string out = "{ void* tw_out[] = {";
  const auto outputs = operands(parts[1]), inputs = operands(parts[2]);
  for (const std::string& x : outputs) out += "(void*)&(" + x + "), ";
  out += "nullptr}; const HostOperand tw_in[] = {";
  for (const std::string& x : inputs) out += "HostOperand(" + x + "), ";
  return out + "HostOperand(0u)}; tw_asm(" + parts[0] + ", tw_out, " + std::to_string(outputs.size()) + ", tw_in, " +
         std::to_string(inputs.size()) + "); }";
}

std::string with_host_asm(const std::string& s) {
  static const std::regex word(R"(\basm( volatile)?\()");
  std::string out;
  size_t at = 0;
  for (std::smatch m; std::regex_search(s.begin() + static_cast<long>(at), s.end(), m, word);) {
    const size_t open = at + static_cast<size_t>(m.position(0) + m.length(0)) - 1, end = end_of_group(s, open);
    out += s.substr(at, static_cast<size_t>(m.position(0)));
    out += host_asm(s.substr(open + 1, end - open - 1));
    at = end + 1;
  }
  return out + s.substr(at);
}

// The function that a definition is of; empty: none.
std::string name_of(const std::string& definition) {
  static const std::regex name(R"(([A-Za-z_]\w*)\()");
  const size_t from = definition.find("__device__");
  std::smatch m;
  const std::string head = definition.substr(from == std::string::npos ? 0 : from + strlen("__device__"));
  return std::regex_search(head, m, name) ? m[1].str() : "";
}

struct Translated {
  std::string text;
  std::string own;                   // #define TW_HAS_name of each function that the text has itself
  std::vector<std::string> missing;  // functions that device.h does not have
};

Translated translate(const std::string& text, const std::string& device) {
  static const std::string kernel_head = "extern \"C\" __global__";
  static const std::regex waits(R"(\bwhile \()");  // others must run for what it waits for
  Translated out;
  std::vector<std::string> kernels;
  const auto has = [&](const std::string& name) {
    return device.find(" " + name + "(") != std::string::npos || device.find("(" + name + ", ") != std::string::npos;
  };
  for (size_t at = 0; at < text.size();) {
    // A definition at the left margin ends with the next brace there; anything else with its line.
    size_t end = text.find('\n', at) + 1;
    if (end == 0) end = text.size();
    const std::string first = text.substr(at, end - at);
    const auto begins = [&](const std::string& with) { return first.rfind(with, 0) == 0; };
    const bool function = begins("__device__") || begins("template") || begins(kernel_head);
    if (function && first.find(";\n") == std::string::npos && first.find("}\n") == std::string::npos)
      end = std::min(text.find("\n}", at), text.size() - 2) + 2, end = text.find('\n', end) + 1;
    std::string part = text.substr(at, end - at);
    at = end;
    const std::string lines(static_cast<size_t>(std::count(part.begin(), part.end(), '\n')), '\n');
    if (begins(kernel_head)) {
      static const std::regex shared(R"(extern __shared__ __align__\(\d+\) unsigned char tw_shared\[\];)"),
          name(R"((\w+)\()");
      part = std::regex_replace(part, shared, "unsigned char* const tw_shared = tw_thread->shared;");
      part = std::regex_replace(part, waits, "while (tw_calls->turn(), ");
      // g++ makes x * -c of -(x * c) before it looks for overflow, which the one may have without the other.
      static const std::regex opposite(R"(-\()");
      part = std::regex_replace(part, opposite, "-tw_value(");
      const size_t after = part.find("__launch_bounds__(") + strlen("__launch_bounds__(");
      std::smatch m;
      const std::string head = part.substr(part.find(')', after));
      if (std::regex_search(head, m, name)) kernels.push_back(m[1].str());
      out.text += with_host_asm(part);
      continue;
    }
    const std::string named = name_of(part);
    static const std::regex boxes(R"(tw_tma_(\w+)_(\d)d)");
    std::smatch box;
    if (function && std::regex_match(named, box, boxes)) {
      const std::string plain = "tw_tma_" + box[1].str();
      if (!has(plain) && device.find("TW_STORES(" + box[1].str() + ")") == std::string::npos)
        out.missing.push_back(named);
      out.text += "template <class... X> inline void " + named + "(X... x) { " + plain + "(x...); }" + lines;
      continue;
    }
    if (function && named.rfind("tw_wgmma_m64", 0) == 0 && part.find("mma_async.sp.") == std::string::npos) {
      out.text += "template <class C, class A> inline void " + named +
                  "(C* c, A a, uint64_t b, bool accumulate) { tw_wgmma(\"" + named + "\", c, a, b, accumulate); }" +
                  lines;
      continue;
    }
    static const std::regex ptx(R"(\basm\b)");
    if (function && std::regex_search(part, ptx)) {
      if (!has(named)) out.missing.push_back(named);
      out.text += lines;
      continue;
    }
    if (function && !named.empty()) out.own += "#define TW_HAS_" + named + "\n";
    out.text += std::regex_replace(part, waits, "while (tw_calls->turn(), ");
  }
  // Which lanes have come by a place, threads that take turns do not know.
  if (text.find("__activemask(") != std::string::npos) out.missing.push_back("__activemask");
  for (const std::string& k : kernels)
    out.text += "extern \"C\" void tw_call_" + k + "(void** parameters) { tw_call(" + k + ", parameters); }\n";
  out.text += "extern const char* const tw_text = R\"tw_text(" + text + ")tw_text\";\n";
  return out;
}

int compile(Program& program) {
  const std::string folder = TILEWRIGHT_FAKE_CUDA_TEXTS, device = read(folder + "/device.h");
  const Translated t = translate(program.text, device);
  for (const std::string& name : t.missing) program.log += "kernel.cu(1): error: this host has no " + name + "\n";
  if (!t.missing.empty()) return 6;
  char scratch[] = "/tmp/tilewright-host-XXXXXX";
  if (!mkdtemp(scratch)) return 6;
  const std::string at = scratch;
  std::ofstream(at + "/kernel.cpp") << t.own + "#include \"" + folder + "/device.h\"\n#line 1 \"kernel.cu\"\n"
                                    << t.text;
  const std::string command =
      "cd " + at +
      " && g++ -std=c++20 -O0 -w -fPIC -shared -frounding-math -fno-exceptions -fno-rtti -fno-gnu-unique "
      "-Wl,--as-needed "
      "-fsanitize=signed-integer-overflow,shift,integer-divide-by-zero,bounds,float-cast-overflow,alignment "
      "kernel.cpp -o kernel.so > log 2>&1";
  const int status = system(command.c_str());
  program.code = read(at + "/kernel.so"), program.log = read(at + "/log");
  for (const char* name : {"/kernel.cpp", "/kernel.so", "/log"}) unlink((at + name).c_str());
  rmdir(scratch);
  return status == 0 && !program.code.empty() ? 0 : 6;
}

int give_size(const std::string& text, size_t* size) { return *size = text.size() + 1, 0; }
int give(const std::string& text, char* to) { return std::memcpy(to, text.c_str(), text.size() + 1), 0; }

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, 0; }
int nvrtcGetNumSupportedArchs(int* count) { return *count = 2, 0; }
int nvrtcGetSupportedArchs(int* architectures) { return architectures[0] = 80, architectures[1] = 90, 0; }
const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_COMPILATION"; }
int nvrtcCreateProgram(Program** out, const char* text, const char*, int, const char* const*, const char* const*) {
  return *out = new Program{text, {}, {}}, 0;
}
int nvrtcDestroyProgram(Program** program) { return delete *program, 0; }
int nvrtcCompileProgram(Program* program, int, const char* const*) { return compile(*program); }
int nvrtcGetProgramLogSize(Program* program, size_t* size) { return give_size(program->log, size); }
int nvrtcGetProgramLog(Program* program, char* to) { return give(program->log, to); }
int nvrtcGetCUBINSize(Program* program, size_t* size) { return give_size(program->code, size); }
int nvrtcGetCUBIN(Program* program, char* to) { return give(program->code, to); }
int nvrtcGetPTXSize(Program* program, size_t* size) { return give_size(program->code, size); }
int nvrtcGetPTX(Program* program, char* to) { return give(program->code, to); }
}
