/* Enough of stddef.h for a C parser. */
typedef unsigned long long size_t;
typedef long long ptrdiff_t;
#define NULL ((void *)0)
