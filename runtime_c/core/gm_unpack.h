/* SPDX-License-Identifier: Apache-2.0
 * Unpacks elements of 4 or 2 bits, the first in the lowest bits of a byte, to a byte each. */
#ifndef GM_UNPACK_H
#define GM_UNPACK_H

#include "gm_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t count;     /* elements, 0 or more */
    int32_t bits;      /* of an element, 4 or 2 */
    int32_t is_signed; /* 1: elements are sign-extended */
} gm_unpack_t;

/* y must not overlap x. */
GM_INLINE void gm_unpack_core(const gm_unpack_t *p, void *GM_RESTRICT y, const void *GM_RESTRICT x)
{
    const uint8_t *from = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    const int32_t each = 8 / p->bits;
    const uint32_t mask = (1u << p->bits) - 1u;
    const uint32_t sign = p->is_signed ? 1u << (p->bits - 1) : 0u;
    for (int32_t i = 0; i < p->count; i += each) {
        const int32_t last = p->count - i < each ? p->count - i : each;
        uint32_t byte = *from++;
        for (int32_t k = 0; k < last; k++) {
            to[i + k] = (uint8_t)(((byte & mask) ^ sign) - sign);
            byte >>= p->bits;
        }
    }
}

void gm_unpack(const gm_unpack_t *p, void *GM_RESTRICT y, const void *GM_RESTRICT x);

#ifdef __cplusplus
}
#endif

#endif
