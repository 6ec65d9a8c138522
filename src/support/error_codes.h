// The one list of error codes. The thousands digit names the area. A code, once released, keeps its meaning.
#pragma once
#include <cstdint>

namespace tilewright {

enum class Code : uint16_t {
  Internal = 1,  // a broken invariant of ours

  // 1000: build. The program being built is wrong.
  NoCommonType = 1001,        // two operand types that no rule joins
  IntegerDivision = 1002,     // / on integers
  NeedsIntegers = 1003,       // an operator of integers got something else
  ShiftAmount = 1004,         // a constant shift outside the width
  DivisionByZero = 1005,      // integer division by the constant 0
  NeedsCondition = 1006,      // a condition that is neither bool nor integer
  NeedsNumbers = 1007,        // a number is needed
  FunctionArity = 1008,       // a scalar function got another number of arguments
  FunctionType = 1009,        // a scalar function does not take this type
  BadCast = 1010,             // no conversion between addresses and numbers
  BadBitcast = 1011,          // reinterpret between different widths
  ScopeAbandoned = 1012,      // a tile loop was left by break while building
  OutsideKernel = 1013,       // a statement outside of any launch
  TileOpInParallel = 1014,    // a collective in the body of Parallel
  DuplicateParameter = 1015,  // two parameters of one name
  StrideCount = 1016,         // not one stride per dimension
  ScalarType = 1017,          // a type that scalar parameters cannot have
  TooManyDimensions = 1018,   // more than 8 dimensions
  ExtentType = 1019,          // an extent that is no integer
  DynamicTile = 1020,         // a tile on chip whose shape is not constant
  BadExtent = 1021,           // a negative extent, or an empty tile
  NestedKernel = 1022,        // a launch inside a launch
  GridRank = 1023,            // not 1 to 3 grid extents
  ThreadRank = 1024,          // not 1 to 3 thread extents
  ThreadCount = 1025,         // no threads, or more than a block has
  ThreadDimension = 1026,     // not a dimension 0 to 2
  SwizzlePanel = 1027,        // a negative panel
  PointerTile = 1028,         // addresses in shared or fragment memory
  BarrierCount = 1029,        // an impossible arrive count
  ReducerOp = 1030,           // an update that does not match the reducer
  AddressType = 1031,         // make_tensor of something that is no address
  BadView = 1032,             // a view of what cannot be viewed
  ViewSize = 1033,            // a view of another size
  LayoutSpace = 1034,         // a layout or fill for a buffer that has none
  IndexType = 1035,           // an index that is no integer
  IndexOutOfBounds = 1036,    // an index on chip that is surely outside
  NeedsElement = 1037,        // an index in every dimension is needed
  IndexCount = 1038,          // not one index per dimension
  BarrierAccess = 1039,       // a barrier read or written as data
  AddressSpace = 1040,        // the address of an element on chip
  LoopType = 1041,            // loop bounds that are no integers
  StageCount = 1042,          // impossible pipeline stages
  LoopStep = 1043,            // step 0
  ParallelRank = 1044,        // no extents
  EndlessLoop = 1045,         // while with a constant true condition
  ElseWithoutIf = 1046,       // no If right before
  RoleRange = 1047,           // not whole warps inside the block
  ReducerStore = 1048,        // a plain store or copy to a reducer
  AtomicSpace = 1049,         // an atomic on private memory
  AtomicType = 1050,          // a type without this atomic
  ShuffleWidth = 1051,        // not a power of two up to 32
  OutsideLoop = 1052,         // break or continue without a loop
  CallName = 1053,            // not the name of a function
  NoKernel = 1054,            // a program that launches nothing
  EmptySlice = 1055,          // a slice without elements
  CopyRank = 1056,            // a tile of more dimensions than its target
  CopyExtents = 1057,         // two sides of a copy that do not fit
  AsyncCopySpaces = 1058,     // an asynchronous copy not from global to shared
  AsyncCopyCast = 1059,       // an asynchronous copy that converts
  Im2colShape = 1060,         // operands of im2col
  GemmSpace = 1061,           // an operand that is not on chip
  GemmRank = 1062,            // an operand that is no matrix
  GemmInner = 1063,           // K differs
  GemmOuter = 1064,           // M or N differs
  GemmType = 1065,            // types without a gemm
  ReduceDim = 1066,           // no such dimension
  ReduceSpace = 1067,         // an operand that is not on chip
  ReduceType = 1068,          // a bit reduction of floats
  ReduceShape = 1069,         // the result has another shape
  ScanOp = 1070,              // a scan by another operation
  NeedsBarrier = 1071,        // an order op on what is no single barrier
  QueueDepth = 1072,          // a negative number of groups
  NamedBarrierCount = 1073,   // not a multiple of 32
  NamedBarrierId = 1074,      // not 0 to 15
  RegisterCount = 1075,       // not a multiple of 8 from 24 to 256
  NotAParameter = 1076,       // a tensor that the program does not take
  OutsideProgram = 1077,      // a statement outside of prim_func
  UnknownFunction = 1078,     // no scalar function of this name
  LayoutFunction = 1079,      // a layout function with a bad result
  BadOption = 1080,           // an option of a call with an impossible value

  // 2000: parse. Text (.tile) that is not a program.
  TextCharacter = 2001,         // a character that starts no token
  TextUnterminated = 2002,      // a string or quoted name without its closing quote
  TextEscape = 2003,            // an unknown escape in a string
  TextNumber = 2004,            // digits that are no number
  TextExpected = 2005,          // another token than the grammar wants here
  TextNesting = 2006,           // brackets, blocks or prefix operators nested too deep
  TextUnknownName = 2007,       // a name that nothing in scope has
  TextNameTaken = 2008,         // a second definition of a name that is in scope
  TextUnknownType = 2009,       // no data type has this name
  TextUnknownFunction = 2010,   // no function has this name
  TextUnknownStatement = 2011,  // no statement has this name
  TextUnknownField = 2012,      // the statement or buffer has no such field
  TextRepeatedField = 2013,     // a field given twice
  TextWord = 2014,              // not one of the words of an enumeration
  TextNumberRange = 2015,       // a number that its type cannot hold
  TextOperandTypes = 2016,      // operands of different types
  TextOperandType = 2017,       // an operator on a type that it does not take
  TextArgumentCount = 2018,     // too few or too many arguments of a function
  TextNotBuffer = 2019,         // a variable where a buffer belongs
  TextNotIndexed = 2020,        // a buffer without its indices
  TextIndexCount = 2021,        // not as many indices as the buffer has dimensions
  TextIndexType = 2022,         // an index or extent that is no integer
  TextCondition = 2023,         // a condition that is no bool
  TextCast = 2024,              // a cast between numbers and addresses
  TextBitcast = 2025,           // a bitcast between widths
  TextLevel = 2026,             // a program of another level than asked for
  TextResult = 2027,            // a result of a statement that has none, or the reverse
  TextExpressionDepth = 2028,   // an expression with too many operators in a row
  TextAfterEnd = 2029,          // text after the program
  TextComparisonChain = 2030,   // a < b < c

  // 3000: verify. A well-formed program that breaks a rule of the language or of its level.

  // 4000: launch. Arguments of a call.
  ArgumentCount = 4001,       // not as many arguments as parameters
  ArgumentKind = 4002,        // a tensor where a number belongs, or the reverse
  ArgumentNull = 4003,        // null where the parameter may not be null
  ArgumentDtype = 4004,       // the tensor has another dtype
  ArgumentRank = 4005,        // the tensor has another number of dimensions
  ArgumentDevice = 4006,      // the tensor is not in the engine's memory
  ArgumentShape = 4007,       // a dimension differs from what the program says
  ArgumentStrides = 4008,     // a stride differs from what the program says
  ArgumentAlignment = 4009,   // the address is not a multiple of what the program needs
  ScalarRange = 4010,         // the number does not fit the parameter's dtype
  SymbolUnsolvable = 4011,    // no integer value of the symbol gives this dimension or stride
  ExpressionOverflow = 4012,  // a shape, stride or size leaves 64 bits or divides by zero
  AssumptionFailed = 4013,    // what the program assumes does not hold for these arguments
  PlanTooLarge = 4014,        // more parameters, workspaces or symbols than a call can hold
  AssertionFailed = 4015,     // an assertion in the kernel
  ArrayInvalid = 4016,        // an array that cannot be: negative extent, rank above 8, index out of range
  DlpackInvalid = 4017,       // a DLPack tensor that has no NDArray
  OutOfMemory = 4018,         // no memory for an array or a workspace

  // 5000: cpu. The CPU engine, the host compiler, the kernel cache.
  HostCompilerMissing = 5500,    // no C++ compiler was found
  HostCompilerFailed = 5501,     // the compiler refused our text
  HostCompilerTimedOut = 5502,   // the compiler was stopped at the deadline
  KernelNotLoadable = 5503,      // the dynamic linker refused the compiled kernel
  ProcessorUnknown = 5504,       // TILEWRIGHT_CPU names no processor
  ScratchDirectory = 5505,       // no private directory for the compiler's files
  SettingInvalid = 5506,         // an environment variable that is not a number
  CacheDirectoryRefused = 5510,  // not a private directory of this user: not used
  CacheEntryDamaged = 5511,      // set aside and compiled again
  CacheNotWritable = 5512,       // the kernel was compiled but could not be kept

  // 6000: run. Mistakes of a program that the interpreter finds while it runs.
  OutOfBounds = 6001,          // an index outside a buffer on chip
  Uninitialized = 6002,        // an element on chip is read before it is written
  DoubleWrite = 6003,          // two points of a map write different values to one element
  BadDivision = 6004,          // integer division by zero, or of the least integer by -1
  AssumeViolated = 6005,       // what the program vouches for does not hold
  KernelAssertion = 6006,      // an assertion of the program
  ShuffleInactive = 6007,      // a shuffle reads a lane that does not execute it
  BarrierOverflow = 6008,      // more arrivals than the barrier counts
  Deadlock = 6009,             // nobody can go on
  ReducerNotFinal = 6010,      // a reducer is read before it is finalized
  DivergentCollective = 6011,  // a tile op or barrier that not all threads of its set reach
  OperandsDisagree = 6012,     // an operand of a tile op that differs between threads
  NullBuffer = 6013,           // an access to a buffer that has no memory
  ShapeMismatch = 6014,        // extents, known only now, that do not fit each other
  InterpreterRefuses = 6090,   // what the interpreter cannot do

  // 7000: tool. The command line.
};

}  // namespace tilewright
