/* The end of an exported library's text: one function of TVM-FFI around a kernel. Before it stand the kernel's own
 * text, if it has one, and the constants tw_carried_program, _engine, _arch, _hash, _code (null if there is none),
 * _bytes, tw_library_path, and TW_EXPORTED, the name of the function; and the headers
 * dlfcn, pthread, stdint, stdio, stdlib, string. */
/* Kernels are linked without the C++ library: there are no strings, vectors and guarded statics here. */
namespace {

/* TVM-FFI's TVMFFIAny, and the numbers of the types that a call may have. */
struct tw_any {
  int32_t type;
  uint32_t padding;
  union {
    int64_t integer;
    double number;
    void* pointer;
  };
};
enum {
  tw_any_none = 0,
  tw_any_int = 1,
  tw_any_bool = 2,
  tw_any_float = 3,
  tw_any_tensor = 7,
  tw_any_tensor_object = 70
};
constexpr size_t tw_object_head = 24; /* bytes of an object before its DLTensor */

/* tilewright/c_api.h, as far as it is used. */
struct tw_carried {
  const char *program, *engine, *arch, *hash;
  const void* code;
  size_t bytes;
};
struct tw_error_info {
  const char *kind, *code, *area, *message, *help, *text, *file;
  int line, column;
};
struct tw_argument {
  int32_t kind;
  union {
    int64_t integer;
    double number;
    const void* tensor;
  };
};
enum { tw_none = 0, tw_int = 2, tw_float = 4, tw_tensor = 64 };
struct tw_dltensor_head {
  void* data;
  int32_t device_type, device_index;
};

void tw_raise(const char* kind, const char* message) {
  using Raise = void (*)(const char*, const char*);
  if (auto* raise = reinterpret_cast<Raise>(dlsym(RTLD_DEFAULT, "TVMFFIErrorSetRaisedFromCStr")))
    raise(kind, message);
  else
    fprintf(stderr, "%s: %s\n", kind, message); /* a process without TVM-FFI */
}

struct tw_module {
  void *library, *kernel;
  char failure[4096];
  void* (*call)(void*, const tw_argument*, size_t);
  void (*error_get)(const void*, tw_error_info*);
  void (*error_release)(void*);
  void (*set_stream)(void*);
  void* (*stream_of)(int32_t, int32_t);
};
tw_module tw_this;
pthread_once_t tw_once = PTHREAD_ONCE_INIT;

void tw_fail(const char* message, const char* more) {
  snprintf(tw_this.failure, sizeof tw_this.failure, "%s%s", message, more);
}

/* The library in a folder ("": where the linker looks), by either of its names: packages of Python have no versions. */
void tw_open_in(const char* folder, int length, int flags) {
  const char* names[] = {tw_library_name, "libtilewright.so"};
  for (int i = 0; i < 2 && !tw_this.library; ++i) {
    char path[4096];
    snprintf(path, sizeof path, "%.*s%s", length, folder, names[i]);
    tw_this.library = dlopen(path, RTLD_NOW | flags);
  }
}

void tw_open_beside() {
  Dl_info self;
  if (!dladdr(reinterpret_cast<void*>(&tw_raise), &self) || !self.dli_fname) return;
  const char* slash = strrchr(self.dli_fname, '/');
  tw_open_in(self.dli_fname, slash ? static_cast<int>(slash - self.dli_fname) + 1 : 0, 0);
}

void tw_open() {
  void*& library = tw_this.library;
  if (const char* wish = secure_getenv("TILEWRIGHT_LIBRARY")) {
    library = dlopen(wish, RTLD_NOW);
  } else {
    tw_open_in("", 0, RTLD_NOLOAD);
    if (!library) tw_open_beside();
    if (!library) library = dlopen(tw_library_path, RTLD_NOW);
    if (!library) tw_open_in("", 0, 0);
  }
  if (!library)
    tw_fail(
        "libtilewright.so, which checks and starts kernels, is not found: set TILEWRIGHT_LIBRARY to its path, or put "
        "it beside this library",
        "");
}

template <class F>
bool tw_find(F*& function, const char* name) {
  function = reinterpret_cast<F*>(dlsym(tw_this.library, name));
  if (!function) tw_fail("libtilewright.so is older than this library: it has no ", name);
  return function != nullptr;
}

/* Releases the error. */
void tw_raise_error(void* error) {
  tw_error_info info;
  tw_this.error_get(error, &info);
  tw_raise("ValueError", info.text);
  tw_this.error_release(error);
}

void tw_load() {
  tw_open();
  if (!tw_this.library) return;
  void* (*load)(const tw_carried*, void**) = nullptr;
  if (!tw_find(load, "tw_kernel_load") || !tw_find(tw_this.call, "tw_kernel_call") ||
      !tw_find(tw_this.error_get, "tw_error_get") || !tw_find(tw_this.error_release, "tw_error_release") ||
      !tw_find(tw_this.set_stream, "tw_cuda_set_stream"))
    return;
  const tw_carried carried = {tw_carried_program, tw_carried_engine, tw_carried_arch,
                              tw_carried_hash,    tw_carried_code,   tw_carried_bytes};
  if (void* error = load(&carried, &tw_this.kernel)) {
    tw_error_info info;
    tw_this.error_get(error, &info);
    tw_fail(info.text, "");
    tw_this.error_release(error);
  }
  tw_this.stream_of = reinterpret_cast<decltype(tw_this.stream_of)>(dlsym(RTLD_DEFAULT, "TVMFFIEnvGetStream"));
}

/* False if the value is none that a kernel takes. */
bool tw_convert(const tw_any& from, tw_argument& to) {
  switch (from.type) {
    case tw_any_none: to.kind = tw_none; return true;
    case tw_any_int:
    case tw_any_bool: to.kind = tw_int, to.integer = from.integer; return true;
    case tw_any_float: to.kind = tw_float, to.number = from.number; return true;
    case tw_any_tensor: to.kind = tw_tensor, to.tensor = from.pointer; return true;
    case tw_any_tensor_object:
      to.kind = tw_tensor, to.tensor = static_cast<const char*>(from.pointer) + tw_object_head;
      return true;
    default: return false;
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int TW_EXPORTED(void*, const tw_any* values, int32_t count,
                                                                  tw_any* result) {
  pthread_once(&tw_once, tw_load);
  if (!tw_this.kernel) {
    tw_raise("RuntimeError", tw_this.failure);
    return -1;
  }
  constexpr int32_t kMost = 192; /* a plan has at most 64 tensors and 128 numbers */
  tw_argument arguments[kMost];
  if (count > kMost) {
    tw_raise("TypeError", "more arguments than a kernel has");
    return -1;
  }
  bool streamed = false;
  for (int32_t i = 0; i < count; ++i) {
    if (!tw_convert(values[i], arguments[i])) {
      char message[64];
      snprintf(message, sizeof message, "argument %d is no tensor, number or None", static_cast<int>(i));
      tw_raise("TypeError", message);
      return -1;
    }
    if (arguments[i].kind != tw_tensor || streamed || !tw_this.stream_of) continue;
    const auto* tensor = static_cast<const tw_dltensor_head*>(arguments[i].tensor);
    if (tensor->device_type == 2) {
      tw_this.set_stream(tw_this.stream_of(2, tensor->device_index));
      streamed = true;
    }
  }
  if (void* error = tw_this.call(tw_this.kernel, arguments, static_cast<size_t>(count))) {
    tw_raise_error(error);
    return -1;
  }
  result->type = tw_any_none, result->padding = 0, result->integer = 0;
  return 0;
}
