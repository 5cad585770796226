// Package libm computes the functions of C's math.h as the C library does that redis-server runs on: with the same bits, so that a
// script's numbers are those it has in Redis.
//
// The C library is glibc on x86-64, where a product and a sum may be rounded together. It is off by at most 0.56 of the last bit in log, sin, cos,
// tan, asin, acos, atan and atan2. These are computed here with some 68 bits and rounded once, and so are equal to its results but for
// one in several hundred or thousand arguments, where it is off by the last bit. For exp and pow it ends with a polynomial whose errors
// are seen more often; here it is the same polynomial. Its sinh, cosh, tanh and log10 are off by up to two of the last bits; they follow
// the formulas of fdlibm, here too. TestRecorded and TestMathRedis in package scripting say how many results are equal.
//
// No result depends on the machine: where a product and a sum are to be rounded together math.FMA says so, and elsewhere a conversion
// keeps the compiler from it.
package libm
