/* SPDX-License-Identifier: Apache-2.0
 *
 * Token pasting for the templates that the spelling lists include. Preprocessor only: the export
 * map and tables.json are made with it too.
 */
#pragma once

#define GS_F77 1
#define GS_CBLAS 2

#define GS_CALL_(f, ...) f(__VA_ARGS__)
#define GS_PASTE_(a, b) a##b
#define GS_PASTE(a, b) GS_PASTE_(a, b)
#define GS_PASTE3_(a, b, c) a##b##c
#define GS_PASTE3(a, b, c) GS_PASTE3_(a, b, c)
#define GS_STRING_(x) #x
#define GS_STRING(x) GS_STRING_(x)

/* Inside spelling, dtype and operation: dgemm; scipy_cblas_dgemm64_; GS_ENTRY_<spelling>_dgemm. */
#define GS_ROUTINE_NAME GS_CALL_(GS_D, GS_OP_NAME)
#define GS_ENTRY_NAME GS_CALL_(GS_NAME_OF, GS_ROUTINE_NAME)
#define GS_ENTRY_ID GS_PASTE3(GS_PASTE(GS_ENTRY_, GS_SPELLING), _, GS_ROUTINE_NAME)
#define GS_OP_CONSTANT GS_PASTE(GS_OP_, GS_OP_ID)

/* Whether this spelling exports this operation for this dtype. */
#define GS_IS_EXPORTED ((GS_OP_DTYPES & GS_DTYPE_BIT) && (GS_OP_INTERFACES & GS_INTERFACE))

/* What a spelling list includes for each spelling; expansions over spellings alone change it. */
#define GS_EACH_SPELLING "dtypes.inc"

/* File of a signature: "signatures/gemm.inc". */
#define GS_SIGNATURE_FILE_(name) GS_STRING(signatures/name.inc)
#define GS_SIGNATURE_FILE(name) GS_SIGNATURE_FILE_(name)
