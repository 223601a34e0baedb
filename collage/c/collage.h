/* Collage from C: load a compiled program and run it (libcollage_runtime), and compile a model (libcollage).
 *
 * Why it looks as it does:
 * - A program is what was loaded: names, types, weights. A session is one thread's state for running it. Programs may be used by any number
 *   of threads at once; a session by one at a time. Sessions of one program share its weights where the libraries behind it permit that.
 * - Functions that can fail return an error, null when all went well. So no success can be mistaken, no message is kept per thread, and a
 * run that succeeds allocates nothing. Errors are the caller's to free.
 * - Buffers are the caller's, with their sizes, so that a wrong one is an error instead of a crash.
 * - Options are JSON: a new one breaks no caller. One that is not known is an error.
 * - Where extents of outputs depend on data nobody can bring buffers of the right size: such a program runs into memory of its session
 *   (collage_session_evaluate), which then says what came out. Any other program may be run so, too.
 * - No structure is allocated by the caller but those that only carry pointers and numbers, and these are not going to change. Functions
 * are only added. What breaks a caller changes COLLAGE_ABI_VERSION and the name of the libraries' files.
 *
 * Whoever loads a program runs the machine code in it: it must be trusted as a shared library. "compile_again" below leaves that code
 * alone.
 *
 *     collage_program* program = NULL;
 *     collage_session* session = NULL;
 *     collage_error* error = collage_program_load("model.collage", NULL, &program);
 *     if (!error) error = collage_session_create(program, &session);
 *     if (!error) error = collage_session_run(session, inputs, 1, outputs, 1);
 *     if (error) fprintf(stderr, "%s\n", collage_error_message(error));
 *     collage_error_free(error);
 *     collage_session_free(session);
 *     collage_program_free(program);
 */
#ifndef COLLAGE_H
#define COLLAGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define COLLAGE_NOTHROW noexcept
#else
#define COLLAGE_NOTHROW
#endif

#define COLLAGE_ABI_VERSION 1
#define COLLAGE_API __attribute__((visibility("default")))

typedef struct collage_error collage_error;
typedef struct collage_program collage_program;
typedef struct collage_session collage_session;

/** COLLAGE_ABI_VERSION of the library that is loaded: equal to that of the header, or the two do not fit. */
COLLAGE_API uint32_t collage_abi_version(void) COLLAGE_NOTHROW;

/** What kind of error it is, for programs; the message is for people. */
typedef enum collage_error_kind {
  COLLAGE_ERROR_ARGUMENT = 1, /**< what the caller passed is wrong: a null, a count, the size of a buffer, an option */
  COLLAGE_ERROR_LOAD = 2,     /**< the file is missing, damaged, of another version, or for another machine */
  COLLAGE_ERROR_RUN = 3,      /**< a kernel failed; outputs are undefined */
  COLLAGE_ERROR_COMPILE = 4,  /**< the model cannot be read or compiled, or the result not be written */
  COLLAGE_ERROR_STOPPED = 5,  /**< a compile was given up by its caller */
  COLLAGE_ERROR_BUG = 6       /**< of Collage itself */
} collage_error_kind;

/** One line: where, what was found, what would be right. Alive as long as the error. Empty for null. */
COLLAGE_API const char* collage_error_message(const collage_error* error) COLLAGE_NOTHROW;
/** Zero for null. */
COLLAGE_API collage_error_kind collage_error_kind_of(const collage_error* error) COLLAGE_NOTHROW;
/** Null is left alone, as by all functions that free. */
COLLAGE_API void collage_error_free(collage_error* error) COLLAGE_NOTHROW;

#define COLLAGE_UNKNOWN_EXTENT (-1)

/** A tensor that enters or leaves a program: dense, row-major, in memory of the host. Pointers live as long as the program. */
typedef struct collage_tensor_info {
  const char* name;
  const char*
      type; /**< of an element, as NumPy calls it: "float32", "int64", "bool", or "string"; types below 8 bits take a byte an element */
  const int64_t* shape; /**< COLLAGE_UNKNOWN_EXTENT where only a run tells; null where not even the rank is known, which is zero then */
  size_t rank;
  size_t bytes; /**< zero where the shape is not known */
} collage_tensor_info;

/** Elements of type "string" are numbers of 8 bytes: of texts that the process keeps, each once and until it ends. They mean nothing in
 *  another process. 0 is the empty text. Any bytes are a text; ONNX has them in UTF-8. */
COLLAGE_API collage_error* collage_string_number(const char* text, size_t bytes, uint64_t* number) COLLAGE_NOTHROW;
/** Alive until the process ends, and ended by a zero. The empty text for a number that no text has. `bytes` may be null. */
COLLAGE_API const char* collage_string_text(uint64_t number, size_t* bytes) COLLAGE_NOTHROW;

/** Loads a compiled file.
 *  `options`: null, or JSON {"threads": N, "compile_again": false, "plugins": ["backend.so"], "processors": ["cpu:1=2-3"]}.
 *  Without "threads" there are as many as the plan was made for.
 *  "processors": of the program's CPUs beside the host, in place of those it was compiled with.
 *  "plugins": backends that do not come with Collage, from now on known to this process; their code is run.
 *  "compile_again": the machine code in the file is left alone and kernels are compiled from their functions, for files from elsewhere. */
COLLAGE_API collage_error* collage_program_load(const char* path, const char* options, collage_program** program) COLLAGE_NOTHROW;
/** The same of the bytes of such a file, which are copied. */
COLLAGE_API collage_error* collage_program_load_memory(const void* bytes, size_t size, const char* options,
                                                       collage_program** program) COLLAGE_NOTHROW;
/** All its sessions must have been freed. */
COLLAGE_API void collage_program_free(collage_program* program) COLLAGE_NOTHROW;

COLLAGE_API size_t collage_program_input_count(const collage_program* program) COLLAGE_NOTHROW;
COLLAGE_API size_t collage_program_output_count(const collage_program* program) COLLAGE_NOTHROW;
/** The shapes for which a program was compiled: one profile at least. All have inputs and outputs of the same names and element types. */
COLLAGE_API size_t collage_program_profile_count(const collage_program* program) COLLAGE_NOTHROW;
/** All zeros when `profile` or `index` is out of range. */
COLLAGE_API collage_tensor_info collage_program_input(const collage_program* program, size_t profile, size_t index) COLLAGE_NOTHROW;
COLLAGE_API collage_tensor_info collage_program_output(const collage_program* program, size_t profile, size_t index) COLLAGE_NOTHROW;
/** 1 when the shapes of outputs depend on data, in some profile at least, so that it is run by collage_session_evaluate only; else 0. */
COLLAGE_API int collage_program_is_sized_by_run(const collage_program* program) COLLAGE_NOTHROW;
/** What the compile reported, as JSON: the plan, its prices, the race. Alive as long as the program. */
COLLAGE_API const char* collage_program_report(const collage_program* program) COLLAGE_NOTHROW;
/** Threads with which its kernels run. */
COLLAGE_API int collage_program_threads(const collage_program* program) COLLAGE_NOTHROW;

/** State for running by one thread at a time. What a freed one held is kept for the next one, until the program is freed. */
COLLAGE_API collage_error* collage_session_create(collage_program* program, collage_session** session) COLLAGE_NOTHROW;
COLLAGE_API void collage_session_free(collage_session* session) COLLAGE_NOTHROW;

/** From now on runs take and give tensors of this profile; before, of profile 0. Not while the session runs. */
COLLAGE_API collage_error* collage_session_select_profile(collage_session* session, size_t profile) COLLAGE_NOTHROW;

typedef struct collage_input {
  const void* data;
  size_t bytes;
} collage_input;

typedef struct collage_output {
  void* data;
  size_t bytes;
} collage_output;

/** Runs once. One buffer for each input and output of the program, in its order; outputs overlap nothing. Buffers at multiples of 64 bytes
 * are used where they are, others are copied. */
COLLAGE_API collage_error* collage_session_run(collage_session* session, const collage_input* inputs, size_t input_count,
                                               const collage_output* outputs, size_t output_count) COLLAGE_NOTHROW;

/** Runs once into memory of the session, for outputs of any extents. One buffer for each input, as above. */
COLLAGE_API collage_error* collage_session_evaluate(collage_session* session, const collage_input* inputs,
                                                    size_t input_count) COLLAGE_NOTHROW;

/** An output of the last collage_session_evaluate that succeeded. Pointers live until the session runs again or is freed. */
typedef struct collage_result {
  const void* data;
  collage_tensor_info info; /**< of what came out: all extents are known */
} collage_result;

/** All zeros when `index` is out of range, or nothing was evaluated. Not while the session runs. */
COLLAGE_API collage_result collage_session_result(const collage_session* session, size_t index) COLLAGE_NOTHROW;

/** One step of the program and the time spent in it since profiling began. Pointers live as long as the session. */
typedef struct collage_step {
  const char* kind;    /**< "kernel", "conversion" (between layouts) or "copy" */
  const char* name;    /**< of a kernel, or what is converted */
  const char* backend; /**< of a kernel; otherwise empty */
  uint64_t calls;
  double microseconds; /**< of all calls */
} collage_step;

/** Starts from zero, or stops, the timing of steps; it costs two readings of a clock a step. */
COLLAGE_API void collage_session_set_profiling(collage_session* session, int on) COLLAGE_NOTHROW;
COLLAGE_API size_t collage_session_step_count(const collage_session* session) COLLAGE_NOTHROW;
/** All zeros when `index` is out of range. Not while the session runs. */
COLLAGE_API collage_step collage_session_step(const collage_session* session, size_t index) COLLAGE_NOTHROW;

/* From here on in libcollage only. */

/** What a compile is to do next. */
typedef enum collage_wish {
  COLLAGE_GO_ON = 0,
  COLLAGE_FINISH = 1, /**< stop measuring, and save the best plan of what was measured so far; may be answered again and again */
  COLLAGE_GIVE_UP = 2 /**< end at once and save nothing: COLLAGE_ERROR_STOPPED */
} collage_wish;

/** Told what a compile does, in the thread that called collage_compile: of every stage, and several times a second, news or not. `total` is
 *  zero where it is not known. Answers with a collage_wish. */
typedef int (*collage_progress)(void* user, const char* stage, uint64_t done, uint64_t total, const char* detail);

/** Compiles an ONNX file into a program file, in processes of its own: neither a kernel that crashes nor the compiler's memory are the
 *  caller's. When the caller's process ends, so do they.
 *  `options`: null, or JSON. All may be left out:
 *    "targets": ["cpu", "cpu -compiler=dnnl"]   what competes; everything that is present
 *    "constants": "program.npz"                 of a program in Relay's text; what lies beside the program under its name
 *    "shapes": {"input": [1, 3, 224, 224]}      of inputs with symbolic dimensions; a list of such objects: a profile each
 *    "budget": 90                               seconds for the whole compile; 300
 *    "threads": 2                               all processors of this process
 *    "processors": ["cpu:1=2-3"]                of CPUs beside the host, which has those that are left; none
 *    "choose_devices": true                     choose the device of everything that no pin fixes; false
 *    "precision": "bf16=0.02"                   what kernels may compute with fewer bits, and how far results may then be off; none
 *    "cache": "prices.sqlite"                   where prices are kept, a file or postgresql://...; ~/.cache/collage/prices.sqlite
 *    "tune": 60                                 seconds for tuning generated kernels; 0
 *    "cache_only": true, "eager": true          as the command line's
 *    "partition_rules": {}, "forms": []         as the files of the command line's --partition-rules and --forms
 *    "pin": ["conv1=dnnl"], "forbid": ["openvino"], "search": "sweep", "plugins": ["backend.so"]
 *  `progress` may be null. */
COLLAGE_API collage_error* collage_compile(const char* model, const char* output, const char* options, collage_progress progress,
                                           void* user) COLLAGE_NOTHROW;

/** Loads a compiled file for inputs of certain shapes. Where none of its profiles has them, one is compiled, as by collage_compile, and
 *  kept in FILE.profiles beside the file: from then on it is found there, by the command line as well. Whoever wants the same one
 *  meanwhile, in any process, waits for it.
 *  `options`: those of collage_program_load, and
 *    "shapes": {"input": [1, 3, 224, 224]}      that are wanted; an input that is left out may have any
 *    "compile_on_demand": "model.onnx"          the model that the file was made of. Without it other shapes are an error that lists the
 *                                               profiles
 *    "compile": {"budget": 90}                  of collage_compile, but for "shapes", "threads", "processors" and "plugins"
 *  It is compiled for the threads that the file is loaded for. `profile` gets the one to select (collage_session_select_profile).
 *  `progress` may be null. */
COLLAGE_API collage_error* collage_program_load_or_compile(const char* path, const char* options, collage_progress progress, void* user,
                                                           collage_program** program, size_t* profile) COLLAGE_NOTHROW;

#ifdef __cplusplus
}
#endif

#endif
