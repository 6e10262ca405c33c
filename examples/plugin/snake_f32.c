#include "snake_f32.h"

GM_KERNEL void snake_f32(const snake_f32_t *p, float *y, const float *x)
{
    for (int32_t i = 0; i < p->count; i++) {
        const float wave = sinf(p->alpha * x[i]);
        y[i] = x[i] + wave * wave / p->alpha;
    }
}
