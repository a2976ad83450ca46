/* Entry ABI, version 1: the only contract between generated code and the process that runs it.
 *
 *   int32_t entry(const CuvilServices* services, CuvilCall* call)
 *
 * returns 0, or 1 + the index of the error site that fired (CUVIL_SITE_PYTHON if Python's error
 * indicator is set already). It never unwinds and refers to no outside symbol: every way out is a
 * function pointer in CuvilServices. Plain C, fixed offsets, append-only: a field is never moved.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUVIL_ABI_VERSION 1u
#define CUVIL_SITE_PYTHON 0x7fffffff

/* A strided array as generated code sees it. Strides are in bytes; shape and strides hold `rank`
 * entries and live as long as the call. */
typedef struct CuvilArray {
  void* data;             /*  0 */
  const int64_t* shape;   /*  8 */
  const int64_t* strides; /* 16 */
  void* object;           /* 24: the PyObject* behind it; opaque to generated code */
} CuvilArray;             /* 32 */

typedef struct CuvilServices CuvilServices;

/* What one call works on. The caller owns and frees everything in it. */
typedef struct CuvilCall {
  uint32_t abi_version; /*  0 */
  uint32_t flags;       /*  4 */
  CuvilArray*
      arrays;       /*  8: argument arrays, then captured arrays, then slots filled by call_host */
  int64_t* scalars; /* 16: run-time Python int (int64) and float (bits of double) arguments */
  int64_t* dims;    /* 24: the symbols; the caller binds the first ones, generated code the rest */
  CuvilArray* results; /* 32: filled by alloc_result and view_result */
  void* arena;         /* 40: base of the planned arena, 64-byte aligned; NULL if its size is 0 */
  void* stream;        /* 48: CUDA stream, or NULL */
  int64_t payload[4];  /* 56: numbers for the message of the site that fired */
  const CuvilServices* services; /* 88: as passed to entry (for parallel bodies) */
  void* host;                    /* 96: the dispatcher's own state */
} CuvilCall;                     /* 104 */

/* A piece of work of parallel_for: iterations [begin, end). Returns 0 or 1 + site. */
typedef int32_t (*CuvilBody)(CuvilCall* call, void* context, int64_t begin, int64_t end);

typedef enum CuvilScratch { CUVIL_SCRATCH_CALL = 0, CUVIL_SCRATCH_THREAD = 1 } CuvilScratch;

struct CuvilServices {
  uint32_t size;    /* 0: sizeof in the process that runs; an artifact states the least it needs */
  uint32_t version; /* 4 */
  /* Makes result `index` (dtype, rank, memory order from the result table) with this shape.
   * Returns its data, or NULL with Python's error set. */
  void* (*alloc_result)(CuvilCall*, uint32_t index, const int64_t* shape); /*  8 */
  /* Makes result `index` a view of `base` (see CuvilBase) at a byte offset. 0, or CUVIL_SITE_PYTHON. */
  int32_t (*view_result)(CuvilCall*, uint32_t index, uint32_t base, int64_t offset,
                         const int64_t* shape, const int64_t* strides); /* 16 */
  /* Zero-copy scratch of `bytes`, 64-byte aligned, valid to the end of the call (CALL) or of this
   * body (THREAD: one per worker, reused). NULL with Python's error set. */
  void* (*lease_scratch)(CuvilCall*, int64_t bytes, uint32_t scope); /* 24 */
  /* Runs body over [0, n) in pieces of at least `grain`. The error of the lowest iteration wins. */
  int32_t (*parallel_for)(CuvilCall*, CuvilBody body, void* context, int64_t n,
                          int64_t grain); /* 32 */
  /* Device work: launches kernel `index` of the artifact's device image. */
  int32_t (*launch)(CuvilCall*, uint32_t kernel, const uint32_t grid[3], const uint32_t block[3],
                    uint32_t shared_bytes, void** params);                               /* 40 */
  int32_t (*copy)(CuvilCall*, void* dst, const void* src, int64_t bytes, uint32_t kind); /* 48 */
  int32_t (*read_scalar)(CuvilCall*, void* dst, const void* src, int64_t bytes);         /* 56 */
  /* Calls the host callable of site `site` with `n` operands; its array results land in
   * call->arrays from the slot that the site names. 0, or 1 + site, or CUVIL_SITE_PYTHON. */
  int32_t (*call_host)(CuvilCall*, uint32_t site, const CuvilArray* operands, uint32_t n); /* 64 */
  /* Gives Ctrl-C a chance; cheap (a clock read) unless 50 ms have passed. */
  int32_t (*poll)(CuvilCall*);                /* 72 */
  int32_t (*warn)(CuvilCall*, uint32_t site); /* 80 */
  /* Records the error of `site` (payload in call->payload) and returns 1 + site. */
  int32_t (*raise)(CuvilCall*, uint32_t site); /* 88 */
};                                             /* 96 */

/* Bases of view_result: array slot k, or result k. */
#define CUVIL_BASE_ARRAY(k) ((uint32_t)(k))
#define CUVIL_BASE_RESULT(k) (0x80000000u | (uint32_t)(k))

typedef int32_t (*CuvilEntry)(const CuvilServices*, CuvilCall*);

#ifdef __cplusplus
}
static_assert(sizeof(CuvilArray) == 32 && sizeof(CuvilCall) == 104 && sizeof(CuvilServices) == 96,
              "the entry ABI is frozen");
#endif
