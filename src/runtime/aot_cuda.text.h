/* The runtime of kernels that were compiled ahead of time, on a GPU: what cuda_module.cpp, cuda_tensor_map.cpp and
   cuda_kernel.cpp do, in C99, by the driver API of a library that is loaded at the first call. */

typedef unsigned long long tw_address;

/* Names, layouts and numbers of cuda.h; cuda_driver.h has them all. */
struct tw_launch_attribute {
  int id;
  union {
    unsigned value[16];
    unsigned long long alignment;
  } as;
};
struct tw_launch_config {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  struct tw_launch_attribute* attributes;
  unsigned attribute_count;
};
struct tw_tensor_map {
  unsigned long long words[16];
} __attribute__((aligned(64)));

/* The driver's entry points. */
static struct {
  int (*init)(unsigned);
  int (*error_name)(int, const char**);
  int (*error_text)(int, const char**);
  int (*device_count)(int*);
  int (*device_get)(int*, int);
  int (*device_attribute)(int*, int, int);
  int (*primary_context_retain)(void**, int);
  int (*context_get)(void**);
  int (*context_push)(void*);
  int (*context_pop)(void**);
  int (*module_load)(void**, const void*);
  int (*module_unload)(void*);
  int (*module_function)(void**, void*, const char*);
  int (*function_attribute)(int*, int, void*);
  int (*function_set_attribute)(void*, int, int);
  int (*launch)(const struct tw_launch_config*, void*, void**, void**);
  int (*memory_allocate)(tw_address*, size_t);
  int (*memory_free)(tw_address);
  int (*allocate_in_stream)(tw_address*, size_t, void*);
  int (*free_in_stream)(tw_address, void*);
  int (*set_bytes)(tw_address, unsigned char, size_t, void*);
  int (*pointer_attribute)(void*, int, tw_address);
  int (*stream_synchronize)(void*);
  int (*tensor_map_encode)(struct tw_tensor_map*, int, unsigned, void*, const unsigned long long*,
                           const unsigned long long*, const unsigned*, const unsigned*, int, int, int, int);
} tw_cuda;

static void tw_get(void* library, const char* name, void* slot, const char** missing) {
  void* const found = dlsym(library, name);
  memcpy(slot, &found, sizeof found);
  if (!found && missing && !*missing) *missing = name;
}

static const char* tw_load_entry_points(void* library) {
  const char* missing = 0;
  tw_get(library, "cuInit", &tw_cuda.init, &missing);
  tw_get(library, "cuGetErrorName", &tw_cuda.error_name, &missing);
  tw_get(library, "cuGetErrorString", &tw_cuda.error_text, &missing);
  tw_get(library, "cuDeviceGetCount", &tw_cuda.device_count, &missing);
  tw_get(library, "cuDeviceGet", &tw_cuda.device_get, &missing);
  tw_get(library, "cuDeviceGetAttribute", &tw_cuda.device_attribute, &missing);
  tw_get(library, "cuDevicePrimaryCtxRetain", &tw_cuda.primary_context_retain, &missing);
  tw_get(library, "cuCtxGetCurrent", &tw_cuda.context_get, &missing);
  tw_get(library, "cuCtxPushCurrent_v2", &tw_cuda.context_push, &missing);
  tw_get(library, "cuCtxPopCurrent_v2", &tw_cuda.context_pop, &missing);
  tw_get(library, "cuModuleLoadData", &tw_cuda.module_load, &missing);
  tw_get(library, "cuModuleUnload", &tw_cuda.module_unload, &missing);
  tw_get(library, "cuModuleGetFunction", &tw_cuda.module_function, &missing);
  tw_get(library, "cuFuncGetAttribute", &tw_cuda.function_attribute, &missing);
  tw_get(library, "cuFuncSetAttribute", &tw_cuda.function_set_attribute, &missing);
  tw_get(library, "cuLaunchKernelEx", &tw_cuda.launch, &missing);
  tw_get(library, "cuMemAlloc_v2", &tw_cuda.memory_allocate, &missing);
  tw_get(library, "cuMemFree_v2", &tw_cuda.memory_free, &missing);
  tw_get(library, "cuMemAllocAsync", &tw_cuda.allocate_in_stream, &missing);
  tw_get(library, "cuMemFreeAsync", &tw_cuda.free_in_stream, &missing);
  tw_get(library, "cuMemsetD8Async", &tw_cuda.set_bytes, &missing);
  tw_get(library, "cuPointerGetAttribute", &tw_cuda.pointer_attribute, &missing);
  tw_get(library, "cuStreamSynchronize", &tw_cuda.stream_synchronize, &missing);
  tw_get(library, "cuTensorMapEncodeTiled", &tw_cuda.tensor_map_encode, 0);
  return missing;
}

static int tw_check_driver(const struct tw_aot_kernel* kernel, int result, const char* what) {
  const char *name = 0, *text = 0;
  if (result == 0) return 0;
  if (tw_cuda.error_name(result, &name) != 0 || !name) name = "an unknown error";
  if (tw_cuda.error_text(result, &text) != 0 || !text) text = "no text";
  return tw_fail(result == 2 ? TW_CODE_OutOfMemory : TW_CODE_CudaCallFailed, "%s: cannot %s: %s (%d): %s", kernel->name,
                 what, name, result, text);
}

static pthread_mutex_t tw_cuda_mutex = PTHREAD_MUTEX_INITIALIZER;
static void* tw_contexts[TW_MAX_DEVICES];

/* The driver, once for the process. The mutex is held. */
static int tw_find_driver(const struct tw_aot_kernel* kernel, int* devices) {
  static int ready = 0, count = 0;
  if (!ready) {
    const char* wish = secure_getenv("TILEWRIGHT_LIBCUDA");
    void* const library = dlopen(wish && *wish ? wish : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char* reason = dlerror();
      return tw_fail(TW_CODE_CudaDriverMissing, "%s: no CUDA driver: %s", kernel->name, reason ? reason : "not found");
    }
    const char* missing = tw_load_entry_points(library);
    if (missing)
      return tw_fail(TW_CODE_CudaDriverTooOld,
                     "%s: the CUDA driver has no %s: CUDA 11.8 or newer is needed, 12.0 for TMA", kernel->name,
                     missing);
    const int started = tw_cuda.init(0);
    if (started == 0) tw_cuda.device_count(&count);
    if (started != 0 || count == 0)
      return tw_fail(TW_CODE_CudaDeviceMissing, "%s: the CUDA driver finds no device (%d)", kernel->name, started);
    ready = 1;
  }
  *devices = count;
  return 0;
}

/* ---- a kernel's image on one device */

struct tw_module {
  void* module;
  void* functions[TW_MAX_LAUNCHES];
  tw_address placeholder; /* zeros, for maps of empty buffers */
};

enum {
  TW_ATTRIBUTE_MAJOR = 75,
  TW_ATTRIBUTE_MINOR = 76,
  TW_ATTRIBUTE_COOPERATIVE = 95,
  TW_ATTRIBUTE_SHARED_BYTES = 97,
  TW_ATTRIBUTE_CLUSTERS = 120,
  TW_FUNCTION_MAX_THREADS = 0,
  TW_FUNCTION_STATIC_SHARED = 1,
  TW_FUNCTION_REGISTERS = 4,
  TW_FUNCTION_MAX_DYNAMIC_SHARED = 8,
  TW_FUNCTION_NON_PORTABLE_CLUSTER = 14,
  TW_PLACEHOLDER_BYTES = 256,
  TW_PORTABLE_CLUSTER = 8 /* CUDA programming guide, thread block clusters */
};

static int tw_device_value(int device, int attribute) {
  int value = 0, number = 0;
  if (tw_cuda.device_get(&number, device) != 0 || tw_cuda.device_attribute(&value, attribute, number) != 0) return 0;
  return value;
}

/* A cubin runs on its own major version from its minor version on; with a letter behind it, on its own version alone.
 */
static int tw_check_device(const struct tw_aot_kernel* kernel, int device) {
  const int major = tw_device_value(device, TW_ATTRIBUTE_MAJOR), minor = tw_device_value(device, TW_ATTRIBUTE_MINOR);
  char* end = 0;
  const long number = strtol(kernel->arch + 3, &end, 10);
  if (major == number / 10 && (*end ? minor == number % 10 : minor >= number % 10)) return 0;
  return tw_fail(TW_CODE_CudaDeviceUnfit, "%s: compiled for %s, but cuda:%d is sm_%d%d", kernel->name, kernel->arch,
                 device, major, minor);
}

static int tw_prepare_launch(const struct tw_aot_kernel* kernel, const struct tw_launch* l, int device,
                             struct tw_module* m, int index) {
  int code, most_threads = 0, static_bytes = 0, registers = 0;
  const int threads = l->block[0] * l->block[1] * l->block[2], cluster = l->cluster[0] * l->cluster[1] * l->cluster[2];
  const int room = tw_device_value(device, TW_ATTRIBUTE_SHARED_BYTES);
  void** const function = &m->functions[index];
  if ((code = tw_check_driver(kernel, tw_cuda.module_function(function, m->module, l->function), "find a kernel")) !=
          0 ||
      (code = tw_check_driver(kernel, tw_cuda.function_attribute(&most_threads, TW_FUNCTION_MAX_THREADS, *function),
                              "ask for a kernel's threads")) != 0 ||
      (code = tw_check_driver(kernel, tw_cuda.function_attribute(&static_bytes, TW_FUNCTION_STATIC_SHARED, *function),
                              "ask for a kernel's shared memory")) != 0)
    return code;
  tw_cuda.function_attribute(&registers, TW_FUNCTION_REGISTERS, *function);
  if (threads > most_threads)
    return tw_fail(TW_CODE_CudaDeviceUnfit,
                   "%s: a block of kernel '%s' has %d threads, but with its %d registers cuda:%d runs at most %d",
                   kernel->name, l->function, threads, registers, device, most_threads);
  if (static_bytes + l->shared_bytes > room)
    return tw_fail(TW_CODE_CudaDeviceUnfit,
                   "%s: a block of kernel '%s' takes %d bytes of shared memory, but cuda:%d gives at most %d",
                   kernel->name, l->function, static_bytes + l->shared_bytes, device, room);
  if ((cluster > 1 && !tw_device_value(device, TW_ATTRIBUTE_CLUSTERS)) ||
      (l->cooperative && !tw_device_value(device, TW_ATTRIBUTE_COOPERATIVE)))
    return tw_fail(TW_CODE_CudaDeviceUnfit, "%s: kernel '%s' is launched %s, which cuda:%d cannot do", kernel->name,
                   l->function, cluster > 1 ? "in clusters" : "cooperatively", device);
  if (l->shared_bytes > 0 &&
      (code = tw_check_driver(
           kernel, tw_cuda.function_set_attribute(*function, TW_FUNCTION_MAX_DYNAMIC_SHARED, l->shared_bytes),
           "ask for dynamic shared memory")) != 0)
    return code;
  if (cluster > TW_PORTABLE_CLUSTER)
    return tw_check_driver(kernel, tw_cuda.function_set_attribute(*function, TW_FUNCTION_NON_PORTABLE_CLUSTER, 1),
                           "ask for large clusters");
  return 0;
}

static int tw_fill_module(const struct tw_aot_kernel* kernel, const struct tw_version* version, int device,
                          struct tw_module* m) {
  int code;
  if (version->map_count > 0 &&
      ((code = tw_check_driver(kernel, tw_cuda.memory_allocate(&m->placeholder, TW_PLACEHOLDER_BYTES),
                               "allocate memory")) != 0 ||
       (code = tw_check_driver(kernel, tw_cuda.set_bytes(m->placeholder, 0, TW_PLACEHOLDER_BYTES, 0),
                               "clear memory")) != 0 ||
       (code = tw_check_driver(kernel, tw_cuda.stream_synchronize(0), "wait for the default stream")) != 0))
    return code;
  if ((code = tw_check_driver(kernel, tw_cuda.module_load(&m->module, version->image), "load the kernel")) != 0)
    return code;
  for (int i = 0; i < version->launch_count; ++i)
    if ((code = tw_prepare_launch(kernel, &version->launches[i], device, m, i)) != 0) return code;
  return 0;
}

/* What a version is on a device, loaded at the first call there and kept. The device's context is current. */
static int tw_module_of(const struct tw_aot_kernel* kernel, const struct tw_version* version, int device,
                        struct tw_module** out) {
  int code = 0;
  void** const slot = &version->modules[device];
  *out = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
  if (*out) return 0;
  if ((code = tw_check_device(kernel, device)) != 0) return code;
  pthread_mutex_lock(&tw_cuda_mutex);
  *out = *slot;
  if (!*out) {
    struct tw_module* made = calloc(1, sizeof *made);
    if (!made) code = tw_fail(TW_CODE_OutOfMemory, "%s: no memory", kernel->name);
    if (made && (code = tw_fill_module(kernel, version, device, made)) != 0) {
      if (made->module) tw_cuda.module_unload(made->module);
      if (made->placeholder) tw_cuda.memory_free(made->placeholder);
      free(made);
      made = 0;
    }
    __atomic_store_n(slot, (void*)made, __ATOMIC_RELEASE);
    *out = made;
  }
  pthread_mutex_unlock(&tw_cuda_mutex);
  return code;
}

/* ---- where tensors are */

static int tw_context_of(const struct tw_aot_kernel* kernel, int device, void** out) {
  int code = 0, devices = 0, number = 0;
  pthread_mutex_lock(&tw_cuda_mutex);
  code = tw_find_driver(kernel, &devices);
  if (code == 0 && (device < 0 || device >= devices || device >= TW_MAX_DEVICES))
    code = tw_fail(TW_CODE_CudaDeviceMissing, "%s: there is no cuda:%d", kernel->name, device);
  if (code == 0 && !tw_contexts[device] &&
      (code = tw_check_driver(kernel, tw_cuda.device_get(&number, device), "ask for a device")) == 0)
    code = tw_check_driver(kernel, tw_cuda.primary_context_retain(&tw_contexts[device], number), "open a device");
  *out = tw_contexts[device < 0 || device >= TW_MAX_DEVICES ? 0 : device];
  pthread_mutex_unlock(&tw_cuda_mutex);
  return code;
}

/* Makes the context current, unless it is; *pushed says whether it is to be popped. */
static int tw_enter(const struct tw_aot_kernel* kernel, void* context, int* pushed) {
  void* current = 0;
  tw_cuda.context_get(&current);
  *pushed = current != context;
  if (!*pushed) return 0;
  const int code = tw_check_driver(kernel, tw_cuda.context_push(context), "make a device current");
  if (code != 0) *pushed = 0;
  return code;
}
static void tw_leave(int pushed) {
  void* ours = 0;
  if (pushed) tw_cuda.context_pop(&ours);
}

/* The device of all tensors; 0 where none has elements. Some context is current. */
static int tw_device_of(const struct tw_bound* call, int* device) {
  enum { MEMORY_TYPE = 2, DEVICE_ORDINAL = 9, HOST = 1 };
  int tensor = 0, first = -1;
  *device = 0;
  for (int i = 0; i < call->kernel->parameter_count; ++i) {
    const struct tw_parameter* p = &call->kernel->parameters[i];
    if (!p->is_tensor) continue;
    const struct tw_tensor_view* view = &call->views[tensor];
    const tw_address address = (tw_address)(uintptr_t)call->tensors[tensor++];
    unsigned type = 0;
    int ordinal = 0;
    if (!view->given || !view->has_elements) continue;
    /* Memory that the driver never saw is an invalid value. */
    if (tw_cuda.pointer_attribute(&type, MEMORY_TYPE, address) != 0 || type == HOST ||
        tw_cuda.pointer_attribute(&ordinal, DEVICE_ORDINAL, address) != 0)
      return tw_fail(TW_CODE_PointerNotOnDevice, "%s: argument %d '%s' is not in the memory of a CUDA device",
                     call->kernel->name, i, p->name);
    if (first >= 0 && ordinal != *device)
      return tw_fail(TW_CODE_ArgumentDevice, "%s: argument %d '%s' is on cuda:%d, but '%s' is on cuda:%d",
                     call->kernel->name, i, p->name, ordinal, call->kernel->parameters[first].name, *device);
    if (first < 0) first = i, *device = ordinal;
  }
  return 0;
}

/* ---- tensor maps */

struct tw_map_values {
  tw_address address;
  unsigned long long dims[5], strides[5]; /* elements; bytes, of dims[1] and on */
};

static int tw_refuse_map(const struct tw_bound* call, const struct tw_map* map, const char* why, long long value) {
  return tw_fail(
      TW_CODE_TensorMapInvalid,
      "%s: no tensor map of '%s': %s (%lld): TMA walks at most 2^32 elements a dimension, with strides that are "
      "multiples of 16 bytes below 2^40",
      call->kernel->name, map->name, why, value);
}

static int tw_evaluate_map(const struct tw_bound* call, const struct tw_map* map, const void* buffer,
                           tw_address placeholder, struct tw_map_values* v) {
  const long long unit = map->interleave == 2 ? 32 : 16;
  int empty = buffer == 0;
  memset(v, 0, sizeof *v);
  for (int d = 0; d < map->rank; ++d) {
    long long extent = 0;
    if (!tw_evaluate(&map->dims[d], call, &extent) || extent < 0 || extent > 1ll << 32)
      return tw_refuse_map(call, map, "elements of a dimension", extent);
    v->dims[d] = (unsigned long long)extent;
    empty |= extent == 0;
  }
  if (empty) {
    v->address = placeholder;
    for (int d = 0; d < map->rank; ++d) v->dims[d] = 1, v->strides[d] = (unsigned long long)unit;
    return 0;
  }
  v->address = (tw_address)(uintptr_t)buffer + (tw_address)map->byte_offset;
  if (v->address % (tw_address)unit != 0)
    return tw_refuse_map(call, map, "bytes that its address lies past a multiple of 16",
                         (long long)(v->address % (tw_address)unit));
  /* The stride of a dimension of extent 1 is never walked. */
  for (int d = 0; d + 1 < map->rank; ++d) {
    long long elements = 0, bits = 0;
    v->strides[d] = (unsigned long long)unit;
    if (v->dims[d + 1] == 1) continue;
    if (!tw_evaluate(&map->strides[d], call, &elements) || __builtin_mul_overflow(elements, map->bits, &bits) ||
        bits < 0 || bits / 8 % unit != 0 || bits / 8 >= 1ll << 40)
      return tw_refuse_map(call, map, "elements of a stride", elements);
    v->strides[d] = (unsigned long long)(bits / 8);
  }
  return 0;
}

/* 256 bytes a miss only for rows that are whole lines of the cache, as cuda_tensor_map.cpp says. */
static int tw_promotion_of(const struct tw_map* map, const struct tw_map_values* v) {
  enum { BYTES_128 = 2 };
  const unsigned long long line = 128;
  int whole = map->box[0] * (unsigned long long)map->bits / 8 % line == 0 && v->address % line == 0;
  for (int d = 0; d + 1 < map->rank; ++d) whole = whole && (v->dims[d + 1] == 1 || v->strides[d] % line == 0);
  return whole || map->l2_promotion < BYTES_128 ? map->l2_promotion : BYTES_128;
}

static int tw_fill_map(const struct tw_bound* call, const struct tw_map* map, const void* buffer,
                       tw_address placeholder, struct tw_tensor_map* out) {
  static const unsigned ones[5] = {1, 1, 1, 1, 1};
  struct tw_map_values v;
  const int code = tw_evaluate_map(call, map, buffer, placeholder, &v);
  if (code != 0) return code;
  if (!tw_cuda.tensor_map_encode)
    return tw_fail(TW_CODE_CudaDriverTooOld, "%s: the CUDA driver has no cuTensorMapEncodeTiled: CUDA 12.0 is needed",
                   call->kernel->name);
  const int result = tw_cuda.tensor_map_encode(out, map->type, (unsigned)map->rank, (void*)(uintptr_t)v.address, v.dims,
                                               v.strides, map->box, map->element_strides ? map->element_strides : ones,
                                               map->interleave, map->swizzle, tw_promotion_of(map, &v), map->oob_fill);
  return result == 0 ? 0 : tw_refuse_map(call, map, "the driver refuses it", result);
}

/* ---- launches */

enum { TW_PARAMETER_BYTES = 4096, TW_PARAMETERS = 256 };

struct tw_parameter_block {
  char bytes[TW_PARAMETER_BYTES] __attribute__((aligned(64)));
  void* places[TW_PARAMETERS];
  size_t used;
};

static void* tw_place(struct tw_parameter_block* block, int index, size_t bytes, size_t alignment) {
  block->used = (block->used + alignment - 1) / alignment * alignment;
  block->places[index] = block->bytes + block->used;
  block->used += bytes;
  return block->places[index];
}

static int tw_fill_parameters(const struct tw_bound* call, const struct tw_version* version, const struct tw_launch* l,
                              void* const* buffers, const struct tw_module* m, struct tw_parameter_block* block) {
  for (int i = 0; i < l->parameter_count; ++i) {
    const struct tw_launch_parameter* p = &l->parameters[i];
    if (p->kind == TW_BUFFER_PARAMETER) {
      memcpy(tw_place(block, i, 8, 8), &buffers[p->index], 8);
    } else if (p->kind == TW_VALUE_PARAMETER) {
      long long number = 0;
      const int known = tw_evaluate(&p->value, call, &number);
      if (!known || (p->bytes == 4 && (number < -(1ll << 31) || number >= 1ll << 32)))
        return tw_fail(TW_CODE_LaunchValueRange, "%s: parameter %d of kernel '%s' does not fit its type",
                       call->kernel->name, i, l->function);
      memcpy(tw_place(block, i, (size_t)p->bytes, (size_t)p->bytes), &number, (size_t)p->bytes);
    } else {
      const struct tw_map* map = &version->maps[p->index];
      const int code = tw_fill_map(call, map, buffers[map->buffer], m->placeholder,
                                   tw_place(block, i, sizeof(struct tw_tensor_map), 64));
      if (code != 0) return code;
    }
  }
  return 0;
}

static int tw_set_grid(const struct tw_bound* call, const struct tw_launch* l, struct tw_launch_config* config) {
  static const long long largest[3] = {2147483647, 65535, 65535}; /* CUDA programming guide, compute capabilities */
  for (int d = 0; d < 3; ++d) {
    long long blocks = -1;
    const int known = tw_evaluate(&l->grid[d], call, &blocks);
    if (!known || blocks < 0 || blocks > largest[d] || blocks % l->cluster[d] != 0)
      return tw_fail(
          TW_CODE_LaunchGridInvalid,
          "%s: kernel '%s' has %lld blocks in dimension %d of its grid, but must have 0 to %lld in clusters of %d",
          call->kernel->name, l->function, blocks, d, largest[d], l->cluster[d]);
    config->grid[d] = (unsigned)blocks;
  }
  return 0;
}

static int tw_launch_one(const struct tw_bound* call, const struct tw_version* version, int index,
                         const struct tw_module* m, void* const* buffers, void* stream) {
  enum { COOPERATIVE = 2, CLUSTER = 4, PROGRAMMATIC = 6 };
  const struct tw_launch* l = &version->launches[index];
  struct tw_launch_attribute attributes[3];
  struct tw_launch_config config;
  struct tw_parameter_block block;
  int code;
  memset(attributes, 0, sizeof attributes);
  memset(&config, 0, sizeof config);
  if ((code = tw_set_grid(call, l, &config)) != 0) return code;
  if (config.grid[0] == 0 || config.grid[1] == 0 || config.grid[2] == 0) return 0;
  for (int d = 0; d < 3; ++d) config.block[d] = (unsigned)l->block[d];
  config.shared_bytes = (unsigned)l->shared_bytes, config.stream = stream, config.attributes = attributes;
  if (l->cluster[0] * l->cluster[1] * l->cluster[2] != 1) {
    struct tw_launch_attribute* a = &attributes[config.attribute_count++];
    a->id = CLUSTER;
    for (int d = 0; d < 3; ++d) a->as.value[d] = (unsigned)l->cluster[d];
  }
  if (l->cooperative)
    attributes[config.attribute_count].id = COOPERATIVE, attributes[config.attribute_count++].as.value[0] = 1;
  if (l->begins_early)
    attributes[config.attribute_count].id = PROGRAMMATIC, attributes[config.attribute_count++].as.value[0] = 1;
  block.used = 0;
  if ((code = tw_fill_parameters(call, version, l, buffers, m, &block)) != 0) return code;
  return tw_check_driver(call->kernel, tw_cuda.launch(&config, m->functions[index], block.places, 0), "launch");
}

/* In order on the stream, with workspaces that the stream gives and takes back. The device's context is current. */
static int tw_launch_all(const struct tw_bound* call, const struct tw_version* version, int device, void* stream) {
  void* buffers[TW_MAX_BUFFERS];
  tw_address lent[TW_MAX_BUFFERS];
  struct tw_module* m = 0;
  int count = 0, code = tw_module_of(call->kernel, version, device, &m);
  if (code != 0) return code;
  if (call->tensor_count > 0) memcpy(buffers, call->tensors, (size_t)call->tensor_count * sizeof *buffers);
  for (; code == 0 && count < version->workspace_count; count += code == 0) {
    size_t bytes = 0;
    if ((code = tw_workspace_bytes(call, &version->workspaces[count], &bytes)) == 0)
      code = tw_check_driver(call->kernel, tw_cuda.allocate_in_stream(&lent[count], bytes ? bytes : 1, stream),
                             "allocate a workspace");
    if (code != 0) continue;
    buffers[call->tensor_count + count] = (void*)(uintptr_t)lent[count];
    if (version->workspaces[count].zeroed && (code = tw_cuda.set_bytes(lent[count], 0, bytes, stream)) != 0) {
      code = tw_check_driver(call->kernel, code, "clear a workspace");
      ++count; /* it is given back */
    }
  }
  for (int i = 0; code == 0 && i < version->launch_count; ++i)
    code = tw_launch_one(call, version, i, m, buffers, stream);
  while (count-- > 0) {
    const int freed = tw_cuda.free_in_stream(lent[count], stream);
    if (code == 0) code = tw_check_driver(call->kernel, freed, "free a workspace");
  }
  return code;
}

static int tw_run_on_device(const struct tw_bound* call, const struct tw_version* version, void* stream) {
  void *context = 0, *current = 0;
  int code, device = 0, pushed = 0;
  /* Pointers are asked about in any context, and kernels run in that of the device's runtime. */
  if ((code = tw_context_of(call->kernel, 0, &context)) != 0) return code;
  tw_cuda.context_get(&current);
  if (!current && (code = tw_enter(call->kernel, context, &pushed)) != 0) return code;
  code = tw_device_of(call, &device);
  tw_leave(pushed);
  if (code != 0 || (code = tw_context_of(call->kernel, device, &context)) != 0 ||
      (code = tw_enter(call->kernel, context, &pushed)) != 0)
    return code;
  code = tw_launch_all(call, version, device, stream);
  tw_leave(pushed);
  return code;
}
