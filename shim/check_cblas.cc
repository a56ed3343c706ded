/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled, never linked, where a cblas.h is installed: each CBLAS prototype of ours against its
 * own, parameter by parameter. Ours has int64_t and const void * where cblas.h may have int,
 * enums and typed pointers, so what must agree is how a parameter travels: the register class,
 * and the size of a floating-point value. (C++, because only it can take a parameter list apart.)
 */
#include <cstddef>
#include <cstdint>
#include <type_traits>

extern "C" {
#include <cblas.h>
}

#include "paste.h"

#define GS_EXPORT
#define GS_PROTOTYPES_ONLY
#define GS_INTERFACE GS_CBLAS
#define GS_INT int64_t

namespace ours {
#define GS_NAME_OF(x) cblas_##x
#define GS_TEMPLATE "expand/entry_body.inc"
#include "dtypes.inc"
#undef GS_TEMPLATE
}

template <typename A, typename B>
constexpr bool travels_alike = std::is_floating_point<B>::value
                                   ? std::is_same<A, B>::value
                                   : !std::is_floating_point<A>::value &&
                                         sizeof(A) >= sizeof(B) && sizeof(A) <= sizeof(void *);

template <typename A, typename B> struct alike : std::false_type {};
template <typename... A, typename... B>
struct alike<void(A...), void(B...)>
    : std::bool_constant<sizeof...(A) == sizeof...(B) && (travels_alike<A, B> && ...)> {};

#define GS_TEMPLATE "expand/entry_check.inc"
#include "dtypes.inc"
#undef GS_TEMPLATE
