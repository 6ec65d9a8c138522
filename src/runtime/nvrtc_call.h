// One compilation by NVRTC as a function from bytes to bytes, for two that call it: a process of its own (child/), and
// this one where that cannot be. Without the C++ library, so that the other process starts at once.
#pragma once
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace tilewright::runtime {

// A request and an answer are rows of fields: a size in eight bytes, and so many bytes.
class FieldReader {
 public:
  FieldReader(const char* data, size_t size) : at_(data), end_(data + size) {}
  bool next(const char*& field, size_t& size) {
    uint64_t count = 0;
    if (static_cast<size_t>(end_ - at_) < sizeof count) return false;
    std::memcpy(&count, at_, sizeof count);
    if (static_cast<size_t>(end_ - at_) - sizeof count < count) return false;
    field = at_ + sizeof count, size = count;
    at_ = field + size;
    return true;
  }
  // A field that ends in a zero; null if there is none.
  const char* text() {
    const char* field = nullptr;
    size_t size = 0;
    return next(field, size) && size > 0 && field[size - 1] == '\0' ? field : nullptr;
  }

 private:
  const char* at_;
  const char* end_;
};

class FieldWriter {
 public:
  FieldWriter() = default;
  FieldWriter(const FieldWriter&) = delete;
  ~FieldWriter() { std::free(data_); }
  // Room for a field, whose bytes are the caller's to write; null where memory is out.
  char* add(size_t size) {
    const size_t now = size_ + sizeof(uint64_t) + size;
    char* grown = static_cast<char*>(std::realloc(data_, now));
    if (!grown) return nullptr;
    const uint64_t count = size;
    std::memcpy(grown + size_, &count, sizeof count);
    char* field = grown + size_ + sizeof count;
    data_ = grown, size_ = now;
    return field;
  }
  void add(const void* bytes, size_t size) {
    if (char* field = add(size)) std::memcpy(field, bytes, size);
  }
  void add_text(const char* text) { add(text, std::strlen(text) + 1); }
  const char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};

constexpr const char* kTextName = "kernel.cu";

struct NvrtcEntries {
  using Program = void*;
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*destroy)(Program*);
  int (*compile)(Program, int, const char* const*);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*code_size)(Program, size_t*);
  int (*code)(Program, char*);

  bool load(void* library, bool ptx) {
    bool all = true;
    const auto get = [&](const char* name, auto& entry) {
      void* address = dlsym(library, name);
      all &= address != nullptr;
      std::memcpy(&entry, &address, sizeof entry);
    };
    get("nvrtcCreateProgram", create), get("nvrtcDestroyProgram", destroy), get("nvrtcCompileProgram", compile);
    get("nvrtcGetProgramLogSize", log_size), get("nvrtcGetProgramLog", log);
    get(ptx ? "nvrtcGetPTXSize" : "nvrtcGetCUBINSize", code_size), get(ptx ? "nvrtcGetPTX" : "nvrtcGetCUBIN", code);
    return all;
  }
};

// Adds what one of the pairs of size and content gives; nothing where it refuses.
inline void add_content(FieldWriter& answer, void* program, int (*size_of)(void*, size_t*),
                        int (*content)(void*, char*)) {
  size_t size = 0;
  if (!program || size_of(program, &size) != 0) size = 0;
  char* field = answer.add(size);
  if (field && size > 0 && content(program, field) != 0) std::memset(field, 0, size);
}

// A request: the files of NVRTC's second half (may be empty) and of NVRTC, "cubin" or "ptx", the text, options. NVRTC
// asks the dynamic linker for its second half by name, which a package's directory does not answer unless it is loaded.
// The answer: NVRTC's result, its log, the code; or one field alone, why there is none.
inline void call_nvrtc(const char* request, size_t size, FieldWriter& answer) {
  constexpr int kMostOptions = 64;
  FieldReader fields(request, size);
  const char *builtins = fields.text(), *path = fields.text(), *wanted = fields.text(), *text = fields.text();
  const char* options[kMostOptions];
  int count = 0;
  while (count < kMostOptions && (options[count] = fields.text())) ++count;
  if (!text || count == kMostOptions) return answer.add_text("a request that is none");
  if (*builtins) dlopen(builtins, RTLD_NOW | RTLD_LOCAL);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return answer.add_text(dlerror());
  NvrtcEntries call{};
  if (!call.load(library, std::strcmp(wanted, "ptx") == 0)) return answer.add_text("NVRTC lacks a function");
  void* program = nullptr;
  int32_t result = call.create(&program, text, kTextName, 0, nullptr, nullptr);
  if (result == 0) result = call.compile(program, count, options);
  answer.add(&result, sizeof result);
  add_content(answer, program, call.log_size, call.log);
  add_content(answer, result == 0 ? program : nullptr, call.code_size, call.code);
  if (program) call.destroy(&program);
}

}  // namespace tilewright::runtime
