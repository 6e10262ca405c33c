/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_unpack.h"

GM_KERNEL void gm_unpack(const gm_unpack_t *p, void *GM_RESTRICT y, const void *GM_RESTRICT x)
{
    gm_unpack_core(p, y, x);
}
