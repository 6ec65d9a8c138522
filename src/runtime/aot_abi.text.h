/* What a kernel that was compiled ahead of time and its runtime agree on: plans as data, in C99. It stands behind
   kernel_abi.text.h. Lists are a pointer and a count. */
#ifndef TW_AOT_ABI
#define TW_AOT_ABI

/* Integer expressions of symbols and scalar parameters, in postfix order; the kinds are those of IntOp. */
enum tw_op_kind {
  TW_OP_CONSTANT,
  TW_OP_SYMBOL,
  TW_OP_SCALAR,
  TW_OP_ADD,
  TW_OP_SUB,
  TW_OP_MUL,
  TW_OP_FLOOR_DIV,
  TW_OP_FLOOR_MOD,
  TW_OP_MIN,
  TW_OP_MAX,
  TW_OP_LESS,
  TW_OP_LESS_EQUAL,
  TW_OP_EQUAL,
  TW_OP_NOT_EQUAL,
  TW_OP_AND,
  TW_OP_OR,
  TW_OP_NOT,
  TW_OP_FITS
};
struct tw_op {
  int kind;
  long long value;
};
struct tw_expression {
  const struct tw_op* ops;
  int count;
  const char* text; /* "2 * K + 1" */
};

enum { TW_MAX_DEPTH = 32, TW_MAX_RANK = 8, TW_MAX_BUFFERS = 64, TW_MAX_INTEGERS = 128 };

struct tw_parameter {
  const char* name;
  int is_tensor;
  int bits; /* of an element in memory */
  int rank;
  const struct tw_expression* shape;
  const struct tw_expression* strides; /* null: row-major without gaps */
  int nullable, written;
};
/* A dimension or stride that the caller gives. */
struct tw_symbol {
  const char* name;
  const char* dtype;
  int bits, is_signed, is_extent;
};
struct tw_assumption {
  struct tw_expression condition; /* must not be 0 */
  const char* text;
};
struct tw_workspace {
  const char* name;
  int bits;
  struct tw_expression size; /* elements */
  int zeroed;                /* it holds zeros at the start of a call */
};
/* An assertion of the kernel. */
struct tw_operand {
  const char* name;
  int type; /* 0 an integer, 1 an unsigned one, 2 a bool, 3 the bits of a float, 4 those of a double */
};
struct tw_site {
  const char* message;
  const char* place; /* "softmax.py:12" */
  const struct tw_operand* operands;
  int operand_count;
};

/* What only kernels of a GPU have: the members of TensorMapPlan and KernelLaunch. */
struct tw_map {
  const char* name;
  int buffer, type, bits; /* CUtensorMapDataType; bits of an element */
  long long byte_offset;
  int rank;
  const struct tw_expression *dims, *strides; /* innermost first; strides of dims[1] and on */
  const unsigned *box, *element_strides;
  int swizzle, interleave, l2_promotion, oob_fill;
};
enum tw_launch_parameter_kind { TW_BUFFER_PARAMETER, TW_VALUE_PARAMETER, TW_MAP_PARAMETER };
struct tw_launch_parameter {
  int kind;
  int index; /* of the buffer or map */
  int bytes; /* of a value */
  struct tw_expression value;
};
struct tw_launch {
  const char* function;
  struct tw_expression grid[3];
  int block[3], cluster[3];
  int shared_bytes, cooperative, begins_early;
  const struct tw_launch_parameter* parameters;
  int parameter_count;
};

enum { TW_MAX_DEVICES = 64, TW_MAX_LAUNCHES = 64 };

/* One compiled form of the program, and what it takes for granted of a call. */
struct tw_version {
  const int* alignments; /* bytes, of the tensors in order */
  const struct tw_assumption* assumptions;
  int assumption_count;
  const struct tw_workspace* workspaces;
  int workspace_count;
  const void* image; /* a cubin */
  const struct tw_map* maps;
  int map_count;
  const struct tw_launch* launches;
  int launch_count;
  void** modules; /* by device: what was loaded of the image */
};

struct tw_aot_kernel {
  const char* name;
  const char* arch; /* "cpu", "sm_90a" */
  const struct tw_parameter* parameters;
  int parameter_count;
  const struct tw_symbol* symbols;
  int symbol_count;
  const struct tw_assumption* assumptions;
  int assumption_count;
  const struct tw_expression* grids; /* that may have no value in their type */
  int grid_count;
  const struct tw_site* sites;
  int site_count;
  const struct tw_version* versions; /* the first that fits a call takes it */
  int version_count;
  unsigned features;                        /* of the processor: bits in the order of tw_feature_names */
  int (*entry)(const struct tw_call* call); /* null: a GPU's */
};

/* Checks the call and runs it: 0, or the number of an error, whose text tilewright_error_text() has. tensors: the
   addresses in order; integers: the symbols, then the scalars as kernel_abi.text.h writes values. */
int tilewright_call_1(const struct tw_aot_kernel* kernel, void* const* tensors, const long long* integers,
                      void* stream);

#endif
