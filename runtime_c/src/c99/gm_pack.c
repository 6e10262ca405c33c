/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_pack.h"

GM_KERNEL void gm_pack(const gm_pack_t *p, void *y, const void *x)
{
    gm_pack_core(p, y, x);
}
