/* SPDX-License-Identifier: Apache-2.0
 * Plain copy of bytes. */
#ifndef GM_COPY_H
#define GM_COPY_H

#include "gm_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t bytes; /* 0 or more */
} gm_copy_t;

/* y must not overlap x. */
void gm_copy(const gm_copy_t *p, void *GM_RESTRICT y, const void *GM_RESTRICT x);

#ifdef __cplusplus
}
#endif

#endif
