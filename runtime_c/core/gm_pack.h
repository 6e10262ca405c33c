/* SPDX-License-Identifier: Apache-2.0
 * Packs elements of 4 or 2 bits: 2 or 4 in a byte, the first in its lowest bits. */
#ifndef GM_PACK_H
#define GM_PACK_H

#include "gm_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t count;     /* elements, 0 or more */
    int32_t bits;      /* of an element, 4 or 2 */
    int32_t is_signed; /* whether elements are sign-extended: packing cuts them anyway */
} gm_pack_t;

/* x: an element in the lowest bits of every byte. The bits after the last element are 0. y may
 * start where x does. */
GM_INLINE void gm_pack_core(const gm_pack_t *p, void *y, const void *x)
{
    const uint8_t *from = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    const int32_t each = 8 / p->bits;
    const uint32_t mask = (1u << p->bits) - 1u;
    for (int32_t i = 0; i < p->count; i += each) {
        const int32_t last = p->count - i < each ? p->count - i : each;
        uint32_t byte = 0;
        for (int32_t k = 0; k < last; k++) {
            byte |= (from[i + k] & mask) << (k * p->bits);
        }
        *to++ = (uint8_t)byte;
    }
}

void gm_pack(const gm_pack_t *p, void *y, const void *x);

#ifdef __cplusplus
}
#endif

#endif
