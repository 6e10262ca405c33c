/* SPDX-License-Identifier: Apache-2.0
 * Sum of two int8 tensors for MVE, four elements at a time. */
#ifndef GM_ADD_S8_MVE_H
#define GM_ADD_S8_MVE_H

#include "gm_add_s8.h"
#include "gm_mve.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_add_s8_t gm_add_s8_mve_t;

/* y may be a, and b where b is read once. A row of b that is one element adds to the offset. */
GM_INLINE void gm_add_s8_mve_core(const gm_add_s8_mve_t *p, int8_t *y, const int8_t *a,
                                  const int8_t *b)
{
    for (int32_t r = 0; r < p->rows; r++) {
        const int32_t one = p->b_col == 0;
        const int32_t offset = p->offset + (one ? b[0] * p->b_multiplier : 0);
        const int32_t multiplier = one ? 0 : p->b_multiplier;
        const int8_t *u = a;
        const int8_t *v = one ? a : b;
        int8_t *to = y;
        const int32x4_t low = vdupq_n_s32(p->low);
        const int32x4_t high = vdupq_n_s32(p->high);
        /* vmla has no second operand that stays: q3 is the offset, copied for each sum */
        __asm__ volatile(
            "vdup.32 q3, %[offset]\n\t"
            "wlstp.32 lr, %[n], 2f\n"
            "1:\n\t"
            "vldrb.s32 q0, [%[u]], #4\n\t"
            "vmov q2, q3\n\t"
            "vldrb.s32 q1, [%[v]], #4\n\t"
            "vmla.s32 q2, q0, %[a]\n\t"
            "vmla.s32 q2, q1, %[b]\n\t"
            "vshl.s32 q2, %[shift]\n\t"
            "vmax.s32 q2, q2, %q[low]\n\t"
            "vmin.s32 q2, q2, %q[high]\n\t"
            "vstrb.32 q2, [%[y]], #4\n\t"
            "letp lr, 1b\n"
            "2:"
            : [u] "+l"(u), [v] "+l"(v), [y] "+l"(to)
            : [n] "r"(p->cols), [a] "r"(p->a_multiplier), [b] "r"(multiplier), [offset] "r"(offset),
              [shift] "r"(-p->shift), [low] "w"(low), [high] "w"(high)
            : "lr", "q0", "q1", "q2", "q3", "cc", "memory");
        a += p->cols;
        b += p->b_row;
        y += p->cols;
    }
}

void gm_add_s8_mve(const gm_add_s8_mve_t *p, int8_t *y, const int8_t *a, const int8_t *b);

#ifdef __cplusplus
}
#endif

#endif
