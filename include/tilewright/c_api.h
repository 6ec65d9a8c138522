/* The C ABI: what frontends in other languages record programs with, compile and call them by.
 *
 * A program is recorded by operations: rows of one table (tw_operation_at) that says each one's name, parameters and
 * meaning, all called by tw_apply. Shapes, dtypes, promotion and mistakes are decided here; a frontend only carries
 * values. Every function that can fail returns an error, or NULL; nothing is thrown. What a function hands out through
 * an `out` parameter belongs to the caller, who releases it. Text is UTF-8 and ends with 0.
 *
 * Handles other than builders may be used by several threads at a time; a builder by one. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TW_PUBLIC __attribute__((visibility("default")))
#else
#define TW_PUBLIC
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when a function or a field is added; a frontend checks that the library's is at least its own. */
#define TW_ABI_VERSION 7
TW_PUBLIC int tw_abi_version(void);
TW_PUBLIC const char* tw_version(void); /* "0.1.0" */

typedef struct tw_builder tw_builder; /* a program that is being recorded */
typedef struct tw_program tw_program; /* a finished one; immutable */
typedef struct tw_kernel tw_kernel;   /* a compiled one */
typedef struct tw_expr tw_expr;       /* a scalar expression; immutable */
typedef struct tw_error tw_error;

/* ---- errors */

typedef struct tw_error_info {
  const char* kind;    /* "CompileError", "LaunchError", "InternalError" */
  const char* code;    /* "TW1063" */
  const char* area;    /* "build", "launch", ...: from the code's thousands */
  const char* message; /* one sentence */
  const char* help;    /* what to do, or "" */
  const char* text;    /* all of it, with the source line, as it is printed */
  const char* file;    /* "" if no place is known */
  int line, column;    /* from 1; 0: not known */
} tw_error_info;
/* The text lives as long as the error. */
TW_PUBLIC void tw_error_get(const tw_error* error, tw_error_info* info);
TW_PUBLIC void tw_error_release(tw_error* error);

/* A place in the user's file. */
typedef struct tw_place {
  const char* file;
  int line, column;
} tw_place;

/* ---- values: operands and results of operations */

typedef enum tw_kind {
  TW_NONE = 0,
  TW_BOOL,   /* integer */
  TW_INT,    /* integer */
  TW_UINT,   /* integer, whose bits are an unsigned value */
  TW_FLOAT,  /* number */
  TW_TEXT,   /* text: names, dtypes ("float16"), words of an enumeration */
  TW_EXPR,   /* expr */
  TW_BUFFER, /* buffer: all of it, or a scalar variable */
  TW_TILE,   /* buffer, and items: an index or a slice for each dimension */
  TW_SLICE,  /* items: begin and end, either TW_NONE */
  TW_LIST    /* items */
} tw_kind;

typedef struct tw_value {
  int32_t kind;
  uint32_t buffer; /* a row of the builder's table of buffers */
  int64_t count;   /* of items */
  union {
    int64_t integer;
    double number;
    const char* text;
    tw_expr* expr;
    const struct tw_value* items;
  } as;
} tw_value;

TW_PUBLIC void tw_expr_release(tw_expr* expr);
/* "int32". The text lives forever. */
TW_PUBLIC const char* tw_expr_dtype(const tw_expr* expr);
/* TW_BOOL, TW_INT, TW_UINT or TW_FLOAT if the value is known now, else TW_NONE. */
TW_PUBLIC tw_value tw_expr_constant(const tw_expr* expr);
TW_PUBLIC int tw_expr_equal(const tw_expr* a, const tw_expr* b); /* in structure */
/* "float16" for "half", "fp16", ...; NULL if there is no such dtype. */
TW_PUBLIC const char* tw_dtype_name(const char* name);
TW_PUBLIC int tw_dtype_bits(const char* name); /* of one element; 0 if there is no such dtype */
/* Whether tensors of bytes (uint8) are taken for tensors of the dtype, which few libraries know. */
TW_PUBLIC int tw_dtype_as_bytes(const char* name);
/* The dtypes of tensors by their names; NULL for what is not below the number of them. */
TW_PUBLIC const char* tw_tensor_dtype_at(int index);

/* ---- operations */

typedef struct tw_operation {
  const char* name;      /* "gemm" */
  const char* group;     /* "tile", "scalar", "buffer", "thread", "order", "scope" */
  const char* signature; /* "A: tile, B: tile, C: tile, transpose_A: bool = False, ...": kinds and defaults */
  const char* doc;       /* what it does, in a sentence or two */
} tw_operation;
TW_PUBLIC int tw_operation_count(void);
TW_PUBLIC tw_operation tw_operation_at(int index);

TW_PUBLIC tw_builder* tw_builder_create(const char* program_name);
TW_PUBLIC void tw_builder_release(tw_builder* builder);
/* Applies operation `index`. Operands stand in the order of its signature; what is left out at the end is TW_NONE. The
 * builder may be NULL for operations on scalars alone. Expressions of the result are new references; the items of a
 * list, and a text, live until the next call of this thread. */
TW_PUBLIC tw_error* tw_apply(tw_builder* builder, int index, const tw_place* place, const tw_value* operands,
                             size_t count, tw_value* result);
/* Ends the recording; the builder is empty afterwards. */
TW_PUBLIC tw_error* tw_builder_finish(tw_builder* builder, tw_program** out);

/* ---- programs */

TW_PUBLIC void tw_program_release(tw_program* program);
/* Its .tile form; lives as long as the program. */
TW_PUBLIC const char* tw_program_text(tw_program* program);
TW_PUBLIC tw_error* tw_program_parse(const char* text, const char* file_name, tw_program** out);
/* The program with lines of its launches' plans fixed, as `tilewright compile --stage plan` prints them. */
TW_PUBLIC tw_error* tw_program_with_plan(const tw_program* program, const char* plan, tw_program** out);
/* The program with an option set, 1 or 0, by its name in .tile text; where its statements stand is kept. */
TW_PUBLIC tw_error* tw_program_with_option(const tw_program* program, const char* name, int value, tw_program** out);

typedef struct tw_text tw_text; /* a text that the caller releases */
TW_PUBLIC const char* tw_text_get(const tw_text* text);
TW_PUBLIC void tw_text_release(tw_text* text);
/* What becomes of the program and what it costs, as `tilewright explain` says it; json: as an object. arch: a GPU,
 * "sm_90a"; "" is the CPU. names and values: symbols that are known. */
TW_PUBLIC tw_error* tw_program_explain(const tw_program* program, const char* arch, int json, const char* const* names,
                                       const int64_t* values, size_t count, tw_text** out);
/* All that the page about the program shows, as JSON (docs/studio.md): {"explanation": as tw_program_explain says it,
 * "texts", "passes", "layouts", "files"}. */
TW_PUBLIC tw_error* tw_program_studio(const tw_program* program, const char* arch, const char* const* names,
                                      const int64_t* values, size_t count, tw_text** out);
/* What it costs by the model of a machine ("H200", "sm_90a", "H100 memory_bytes=2e6"), before anything runs, as JSON:
 * CostModel::prediction of cost.h. names and values: of symbols and integers. */
TW_PUBLIC tw_error* tw_program_cost(const tw_program* program, const char* machine, const char* const* names,
                                    const int64_t* values, size_t count, tw_text** out);
/* The machines that it knows: a JSON list of their numbers. */
TW_PUBLIC tw_error* tw_machines(tw_text** out);

/* Runs the program on random tensors, the same for one seed, on every engine that takes it, and compares them. names
 * and values: its symbols and the numbers among its parameters. The error is what an engine found wrong or TW4020,
 * where they differ; `out` says which ran; json: {"program", "engines": [{"engine", "milliseconds" or "refusal"},
 * ...]}. */
TW_PUBLIC tw_error* tw_program_check(const tw_program* program, const char* const* names, const double* values,
                                     size_t count, uint64_t seed, int json, tw_text** out);
/* Runs the program on random tensors on the simulator of a GPU: `counts` as tw_kernel_counts gives them, and where
 * `trace` is no NULL, the timeline as tw_kernel_trace does. names and values as for tw_program_check. */
TW_PUBLIC tw_error* tw_program_simulate(const tw_program* program, const char* arch, const char* const* names,
                                        const double* values, size_t count, uint64_t seed, tw_text** counts,
                                        tw_text** trace);
/* Compiles the program ahead of time and writes a C header, an object and JSON to a folder in `folder`: `out` has their
 * paths, a line each. arch: "cpu", "cpu:avx2", "sm_90a", ...; name: of the function, or "" for the program's. */
TW_PUBLIC tw_error* tw_program_build(const tw_program* program, const char* arch, const char* name, const char* folder,
                                     tw_text** out);
/* What this machine offers, as the JSON of `tilewright doctor`. trying: compiles a kernel to see whether compilers
 * work. */
TW_PUBLIC tw_error* tw_machine(int trying, tw_text** out);

/* ---- the kernel library (kernels.h) */

/* The program of a family with these options, by name and text. */
TW_PUBLIC tw_error* tw_library_program(const char* family, const char* const* names, const char* const* texts,
                                       size_t count, tw_program** out);
/* What suits a shape, on "sm_90a" or "" for the CPU, as JSON: {"options": {...}, "microseconds": ...,
 * "parts": ..., "considered": {...}}. */
TW_PUBLIC tw_error* tw_library_choose(const char* family, const char* const* names, const char* const* texts,
                                      size_t count, const char* arch, const char* const* symbols, const int64_t* values,
                                      size_t symbol_count, tw_text** out);

/* ---- kernels */

/* engine: "auto", "host", "cpu", "interpreter", "simulator" or "cuda"; "auto" is what TILEWRIGHT_ENGINE says, else cuda
 * where there is a device, else cpu; "host" is the CPU's engine even where there is a GPU, or what TILEWRIGHT_ENGINE
 * says. "check " before it: each call runs on every engine that fits first, on copies, and what they give is compared
 * (tilewright/check.h). arch: "sm_90a", or "" for that of device 0. */
TW_PUBLIC tw_error* tw_compile(const tw_program* program, const char* engine, const char* arch, tw_kernel** out);
/* On the simulator of a GPU, which counts what the memories do. */
TW_PUBLIC tw_error* tw_compile_counting(const tw_program* program, const char* arch, tw_kernel** out);
/* The same; with `trace` it also keeps when things happen, by a model of a multiprocessor. */
TW_PUBLIC tw_error* tw_compile_simulated(const tw_program* program, const char* arch, int trace, tw_kernel** out);
/* That of the last call, in the Trace Event Format, which ui.perfetto.dev shows; "" before, and where it is not kept.
 */
TW_PUBLIC tw_error* tw_kernel_trace(const tw_kernel* kernel, tw_text** out);
/* What it counted in the last call that ended well, as the JSON of `tilewright simulate`; "" before. */
TW_PUBLIC tw_error* tw_kernel_counts(const tw_kernel* kernel, tw_text** out);
TW_PUBLIC void tw_kernel_release(tw_kernel* kernel);
/* These live as long as the kernel. */
TW_PUBLIC const char* tw_kernel_name(const tw_kernel* kernel);
TW_PUBLIC const char* tw_kernel_engine(const tw_kernel* kernel);
TW_PUBLIC const char* tw_kernel_source(const tw_kernel* kernel); /* "" where the engine has none */
/* What that text takes for granted of a call: "N % 8 == 0". */
TW_PUBLIC int tw_kernel_assumption_count(const tw_kernel* kernel);
TW_PUBLIC const char* tw_kernel_assumption(const tw_kernel* kernel, int index);
/* How many calls did not hold to it, and went to the general version. */
TW_PUBLIC int64_t tw_kernel_general_calls(const tw_kernel* kernel);

typedef struct tw_parameter {
  const char* name;
  const char* dtype;
  int is_tensor;
  int rank; /* of a tensor */
} tw_parameter;
TW_PUBLIC int tw_kernel_parameter_count(const tw_kernel* kernel);
TW_PUBLIC tw_parameter tw_kernel_parameter(const tw_kernel* kernel, int index);
/* What the program does to the tensor: nothing; writes elements; only changes them by what is there, as sums by
 * atomics. */
enum { TW_LEAVES = 0, TW_WRITES = 1, TW_ADDS = 2 };
TW_PUBLIC int tw_kernel_writes(const tw_kernel* kernel, int index);

/* DLPack's DLTensor, bit for bit: a pointer to one is a pointer to the other. */
typedef struct tw_tensor {
  void* data;
  int32_t device_type, device_index;
  int32_t rank;
  uint8_t type_code, type_bits;
  uint16_t type_lanes;
  int64_t* shape;
  int64_t* strides; /* in elements; NULL: row-major */
  uint64_t byte_offset;
} tw_tensor;

/* Type code, bits and lanes of a tensor of the dtype; 0 if there are no such tensors. */
TW_PUBLIC int tw_tensor_set_dtype(tw_tensor* tensor, const char* name);

typedef struct tw_argument {
  int32_t kind; /* TW_NONE, TW_INT, TW_UINT, TW_FLOAT, or TW_TENSOR */
  union {
    int64_t integer;
    double number;
    const tw_tensor* tensor;
  } as;
} tw_argument;
enum { TW_TENSOR = 64 };

/* One argument for each parameter. Returns when the call is done, or with cuda when it is on the stream. */
TW_PUBLIC tw_error* tw_kernel_call(tw_kernel* kernel, const tw_argument* arguments, size_t count);
/* The shape that a tensor left out (TW_NONE) must have, given the others; `shape` has room for 8. */
TW_PUBLIC tw_error* tw_kernel_shape(tw_kernel* kernel, const tw_argument* arguments, size_t count, int parameter,
                                    int64_t* shape);
/* Writes a shared library that holds the kernel, its program and one function named as the program, for TVM-FFI: all
 * parameters by position, outputs too; the result is nothing. It finds this library as $TILEWRIGHT_LIBRARY, in the
 * process, beside itself, or where it is now. */
TW_PUBLIC tw_error* tw_kernel_export(const tw_kernel* kernel, const char* path);
/* What such a library calls: its kernel where it is the one that we would compile here, else compiled anew. */
typedef struct tw_carried {
  const char *program, *engine, *arch, *hash; /* the .tile text; of the text that the code was compiled from */
  const void* code;                           /* NULL: there is none */
  size_t bytes;
} tw_carried;
TW_PUBLIC tw_error* tw_kernel_load(const tw_carried* carried, tw_kernel** out);
TW_PUBLIC int tw_cuda_device_count(void);
/* The stream of calls of this thread: a cudaStream_t. */
TW_PUBLIC void tw_cuda_set_stream(void* stream);

#ifdef __cplusplus
}
#endif
