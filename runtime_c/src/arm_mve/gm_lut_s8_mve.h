/* SPDX-License-Identifier: Apache-2.0
 * Bytes through a table of 256, for MVE: sixteen at a time. */
#ifndef GM_LUT_S8_MVE_H
#define GM_LUT_S8_MVE_H

#include "gm_lut_s8.h"

#include <arm_mve.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_lut_s8_t gm_lut_s8_mve_t;

/* table: 256 bytes. x and y are bytes of any kind; y may be x. */
GM_INLINE void gm_lut_s8_mve_core(const gm_lut_s8_mve_t *p, void *y, const void *x,
                                  const uint8_t *GM_RESTRICT table)
{
    const uint8_t *from = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    for (int32_t left = p->count; left > 0; left -= 16) {
        const mve_pred16_t lanes = vctp8q((uint32_t)left);
        const uint8x16_t at = vldrbq_z_u8(from, lanes);
        vstrbq_p_u8(to, vldrbq_gather_offset_z_u8(table, at, lanes), lanes);
        from += 16;
        to += 16;
    }
}

void gm_lut_s8_mve(const gm_lut_s8_mve_t *p, void *y, const void *x,
                   const uint8_t *GM_RESTRICT table);

#ifdef __cplusplus
}
#endif

#endif
