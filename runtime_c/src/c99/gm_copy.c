/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_copy.h"

GM_KERNEL void gm_copy(const gm_copy_t *p, void *GM_RESTRICT y, const void *GM_RESTRICT x)
{
    memcpy(y, x, (size_t)p->bytes);
}
