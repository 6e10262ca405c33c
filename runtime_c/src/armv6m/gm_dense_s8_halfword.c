/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_dense_s8_halfword.h"

GM_KERNEL void gm_dense_s8_halfword(const gm_dense_s8_halfword_t *p, int8_t *GM_RESTRICT y,
                                    const int8_t *GM_RESTRICT x, const int32_t *w, void *scratch)
{
    gm_dense_s8_halfword_core(p, y, x, w, scratch);
}
