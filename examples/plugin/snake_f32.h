/* y = x + sin(alpha x)^2 / alpha, element by element. */
#ifndef SNAKE_F32_H
#define SNAKE_F32_H

#include <math.h>

#include "gm_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t count;
    float alpha;
} snake_f32_t;

/* y may be x. */
void snake_f32(const snake_f32_t *p, float *y, const float *x);

#ifdef __cplusplus
}
#endif

#endif
