/* The runtime of kernels that were compiled ahead of time, in C99: what bind.cpp and shared_memory.cpp check of a call,
   and its way to the kernel. The numbers of errors, TW_CODE_..., and includes stand before it. */

/* ---- errors */

static __thread char tw_error_buffer[1024];

const char* tilewright_error_text(void) { return tw_error_buffer; }

static int tw_fail(int code, const char* format, ...) __attribute__((format(printf, 2, 3)));
static int tw_fail(int code, const char* format, ...) {
  va_list arguments;
  const int head = snprintf(tw_error_buffer, sizeof tw_error_buffer, "TW%04d: ", code);
  va_start(arguments, format);
  vsnprintf(tw_error_buffer + head, sizeof tw_error_buffer - (size_t)head, format, arguments);
  va_end(arguments);
  return code;
}

/* A text that is cut where there is no more room. */
struct tw_text {
  char bytes[400];
  size_t used;
};
static void tw_add(struct tw_text* text, const char* format, ...) __attribute__((format(printf, 2, 3)));
static void tw_add(struct tw_text* text, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int more = vsnprintf(text->bytes + text->used, sizeof text->bytes - text->used, format, arguments);
  va_end(arguments);
  if (more > 0) text->used += (size_t)more;
  if (text->used >= sizeof text->bytes) text->used = sizeof text->bytes - 1;
}

/* ---- a call that is being checked */

struct tw_tensor_view {
  int given; /* not null */
  int has_elements;
  int bits;
  int rank;
  long long shape[TW_MAX_RANK], strides[TW_MAX_RANK];
  long long elements;
};
struct tw_bound {
  const struct tw_aot_kernel* kernel;
  void* const* tensors;
  const long long* integers; /* symbols, then scalars */
  struct tw_tensor_view views[TW_MAX_BUFFERS];
  int tensor_count;
};

/* ---- expressions */

static int tw_fits_bits(long long value, int bits, int is_signed) {
  if (bits >= 64) return 1;
  if (is_signed) return value >= -(1ll << (bits - 1)) && value < 1ll << (bits - 1);
  return value >= 0 && value < 1ll << bits;
}

static long long tw_floor_div(long long a, long long b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static int tw_apply_op(int kind, long long a, long long b, long long* result) {
  const int divides = b != 0 && !(b == -1 && a == LLONG_MIN);
  switch (kind) {
    case TW_OP_ADD: return !__builtin_add_overflow(a, b, result);
    case TW_OP_SUB: return !__builtin_sub_overflow(a, b, result);
    case TW_OP_MUL: return !__builtin_mul_overflow(a, b, result);
    case TW_OP_FLOOR_DIV:
      if (divides) *result = tw_floor_div(a, b);
      return divides;
    case TW_OP_FLOOR_MOD:
      if (divides) *result = a - tw_floor_div(a, b) * b;
      return divides;
    case TW_OP_MIN: *result = a < b ? a : b; return 1;
    case TW_OP_MAX: *result = a < b ? b : a; return 1;
    case TW_OP_LESS: *result = a < b; return 1;
    case TW_OP_LESS_EQUAL: *result = a <= b; return 1;
    case TW_OP_EQUAL: *result = a == b; return 1;
    case TW_OP_NOT_EQUAL: *result = a != b; return 1;
    case TW_OP_AND: *result = a != 0 && b != 0; return 1;
    case TW_OP_OR: *result = a != 0 || b != 0; return 1;
    default: return 0;
  }
}

/* 0 where there is no value in 64 bits or in the type that it must fit. */
static int tw_evaluate(const struct tw_expression* e, const struct tw_bound* call, long long* result) {
  long long stack[TW_MAX_DEPTH] = {0};
  int top = 0;
  for (int i = 0; i < e->count; ++i) {
    const struct tw_op op = e->ops[i];
    switch (op.kind) {
      case TW_OP_CONSTANT: stack[top++] = op.value; break;
      case TW_OP_SYMBOL: stack[top++] = call->integers[op.value]; break;
      case TW_OP_SCALAR: stack[top++] = call->integers[call->kernel->symbol_count + op.value]; break;
      case TW_OP_NOT: stack[top - 1] = stack[top - 1] == 0; break;
      case TW_OP_FITS:
        if (!tw_fits_bits(stack[top - 1], (int)(op.value < 0 ? -op.value : op.value), op.value < 0)) return 0;
        break;
      default:
        --top;
        if (!tw_apply_op(op.kind, stack[top - 1], stack[top], &stack[top - 1])) return 0;
    }
  }
  *result = stack[0];
  return 1;
}

/* The values that an expression is computed from: " (M = 5, n = 3)". */
static void tw_add_inputs(struct tw_text* text, const struct tw_expression* e, const struct tw_bound* call) {
  const struct tw_aot_kernel* kernel = call->kernel;
  int shown = 0;
  for (int i = 0; i < e->count; ++i) {
    const struct tw_op op = e->ops[i];
    int again = 0;
    if (op.kind != TW_OP_SYMBOL && op.kind != TW_OP_SCALAR) continue;
    for (int k = 0; k < i; ++k) again |= e->ops[k].kind == op.kind && e->ops[k].value == op.value;
    if (again) continue;
    const char* name = op.kind == TW_OP_SYMBOL ? kernel->symbols[op.value].name : "";
    long long at = 0;
    for (int p = 0; p < kernel->parameter_count && op.kind == TW_OP_SCALAR; ++p)
      if (!kernel->parameters[p].is_tensor && at++ == op.value) name = kernel->parameters[p].name;
    tw_add(text, "%s%s = %lld", shown++ ? ", " : " (", name,
           call->integers[(op.kind == TW_OP_SYMBOL ? 0 : kernel->symbol_count) + op.value]);
  }
  if (shown) tw_add(text, ")");
}

static int tw_refuse_overflow(const struct tw_bound* call, const struct tw_expression* e) {
  struct tw_text inputs = {{0}, 0};
  tw_add_inputs(&inputs, e, call);
  return tw_fail(TW_CODE_ExpressionOverflow, "%s: %s has no value in its type%s", call->kernel->name, e->text,
                 inputs.bytes);
}

/* ---- shapes */

/* The room that rounding a dimension up to whole tiles takes. */
static int tw_leaves_room(const struct tw_symbol* s, long long value) {
  if (!tw_fits_bits(value, s->bits, s->is_signed)) return 0;
  return s->bits < 32 ||
         (value <= LLONG_MAX - TW_SYMBOL_ROOM && tw_fits_bits(value + TW_SYMBOL_ROOM, s->bits, s->is_signed));
}

static int tw_check_symbols(const struct tw_bound* call) {
  for (int i = 0; i < call->kernel->symbol_count; ++i) {
    const struct tw_symbol* s = &call->kernel->symbols[i];
    const long long value = call->integers[i];
    const int negative = value < 0 && s->is_extent;
    if (!negative && tw_leaves_room(s, value)) continue;
    return tw_fail(TW_CODE_SymbolUnsolvable, "%s: %s = %lld %s %s", call->kernel->name, s->name, value,
                   negative                                     ? "is negative, but is a dimension of type"
                   : tw_fits_bits(value, s->bits, s->is_signed) ? "leaves no room to round it up in"
                                                                : "does not fit",
                   s->dtype);
  }
  return 0;
}

static int tw_view(struct tw_bound* call, int number, const struct tw_parameter* p, struct tw_tensor_view* view) {
  const char* name = call->kernel->name;
  view->bits = p->bits, view->rank = p->rank;
  view->elements = 1;
  long long bytes = p->bits;
  for (int d = 0; d < p->rank; ++d) {
    if (!tw_evaluate(&p->shape[d], call, &view->shape[d])) return tw_refuse_overflow(call, &p->shape[d]);
    if (view->shape[d] < 0) {
      struct tw_text inputs = {{0}, 0};
      tw_add_inputs(&inputs, &p->shape[d], call);
      return tw_fail(TW_CODE_ArgumentShape, "%s: argument %d '%s' has a negative dimension %d: %s = %lld%s", name,
                     number, p->name, d, p->shape[d].text, view->shape[d], inputs.bytes);
    }
    if (view->shape[d] == 0) view->elements = 0;
  }
  for (int d = p->rank; d-- > 0 && view->elements != 0;) {
    long long stride = view->elements;
    if (p->strides && !tw_evaluate(&p->strides[d], call, &stride)) return tw_refuse_overflow(call, &p->strides[d]);
    view->strides[d] = stride;
    long long way = 0;
    if (__builtin_mul_overflow(view->elements, view->shape[d], &view->elements) ||
        __builtin_mul_overflow(stride, view->shape[d], &way) || __builtin_mul_overflow(way, p->bits, &way) ||
        __builtin_mul_overflow(view->elements, p->bits, &bytes))
      return tw_fail(TW_CODE_ExpressionOverflow, "%s: argument %d '%s' has more bytes than 64 bits count", name, number,
                     p->name);
  }
  view->has_elements = view->elements != 0;
  return 0;
}

static int tw_bind_tensors(struct tw_bound* call) {
  int code;
  for (int i = 0; i < call->kernel->parameter_count; ++i) {
    const struct tw_parameter* p = &call->kernel->parameters[i];
    if (!p->is_tensor) continue;
    struct tw_tensor_view* view = &call->views[call->tensor_count];
    view->given = call->tensors[call->tensor_count++] != 0;
    if (!view->given && p->nullable) continue;
    if ((code = tw_view(call, i, p, view)) != 0) return code;
    if (view->has_elements && !view->given)
      return tw_fail(TW_CODE_ArgumentNull, "%s: argument %d '%s' is null, but the program uses it", call->kernel->name,
                     i, p->name);
  }
  return 0;
}

/* Whether there is nothing to write: a product whose inner extent is 0 still writes its zeros. */
static int tw_nothing_to_do(const struct tw_bound* call) {
  int empty = 0, elements = 0;
  for (int t = 0; t < call->tensor_count; ++t)
    if (call->views[t].given || call->views[t].rank > 0) (call->views[t].has_elements ? (elements = 1) : (empty = 1));
  return empty && !elements;
}

/* ---- memory that tensors share */

struct tw_extent {
  unsigned long long begin, end;
};

static long long tw_element_bytes(const struct tw_tensor_view* v) { return v->bits < 8 ? 1 : v->bits / 8; }

static int tw_is_contiguous(const struct tw_tensor_view* v) {
  long long step = 1;
  for (int d = v->rank; d-- > 0; step *= v->shape[d])
    if (v->shape[d] != 1 && v->strides[d] != step) return 0;
  return 1;
}

static struct tw_extent tw_extent_of(const struct tw_tensor_view* v, const void* data) {
  struct tw_extent e = {(unsigned long long)(uintptr_t)data, (unsigned long long)(uintptr_t)data};
  if (v->bits < 8 && tw_is_contiguous(v)) {
    e.end += (unsigned long long)((v->elements + 1) / 2);
    return e;
  }
  for (int d = 0; d < v->rank; ++d) {
    const long long way = (v->shape[d] - 1) * v->strides[d] * v->bits / 8;
    if (way < 0)
      e.begin += (unsigned long long)way;
    else
      e.end += (unsigned long long)way;
  }
  e.end += (unsigned long long)tw_element_bytes(v);
  return e;
}

/* step * x, where 0 <= x <= most. */
struct tw_step {
  long long step, most;
};
struct tw_search {
  struct tw_step steps[2 * TW_MAX_RANK + 2]; /* descending */
  long long rest[2 * TW_MAX_RANK + 3];       /* what all steps from here on give at most */
  int count, tries;
};

static void tw_add_step(struct tw_search* s, long long step, long long count) {
  int at = 0;
  if (step < 0) step = -step;
  if (step == 0 || count <= 1) return;
  while (at < s->count && s->steps[at].step > step) ++at;
  if (at < s->count && s->steps[at].step == step) {
    s->steps[at].most += count - 1;
    return;
  }
  for (int i = s->count++; i > at; --i) s->steps[i] = s->steps[i - 1];
  s->steps[at].step = step, s->steps[at].most = count - 1;
}

/* Is there a sum of the steps from `from` on that gives the number? */
static int tw_reaches(struct tw_search* s, long long number, int from) {
  if (number == 0) return 1;
  if (number < 0 || number > s->rest[from] || s->tries-- <= 0) return 0;
  const long long step = s->steps[from].step, most = s->steps[from].most;
  const long long missing = number - s->rest[from + 1], least = missing > 0 ? (missing + step - 1) / step : 0;
  for (long long x = most < number / step ? most : number / step; x >= least && s->tries > 0; --x)
    if (tw_reaches(s, number - x * step, from + 1)) return 1;
  return 0;
}

static int tw_is_whole(const struct tw_tensor_view* v, struct tw_extent e) {
  return tw_is_contiguous(v) || (long long)(e.end - e.begin) == v->elements * tw_element_bytes(v);
}

/* Do the two share some bytes, but not all? As shared_memory.cpp has it. */
static int tw_overlap_in_part(const struct tw_tensor_view* a, const void* at_a, const struct tw_tensor_view* b,
                              const void* at_b) {
  const struct tw_extent x = tw_extent_of(a, at_a), y = tw_extent_of(b, at_b);
  struct tw_search search = {.tries = 10000};
  const struct tw_tensor_view* both[2] = {a, b};
  int same = at_a == at_b && a->rank == b->rank && a->bits == b->bits;
  if (x.begin >= y.end || y.begin >= x.end) return 0;
  if (tw_is_whole(a, x) && tw_is_whole(b, y)) return x.begin != y.begin || x.end != y.end;
  if (a->bits < 8 || b->bits < 8) return 0;
  for (int d = 0; same && d < a->rank; ++d) same = a->shape[d] == b->shape[d] && a->strides[d] == b->strides[d];
  if (same) return 0;
  /* Bytes are counted from the first of each tensor, those of b down from its last: where do both give one address? */
  for (int t = 0; t < 2; ++t) {
    for (int d = 0; d < both[t]->rank; ++d)
      tw_add_step(&search, both[t]->strides[d] * tw_element_bytes(both[t]), both[t]->shape[d]);
    tw_add_step(&search, 1, tw_element_bytes(both[t]));
  }
  for (int i = search.count; i-- > 0;)
    search.rest[i] = search.rest[i + 1] + search.steps[i].step * search.steps[i].most;
  return tw_reaches(&search, (long long)(y.end - 1 - x.begin), 0);
}

static int tw_check_overlaps(const struct tw_bound* call) {
  const struct tw_aot_kernel* kernel = call->kernel;
  int tensor = -1;
  for (int i = 0; i < kernel->parameter_count; ++i) {
    const struct tw_parameter* p = &kernel->parameters[i];
    if (!p->is_tensor) continue;
    const struct tw_tensor_view* view = &call->views[++tensor];
    if (p->nullable || !view->has_elements) continue;
    for (int k = 0, other = -1; k < i; ++k) {
      const struct tw_parameter* q = &kernel->parameters[k];
      if (!q->is_tensor) continue;
      ++other;
      if (q->nullable || !call->views[other].has_elements || !(p->written || q->written)) continue;
      if (!tw_overlap_in_part(view, call->tensors[tensor], &call->views[other], call->tensors[other])) continue;
      return tw_fail(TW_CODE_ArgumentsOverlap,
                     "%s: argument %d '%s', which the program writes, shares part of its memory with argument %d '%s'",
                     kernel->name, p->written ? i : k, p->written ? p->name : q->name, p->written ? k : i,
                     p->written ? q->name : p->name);
    }
  }
  return 0;
}

/* ---- the other checks */

static int tw_check_addresses(const struct tw_bound* call) {
  int tensor = 0;
  for (int i = 0; i < call->kernel->parameter_count; ++i) {
    const struct tw_parameter* p = &call->kernel->parameters[i];
    if (!p->is_tensor) continue;
    const unsigned long long address = (unsigned long long)(uintptr_t)call->tensors[tensor];
    const unsigned long long element = (unsigned long long)tw_element_bytes(&call->views[tensor]);
    if (call->views[tensor].given && call->views[tensor].has_elements && address % element != 0)
      return tw_fail(TW_CODE_ArgumentAlignment,
                     "%s: argument %d '%s' lies %llu bytes past a multiple of %llu, the size of its elements",
                     call->kernel->name, i, p->name, address % element, element);
    ++tensor;
  }
  return 0;
}

static int tw_check_assumptions(const struct tw_bound* call) {
  for (int i = 0; i < call->kernel->assumption_count; ++i) {
    const struct tw_assumption* a = &call->kernel->assumptions[i];
    struct tw_text inputs = {{0}, 0};
    long long holds = 0;
    if (!tw_evaluate(&a->condition, call, &holds)) return tw_refuse_overflow(call, &a->condition);
    if (holds != 0) continue;
    tw_add_inputs(&inputs, &a->condition, call);
    return tw_fail(TW_CODE_AssumptionFailed, "%s: Assume: %s does not hold%s", call->kernel->name, a->text,
                   inputs.bytes);
  }
  for (int i = 0; i < call->kernel->grid_count; ++i) {
    long long value;
    if (!tw_evaluate(&call->kernel->grids[i], call, &value)) return tw_refuse_overflow(call, &call->kernel->grids[i]);
  }
  return 0;
}

/* Whether the version takes the call; else the first tensor that lies wrong for it, or -1. */
static int tw_version_takes(const struct tw_bound* call, const struct tw_version* version, int* lies_wrong) {
  *lies_wrong = -1;
  for (int t = 0; t < call->tensor_count; ++t)
    if (call->views[t].given && call->views[t].has_elements && version->alignments[t] > 0 &&
        (uintptr_t)call->tensors[t] % (uintptr_t)version->alignments[t] != 0) {
      *lies_wrong = t;
      return 0;
    }
  for (int i = 0; i < version->assumption_count; ++i) {
    long long holds = 0;
    if (!tw_evaluate(&version->assumptions[i].condition, call, &holds) || holds == 0) return 0;
  }
  return 1;
}

static int tw_choose_version(const struct tw_bound* call, const struct tw_version** chosen) {
  int lies_wrong = -1, tensor = 0;
  for (int v = 0; v < call->kernel->version_count; ++v) {
    *chosen = &call->kernel->versions[v];
    if (tw_version_takes(call, *chosen, &lies_wrong)) return 0;
  }
  for (int i = 0; i < call->kernel->parameter_count; ++i) {
    const struct tw_parameter* p = &call->kernel->parameters[i];
    if (!p->is_tensor || tensor++ != lies_wrong) continue;
    const int wanted = (*chosen)->alignments[lies_wrong];
    return tw_fail(TW_CODE_ArgumentAlignment,
                   "%s: argument %d '%s' lies %llu bytes past a multiple of %d, but must be aligned to %d bytes",
                   call->kernel->name, i, p->name,
                   (unsigned long long)((uintptr_t)call->tensors[lies_wrong] % (uintptr_t)wanted), wanted, wanted);
  }
  return tw_fail(TW_CODE_Internal, "%s: no version of the kernel takes the call", call->kernel->name);
}

static int tw_workspace_bytes(const struct tw_bound* call, const struct tw_workspace* w, size_t* bytes) {
  long long elements = 0, bits = 0;
  if (!tw_evaluate(&w->size, call, &elements) || elements < 0 || __builtin_mul_overflow(elements, w->bits, &bits) ||
      bits > LLONG_MAX - 7)
    return tw_fail(TW_CODE_ExpressionOverflow,
                   "%s: the size of the workspace '%s' is negative or has no value in 64 bits", call->kernel->name,
                   w->name);
  *bytes = (size_t)((bits + 7) / 8);
  return 0;
}

/* ---- on the processor */

static const char* const tw_feature_names[] = {"avx2",        "fma",         "f16c",        "avx512",
                                               "avx512_bf16", "avx512_vnni", "avx512_vbmi", "amx"};

#if defined(__x86_64__)
/* Tiles are a process's once it has asked for them (Linux: ARCH_REQ_XCOMP_PERM of XTILEDATA). */
static int tw_may_use_tiles(void) {
  const unsigned all = 1u << 22 | 1u << 24 | 1u << 25;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & all) == all && syscall(SYS_arch_prctl, 0x1023L, 18L) == 0;
}
#endif

/* What it has of all that a kernel may want; tiles are asked for only if this one wants them. */
static unsigned tw_processor(unsigned wanted) {
  unsigned found = 0;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) found |= 1u;
  if (__builtin_cpu_supports("fma")) found |= 2u;
  if (__builtin_cpu_supports("f16c")) found |= 4u;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    found |= 8u;
  if (__builtin_cpu_supports("avx512bf16")) found |= 16u;
  if (__builtin_cpu_supports("avx512vnni")) found |= 32u;
  if (__builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("gfni")) found |= 64u;
  if ((wanted & 128u) && (found & 48u) == 48u && tw_may_use_tiles()) found |= 128u;
#endif
  return found;
}

static int tw_check_processor(const struct tw_aot_kernel* kernel) {
  const unsigned missing = kernel->features & ~tw_processor(kernel->features);
  struct tw_text names = {{0}, 0};
  if (missing == 0) return 0;
  for (size_t i = 0; i < sizeof tw_feature_names / sizeof *tw_feature_names; ++i)
    if (missing >> i & 1) tw_add(&names, " %s", tw_feature_names[i]);
  return tw_fail(TW_CODE_ProcessorUnfit, "%s: compiled for a processor with%s, which this one has not", kernel->name,
                 names.bytes);
}

/* The failed assertion of the first block and thread. */
struct tw_failure {
  pthread_mutex_t mutex;
  int site;
  long long place[6];
  unsigned long long values[8];
  int count;
};

static int tw_place_before(const long long* a, const long long* b) {
  static const int order[] = {2, 1, 0, 5, 4, 3};
  for (int i = 0; i < 6; ++i)
    if (a[order[i]] != b[order[i]]) return a[order[i]] < b[order[i]];
  return 0;
}

static void tw_take_report(void* host, int site, const long long* place, const unsigned long long* values, int count) {
  struct tw_failure* f = host;
  pthread_mutex_lock(&f->mutex);
  if (f->site < 0 || tw_place_before(place, f->place) || (!tw_place_before(f->place, place) && site < f->site)) {
    f->site = site, f->count = count < 8 ? count : 8;
    memcpy(f->place, place, sizeof f->place);
    memcpy(f->values, values, (size_t)f->count * sizeof *values);
  }
  pthread_mutex_unlock(&f->mutex);
}

static void tw_add_value(struct tw_text* text, int type, unsigned long long word) {
  const unsigned low = (unsigned)word;
  float single;
  double number;
  memcpy(&single, &low, sizeof single);
  memcpy(&number, &word, sizeof number);
  switch (type) {
    case 0: tw_add(text, "%lld", (long long)word); break;
    case 1: tw_add(text, "%llu", word); break;
    case 2: tw_add(text, "%s", word ? "true" : "false"); break;
    case 3: tw_add(text, "%.9g", (double)single); break;
    default: tw_add(text, "%.17g", number);
  }
}

static int tw_refuse_assertion(const struct tw_aot_kernel* kernel, const struct tw_failure* f) {
  struct tw_text values = {{0}, 0};
  const struct tw_site* site = &kernel->sites[f->site];
  const long long* p = f->place;
  for (int i = 0; i < f->count && i < site->operand_count; ++i) {
    tw_add(&values, "%s%s = ", i ? ", " : " (", site->operands[i].name);
    tw_add_value(&values, site->operands[i].type, f->values[i]);
  }
  return tw_fail(TW_CODE_AssertionFailed,
                 "%s: assertion failed in block (%lld, %lld, %lld), thread (%lld, %lld, %lld): %s%s%s (%s)",
                 kernel->name, p[0], p[1], p[2], p[3], p[4], p[5], site->message, values.bytes, f->count ? ")" : "",
                 site->place);
}

extern int omp_get_max_threads(void) __attribute__((weak)); /* none where no kernel has several blocks */

static int tw_thread_count(const struct tw_aot_kernel* kernel, int* count) {
  const char* wish = getenv("TILEWRIGHT_THREADS");
  char* end = 0;
  long wished;
  if (!wish || !*wish) {
    *count = omp_get_max_threads ? omp_get_max_threads() : 1;
    return 0;
  }
  wished = *wish >= '0' && *wish <= '9' ? strtol(wish, &end, 10) : 0; /* which would pass over blanks and signs */
  if (wished < 1 || wished > 65536 || *end)
    return tw_fail(TW_CODE_SettingInvalid, "%s: TILEWRIGHT_THREADS is '%s', which is no number of threads",
                   kernel->name, wish);
  *count = wished < 4096 ? (int)wished : 4096; /* OpenMP keeps a team on a stack, which tens of thousands overflow */
  return 0;
}

static int tw_run_on_processor(const struct tw_bound* call, const struct tw_version* version) {
  void* buffers[TW_MAX_BUFFERS];
  struct tw_failure failure = {PTHREAD_MUTEX_INITIALIZER, -1, {0}, {0}, 0};
  int lent = 0, threads = 1, code = tw_thread_count(call->kernel, &threads);
  if (call->tensor_count > 0) memcpy(buffers, call->tensors, (size_t)call->tensor_count * sizeof *buffers);
  for (; lent < version->workspace_count && code == 0; ++lent) {
    const struct tw_workspace* w = &version->workspaces[lent];
    size_t bytes = 0;
    buffers[call->tensor_count + lent] = 0;
    if ((code = tw_workspace_bytes(call, w, &bytes)) != 0) continue;
    if (posix_memalign(&buffers[call->tensor_count + lent], 64, bytes ? bytes : 64) != 0)
      code = tw_fail(TW_CODE_OutOfMemory, "%s: no memory for the %zu bytes of the workspace '%s'", call->kernel->name,
                     bytes, w->name);
    else if (w->zeroed)
      memset(buffers[call->tensor_count + lent], 0, bytes);
  }
  if (code == 0) {
    const struct tw_call abi = {.buffers = buffers,
                                .integers = call->integers,
                                .host = &failure,
                                .report = tw_take_report,
                                .max_threads = threads};
    if (call->kernel->entry(&abi) != 0) code = tw_refuse_assertion(call->kernel, &failure);
  }
  while (lent-- > 0) free(buffers[call->tensor_count + lent]);
  pthread_mutex_destroy(&failure.mutex);
  return code;
}

/* ---- the call */

static int tw_run_on_device(const struct tw_bound* call, const struct tw_version* version, void* stream);

int tilewright_call_1(const struct tw_aot_kernel* kernel, void* const* tensors, const long long* integers,
                      void* stream) {
  struct tw_bound call;
  const struct tw_version* version = 0;
  int code;
  memset(&call, 0, sizeof call);
  call.kernel = kernel, call.tensors = tensors, call.integers = integers;
  if (kernel->entry && (code = tw_check_processor(kernel)) != 0) return code;
  if ((code = tw_check_symbols(&call)) != 0 || (code = tw_bind_tensors(&call)) != 0 ||
      (code = tw_check_addresses(&call)) != 0 || (code = tw_check_overlaps(&call)) != 0 ||
      (code = tw_check_assumptions(&call)) != 0)
    return code;
  if (tw_nothing_to_do(&call)) return 0;
  if ((code = tw_choose_version(&call, &version)) != 0) return code;
  return kernel->entry ? tw_run_on_processor(&call, version) : tw_run_on_device(&call, version, stream);
}
