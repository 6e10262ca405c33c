/* Enough of math.h for a C parser: calls of functions need no declaration. */
#define INFINITY 1.0e39f
#define NAN 0.0f
