/* SPDX-License-Identifier: Apache-2.0
 * An index of a tensor's dimension: negative ones count from the end, wrong ones are clamped, so
 * that nothing outside the tensor is ever read or written. */
#ifndef GM_INDEX_H
#define GM_INDEX_H

#include "gm_types.h"

/* size: 1 or more; result in [0, size). */
GM_INLINE int32_t gm_index_s32(int32_t index, int32_t size)
{
    index = index < 0 ? index + size : index;
    index = index < 0 ? 0 : index;
    return index < size ? index : size - 1;
}

GM_INLINE int32_t gm_index_s64(int64_t index, int32_t size)
{
    index = index < 0 ? index + size : index;
    index = index < 0 ? 0 : index;
    return index < size ? (int32_t)index : size - 1;
}

#endif
